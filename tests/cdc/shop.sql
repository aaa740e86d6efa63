-- Sources and sinks of scenario 1 and what its longer demo adds; the views are examples/shop's. {prefix}: of the topics.
CREATE SOURCE raw_pageviews FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.pageviews' FORMAT BYTES;

CREATE SOURCE users FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.users'
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081' ENVELOPE DEBEZIUM;

CREATE SOURCE items FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.items'
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081' ENVELOPE DEBEZIUM;

CREATE SOURCE purchases FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.purchases'
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081' ENVELOPE DEBEZIUM;

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
