-- What the shop adds: purchases and items, what is looked at, profiles that are flagged.
CREATE SOURCE items FROM KAFKA BROKER 'kafka:9092' TOPIC 'mysql.shop.items'
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081' ENVELOPE DEBEZIUM;

CREATE SOURCE purchases FROM KAFKA BROKER 'kafka:9092' TOPIC 'mysql.shop.purchases'
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081' ENVELOPE DEBEZIUM;

-- Key: the profile's user; value: why. A null value takes the flag away.
CREATE MATERIALIZED SOURCE flagged_profiles FROM KAFKA BROKER 'kafka:9092' TOPIC 'flagged_profiles' FORMAT TEXT ENVELOPE UPSERT;

-- Which page it is that was looked at: /products/7 is product 7.
CREATE VIEW pageview_details AS
SELECT
  user_id,
  regexp_match(url, '/(products|profiles)/')[1] AS kind,
  (regexp_match(url, '/(?:products|profiles)/(\d+)')[1])::INT AS target_id,
  ts
FROM pageviews;

CREATE MATERIALIZED VIEW purchase_summary AS
SELECT item_id, SUM(purchase_price * quantity) AS revenue, COUNT(id) AS orders, SUM(quantity) AS items_sold
FROM purchases GROUP BY 1;

CREATE MATERIALIZED VIEW item_pageviews AS
SELECT target_id AS item_id, COUNT(*) AS pageviews
FROM pageview_details WHERE kind = 'products' GROUP BY 1;

-- A materialized view over materialized views.
CREATE MATERIALIZED VIEW item_summary AS
SELECT
  items.name, items.category,
  SUM(purchase_summary.items_sold) AS items_sold,
  SUM(purchase_summary.orders) AS orders,
  SUM(purchase_summary.revenue) AS revenue,
  SUM(item_pageviews.pageviews) AS pageviews,
  SUM(purchase_summary.orders) / SUM(item_pageviews.pageviews)::FLOAT AS conversion_rate
FROM items
JOIN purchase_summary ON purchase_summary.item_id = items.id
JOIN item_pageviews ON item_pageviews.item_id = items.id
GROUP BY 1, 2;

CREATE MATERIALIZED VIEW high_value_customers AS
SELECT users.id, users.email, SUM(purchase_price * quantity) AS lifetime_value, COUNT(*) AS purchases
FROM users JOIN purchases ON purchases.user_id = users.id
GROUP BY 1, 2
HAVING SUM(purchase_price * quantity) > 100;

-- Who looked at a profile last: the two newest of each.
CREATE MATERIALIZED VIEW profile_views AS
SELECT owner_id, viewer_id, ts
FROM (SELECT DISTINCT target_id AS owner_id FROM pageview_details WHERE kind = 'profiles') AS owners,
LATERAL (
  SELECT user_id AS viewer_id, ts FROM pageview_details
  WHERE kind = 'profiles' AND target_id = owner_id
  ORDER BY ts DESC LIMIT 2
) AS viewers;

-- Purchases of the last half hour: they leave by themselves.
CREATE MATERIALIZED VIEW recent_purchases AS
SELECT id, user_id, item_id FROM purchases
WHERE mz_logical_timestamp() < extract(epoch FROM created_at) * 1000 + 30 * 60 * 1000;

CREATE MATERIALIZED VIEW flagged_profile_views AS
SELECT flagged_profiles.text AS reason, profile_views.*
FROM profile_views JOIN flagged_profiles ON flagged_profiles.key0::INT = profile_views.owner_id;

CREATE SINK high_value_customers_sink FROM high_value_customers
INTO KAFKA BROKER 'kafka:9092' TOPIC 'high-value-customers'
WITH (reuse_topic=true, consistency_topic='high-value-customers-consistency')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081';
