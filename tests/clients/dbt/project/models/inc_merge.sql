{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id', on_schema_change='append_new_columns') }}
select id, customer, amount, updated_at {% if var('wide', false) %}, upper(customer) as shouted{% endif %} from {{ ref('orders') }}
{% if is_incremental() %} where updated_at >= (select max(updated_at) from {{ this }}) {% endif %}
