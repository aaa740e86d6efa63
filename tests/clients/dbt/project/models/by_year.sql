{{ config(
    materialized='incremental', incremental_strategy='microbatch', unique_key='id', event_time='at', batch_size='year', begin='2024-01-01'
) }}
select id, customer, at from {{ source('landing', 'payments') }}
