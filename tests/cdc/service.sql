-- Scenario 5, its four topics as Debezium writes them; its view is examples/user_information's. {prefix}: of the topics.
CREATE SOURCE users (id bigint, username text, name text, description text, joined_at timestamptz, PRIMARY KEY (id) NOT ENFORCED)
FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.users' KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE DEBEZIUM;

CREATE SOURCE tweets (id bigint, user_id bigint, text text, PRIMARY KEY (id) NOT ENFORCED)
FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.tweets' FORMAT JSON ENVELOPE DEBEZIUM;

CREATE SOURCE follows (id bigint, follower_id bigint, followee_id bigint, PRIMARY KEY (id) NOT ENFORCED)
FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.follows' FORMAT JSON ENVELOPE DEBEZIUM;

CREATE SOURCE likes (id bigint, user_id bigint, tweet_id bigint, PRIMARY KEY (id) NOT ENFORCED)
FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.likes' KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE DEBEZIUM;

CREATE SOURCE notes (id bigint, body text)
FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.notes' FORMAT JSON ENVELOPE DEBEZIUM;

CREATE MATERIALIZED VIEW popular AS
SELECT tweet_id, count(*) AS likes FROM likes JOIN tweets ON tweets.id = likes.tweet_id GROUP BY 1 HAVING count(*) > 1;

CREATE SINK user_information_sink FROM user_information
INTO KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.sink.user_information' KEY (id)
WITH (consistency_topic='{prefix}.sink.user_information-consistency')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081' ENVELOPE DEBEZIUM;

CREATE SINK popular_sink FROM popular
INTO KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.sink.popular' KEY (tweet_id)
FORMAT JSON ENVELOPE UPSERT;
