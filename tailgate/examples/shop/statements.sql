-- Page views by user segment. Host names stand for this machine's: the demo puts the addresses of its Kafka and registry here.
CREATE SOURCE raw_pageviews FROM KAFKA BROKER 'kafka:9092' TOPIC 'pageviews' FORMAT BYTES;

CREATE SOURCE users FROM KAFKA BROKER 'kafka:9092' TOPIC 'mysql.shop.users'
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

-- When the newest page view that is in the views was sent: what the demo's freshness is measured by.
CREATE MATERIALIZED VIEW newest_pageview AS
SELECT max((data->'sent_at')::bigint) AS sent_at
FROM users JOIN (SELECT convert_from(data, 'utf8')::jsonb AS data FROM raw_pageviews) ON (data->'user_id')::INT = users.id;

CREATE SINK pageviews_by_user_segment_sink FROM pageviews_by_user_segment
INTO KAFKA BROKER 'kafka' TOPIC 'pageviews-user-segment-sink'
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081';
