{{ config(materialized='materialized_view', indexes=[{'columns': ['customer']}]) }} select customer, count(*) as orders from {{ ref('raw_orders') }} group by customer
