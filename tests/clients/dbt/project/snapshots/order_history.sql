{% snapshot order_history %}
{{ config(target_schema='analytics', unique_key='id', strategy='timestamp', updated_at='updated_at', invalidate_hard_deletes=True) }}
select * from {{ ref('raw_orders') }}
{% endsnapshot %}
{% snapshot customer_history %}
{{ config(target_schema='analytics', unique_key='id', strategy='check', check_cols=['name']) }}
select * from {{ ref('raw_customers') }}
{% endsnapshot %}
