{{ config(materialized='table', indexes=[{'columns': ['customer'], 'unique': true}]) }} select customer, sum(amount) as amount, count(*) as orders from {{ ref('orders') }} group by customer
