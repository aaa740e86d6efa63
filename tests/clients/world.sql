-- What clients find: a table with a column of each type, a table with a key, a view and a materialized view of it, an index, comments on nothing.
CREATE TABLE kinds (
    id int PRIMARY KEY, a_boolean boolean, a_smallint smallint, an_integer integer, a_bigint bigint, a_real real, a_double double precision,
    a_numeric numeric(12, 3), a_text text, a_varchar varchar(20), a_char char(5), a_bytea bytea, a_date date, a_time time,
    a_timestamp timestamp, a_timestamptz timestamptz, an_interval interval, a_uuid uuid, a_jsonb jsonb, integers int[], texts text[]
);
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer text NOT NULL, amount numeric(10, 2), placed timestamptz NOT NULL, paid boolean NOT NULL DEFAULT false
);
CREATE TABLE written (client text, n int, note text, PRIMARY KEY (client, n));
INSERT INTO kinds VALUES
    (1, true, 32767, 2147483647, 9223372036854775807, 1.5, 0.1, 123456789.125, 'plain', 'häßlich', 'ab', '\x00ff61', '2026-02-28', '23:59:59.5',
     '2026-01-02 03:04:05.678901', '2026-01-02 03:04:05.678901+00', '1 mon 2 days 03:04:05.5', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
     '{"a": [1, 2.5, null], "b": "ü"}', '{1,NULL,-3}', '{x,"y z",NULL,""}'),
    (2, false, -32768, -2147483648, -9223372036854775808, -1e30, '1e300', -0.001, '', '', '', '', '0001-01-01', '00:00',
     '1999-12-31 23:59:59', '1970-01-01 00:00:00+00', '-1 days', '00000000-0000-0000-0000-000000000000', '[]', '{}', '{}'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, true, 0, 0, 0, 0, 'NaN', 0, E'two\nlines\t"quoted" \\ \u20ac \U0001F600', 'x', 'xyz', '\x5c', '9999-12-31', '12:00', '2000-02-29 12:00',
     '2000-02-29 12:00:00+00', '00:00:00.000001', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '"text"', '{2147483647}', '{NULL}');
INSERT INTO orders SELECT n, 'customer ' || n % 10, n * 1.25, timestamptz '2026-01-01 00:00:00+00' + n * interval '1 hour', n % 3 = 0 FROM generate_series(1, 1000) AS n;
CREATE VIEW large_orders AS SELECT id, customer, amount FROM orders WHERE amount > 1000;
CREATE MATERIALIZED VIEW per_customer AS SELECT customer, count(*) AS orders, sum(amount) AS amount FROM orders GROUP BY customer;
CREATE INDEX orders_customer ON orders (customer);
CREATE SCHEMA annex;
CREATE TABLE annex.notes (id int PRIMARY KEY, note text);
CREATE FUNCTION doubled(n int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT n * 2';
