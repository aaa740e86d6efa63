-- Workload W1 in Flink SQL. Words in braces are filled in by bench/peers/systems.py.
CREATE TABLE orders (id BIGINT, customer_id INT, item STRING, amount DECIMAL(10, 2)) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = '{brokers}',
  'properties.group.id' = 'flink', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'
);

CREATE TABLE customers (key STRING, segment STRING, PRIMARY KEY (key) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'customers', 'properties.bootstrap.servers' = '{brokers}',
  'properties.group.id' = 'flink', 'key.format' = 'raw', 'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY'
);

CREATE TABLE revenue (
  segment STRING, item STRING, orders BIGINT, amount DECIMAL(38, 2),
  PRIMARY KEY (segment, item) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'revenue', 'properties.bootstrap.servers' = '{brokers}',
  'key.format' = 'json', 'value.format' = 'json', {sink}
);

INSERT INTO revenue
SELECT c.segment, o.item, count(*), sum(o.amount)
FROM orders o JOIN customers c ON CAST(o.customer_id AS STRING) = c.key
GROUP BY c.segment, o.item;
