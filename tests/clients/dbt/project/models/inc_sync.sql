{{ config(materialized='incremental', unique_key='id', on_schema_change='sync_all_columns') }}
select id, amount {% if var('wide', false) %}, upper(customer) as shouted{% else %}, customer{% endif %} from {{ ref('orders') }}
