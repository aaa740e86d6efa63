-- Scenario 1 and what its longer demo adds. {prefix}: of the topics.
CREATE SOURCE raw_pageviews FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.pageviews' FORMAT BYTES;

CREATE SOURCE users FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.users'
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081' ENVELOPE DEBEZIUM;

CREATE SOURCE items FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.items'
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081' ENVELOPE DEBEZIUM;

CREATE SOURCE purchases FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.purchases'
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081' ENVELOPE DEBEZIUM;

CREATE VIEW pageviews AS
SELECT
  (pageview_data->'user_id')::INT AS user_id,
  (pageview_data->'url')::STRING AS url,
  (pageview_data->'channel')::STRING AS channel,
  to_timestamp((pageview_data->'received_at')::INT) AS ts
FROM (SELECT convert_from(data, 'utf8')::jsonb AS pageview_data FROM raw_pageviews);

CREATE MATERIALIZED VIEW pageviews_by_user_segment AS
SELECT users.is_vip, pageviews.channel, date_trunc('hour', pageviews.ts) AS ts_hour, count(*) AS pageview_count
FROM users JOIN pageviews ON pageviews.user_id = users.id
GROUP BY 1, 2, 3;

CREATE MATERIALIZED VIEW purchase_summary AS
SELECT item_id, SUM(purchase_price * quantity) AS revenue, COUNT(id) AS orders, SUM(quantity) AS items_sold
FROM purchases GROUP BY 1;

CREATE MATERIALIZED VIEW high_value_customers AS
SELECT users.id, users.email, SUM(purchase_price * quantity) AS lifetime_value, COUNT(*) AS purchases
FROM users JOIN purchases ON purchases.user_id = users.id
GROUP BY 1, 2
HAVING SUM(purchase_price * quantity) > 100;

CREATE SINK pageviews_by_user_segment_sink FROM pageviews_by_user_segment
INTO KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.sink.pageviews_by_user_segment'
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081';

CREATE SINK purchase_summary_sink FROM purchase_summary
INTO KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.sink.purchase_summary' KEY (item_id)
FORMAT JSON ENVELOPE UPSERT;

CREATE SINK high_value_customers_sink FROM high_value_customers
INTO KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.sink.high_value_customers'
WITH (reuse_topic=true, consistency_topic='{prefix}.sink.high_value_customers-consistency')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081';
