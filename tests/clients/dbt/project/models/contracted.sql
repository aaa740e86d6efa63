{{ config(materialized='table') }} select id, amount from {{ ref('orders') }}
