select distinct customer from {{ ref('eph') }}
