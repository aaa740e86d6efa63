{{ config(materialized='ephemeral') }} select customer from {{ ref('orders') }}
