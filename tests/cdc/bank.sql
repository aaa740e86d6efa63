-- Transfers between accounts, each a transaction of three changes. {prefix}: of the topics; {format}, {accounts}, {transfers}: how they
-- are written, and the columns where that does not tell them.
CREATE SOURCE transactions FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.transaction' {format};

CREATE SOURCE accounts {accounts}
FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.accounts' {format}
ENVELOPE DEBEZIUM (TRANSACTION METADATA (SOURCE transactions, COLLECTION 'shop.accounts'));

CREATE SOURCE transfers {transfers}
FROM KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.shop.transfers' {format}
ENVELOPE DEBEZIUM (TRANSACTION METADATA (SOURCE transactions, COLLECTION 'shop.transfers'));

CREATE MATERIALIZED VIEW balances AS
SELECT a.id, a.balance, coalesce(i.n, 0) - coalesce(o.n, 0) AS moved
FROM accounts a
LEFT JOIN (SELECT target, sum(amount) AS n FROM transfers GROUP BY 1) i ON i.target = a.id
LEFT JOIN (SELECT source, sum(amount) AS n FROM transfers GROUP BY 1) o ON o.source = a.id;

-- Accounts that have half a transfer: none, at no time.
CREATE MATERIALIZED VIEW halves AS SELECT id, balance, moved FROM balances WHERE balance <> moved;

CREATE SINK balances_sink FROM balances
INTO KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.sink.balances'
WITH (consistency_topic='{prefix}.sink.balances-consistency')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081';

CREATE SINK halves_sink FROM halves
INTO KAFKA BROKER 'kafka:9092' TOPIC '{prefix}.sink.halves'
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081';
