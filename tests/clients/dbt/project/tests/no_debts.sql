select * from {{ ref('spent') }} where amount < 0
