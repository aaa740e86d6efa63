-- CREATE TABLE
CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL DEFAULT 'x', n numeric(6,2), at timestamptz);
CREATE TABLE t (id int);
CREATE TABLE IF NOT EXISTS t (id int);
CREATE TABLE two (a int, b text, c float8, CONSTRAINT two_key PRIMARY KEY (a, b));
CREATE TABLE bag (a int, b text);
CREATE TABLE kinds (i2 smallint, i4 int, i8 bigint, f4 real, f8 double precision, n numeric(8,3), b boolean, t text, v varchar(3), c char(3), d date, ts timestamp, tz timestamptz, u uuid, by bytea);
CREATE TABLE defaults (a int DEFAULT 5, b numeric(4,1) DEFAULT 1.25, c int DEFAULT (2 + 3), d bigint NOT NULL DEFAULT 7);
INSERT INTO defaults DEFAULT VALUES RETURNING *;
INSERT INTO defaults (b) VALUES (DEFAULT), (2) RETURNING *;
INSERT INTO defaults (b) VALUES (1.25), (length('ab')), (NULL), (0.05::numeric(5,3) * 3) RETURNING b;
DROP TABLE IF EXISTS nothing;
CREATE TABLE bad (a int, a text);
CREATE TABLE bad (a int, PRIMARY KEY (b));
CREATE TABLE bad (a int PRIMARY KEY, PRIMARY KEY (a));
CREATE TABLE bad (a int, PRIMARY KEY (a, a));
CREATE TABLE bad (a int DEFAULT 'x');
CREATE TABLE bad (a int DEFAULT true);
CREATE TABLE bad (a nosuch);
CREATE TABLE bad (a int NOT NULL NULL);

-- INSERT
INSERT INTO t VALUES (1, 'one', 1.005, '2026-01-01 00:00:00+00'), (2, 'two', NULL, NULL);
INSERT INTO t (id) VALUES (3) RETURNING *;
INSERT INTO t (n, id) VALUES ('12.345', '4') RETURNING id, n, name || '!' AS shout;
INSERT INTO t VALUES (5, DEFAULT, DEFAULT);
INSERT INTO t VALUES (-1, 'r', 2.675), (-2, 'r', -2.665), (-3, 'r', 9999.995);
INSERT INTO t VALUES (-1, 'r', 2.675), (-2, 'r', -2.665), (-3, 'r', 5);
UPDATE t SET n = n * 1000000 WHERE id = -1;
INSERT INTO t DEFAULT VALUES;
INSERT INTO t VALUES (1, 'again');
INSERT INTO t VALUES (6, 'a'), (7, 'b'), (6, 'c');
INSERT INTO t VALUES (8, NULL);
INSERT INTO t VALUES (9, 'a'), (10, NULL), (1, 'dup');
INSERT INTO t VALUES (9, 'a'), (1, 'dup'), (10, NULL);
INSERT INTO t VALUES (11, 'a', 99999);
INSERT INTO t VALUES (11, 'a', 'abc');
INSERT INTO t VALUES ('x', 'a');
INSERT INTO t VALUES (true, 'a');
INSERT INTO t VALUES (now(), 'a');
INSERT INTO t VALUES (1, 2, 3, 4, 5);
INSERT INTO t (id, name) VALUES (1);
INSERT INTO t (id) VALUES (1, 2);
INSERT INTO t (id, nope) VALUES (1, 2);
INSERT INTO t (id, id) VALUES (1, 2);
INSERT INTO t VALUES (1, 'a'), (2);
INSERT INTO nosuch VALUES (1);
INSERT INTO t SELECT id + 100, name FROM t WHERE id < 3 RETURNING id, name;
INSERT INTO t SELECT 200, 'text';
INSERT INTO t (id, at) SELECT 201, '2026-05-05 10:00:00+02';
INSERT INTO t (id) SELECT 'x';
INSERT INTO t (id) SELECT name FROM t;
INSERT INTO t (id) SELECT 1, 2;
INSERT INTO t (id, name) SELECT 1;
INSERT INTO t (id) VALUES (300 + 1), (300 + 2) RETURNING id * 2 AS twice, t.*;
INSERT INTO t AS x (id) VALUES (400) RETURNING x.id;
INSERT INTO t AS x (id) VALUES (401) RETURNING t.id;
INSERT INTO t (id) VALUES (402) RETURNING nope;
INSERT INTO t (id) SELECT 500 WHERE false;
INSERT INTO t (id) VALUES (2147483648);
INSERT INTO t (id) VALUES (1.6), (7.5 + 500);
SELECT * FROM t ORDER BY id;

-- ON CONFLICT
INSERT INTO t VALUES (1, 'c'), (600, 'c') ON CONFLICT DO NOTHING;
INSERT INTO t VALUES (1, 'c'), (601, 'c'), (601, 'd') ON CONFLICT (id) DO NOTHING RETURNING id, name;
INSERT INTO t VALUES (1, 'up'), (602, 'new') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name RETURNING id, name;
INSERT INTO t VALUES (1, 'up2') ON CONFLICT (id) DO UPDATE SET name = t.name || excluded.name, n = excluded.id + 0.5 RETURNING *;
INSERT INTO t VALUES (1, 'no'), (2, 'yes') ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE t.id = 2 RETURNING id, name;
INSERT INTO t VALUES (603, 'a'), (603, 'b') ON CONFLICT (id) DO UPDATE SET name = excluded.name;
INSERT INTO t VALUES (1, 'x') ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING;
INSERT INTO t VALUES (1, 'x') ON CONFLICT ON CONSTRAINT nope DO NOTHING;
INSERT INTO t VALUES (1, 'x') ON CONFLICT (name) DO NOTHING;
INSERT INTO t VALUES (1, 'x') ON CONFLICT (nope) DO NOTHING;
INSERT INTO t VALUES (1, 'x') ON CONFLICT DO UPDATE SET name = 'y';
INSERT INTO t VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET name = NULL;
INSERT INTO t VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET id = 2;
INSERT INTO t VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET nope = 2;
INSERT INTO t VALUES (1, NULL) ON CONFLICT (id) DO NOTHING;
INSERT INTO bag VALUES (1, 'x') ON CONFLICT DO NOTHING;
INSERT INTO two VALUES (1, 'a', 1), (1, 'b', 2) ON CONFLICT (b, a) DO UPDATE SET c = 0;
INSERT INTO two VALUES (1, 'a', 5), (2, 'b', 2) ON CONFLICT (a, b) DO UPDATE SET c = two.c + excluded.c RETURNING *;
INSERT INTO two VALUES (1, 'a', 5);
SELECT * FROM two ORDER BY a, b;

-- UPDATE
UPDATE t SET n = 1;
UPDATE t SET name = name || '?', n = n + id WHERE id < 4 RETURNING id, name, n;
UPDATE t SET id = id + 1000 WHERE id = 3 RETURNING id;
UPDATE t SET id = 2 WHERE id = 1;
UPDATE t SET name = NULL WHERE id = 1;
UPDATE t SET name = DEFAULT WHERE id = 1 RETURNING name;
UPDATE t SET (name, n) = ('pair', 3) WHERE id = 1 RETURNING name, n;
UPDATE t SET name = 'a', name = 'b';
UPDATE t SET nope = 1;
UPDATE t SET n = 'zzz' WHERE id = 1;
UPDATE t SET n = true WHERE id = 1;
UPDATE t SET name = 'x' WHERE id = 123456;
UPDATE t SET name = bag.b FROM bag WHERE bag.a = t.id;
INSERT INTO bag VALUES (1, 'joined'), (1, 'joined'), (2, 'other'), (2, 'other'), (9, NULL);
UPDATE t SET name = bag.b FROM bag WHERE bag.a = t.id AND bag.b <> 'x' RETURNING t.id, t.name, bag.b;
UPDATE t AS x SET name = 'aliased' WHERE x.id = 1 RETURNING x.name;
UPDATE t AS x SET name = 'aliased' WHERE t.id = 1;
UPDATE bag SET a = a + 1 WHERE a = 1 RETURNING a, b;
UPDATE bag SET b = 'z' FROM two WHERE two.a = bag.a;
SELECT * FROM bag ORDER BY a, b;
UPDATE nosuch SET a = 1;
UPDATE t SET n = 1 WHERE 5;
UPDATE t SET n = count(*);

-- subqueries
INSERT INTO bag VALUES (50, 'sub'), (51, 'sub');
UPDATE t SET name = (SELECT max(b) FROM bag WHERE bag.a = t.id + 48) WHERE id = 2 RETURNING id, name;
UPDATE t SET n = (SELECT count(*) FROM t AS o WHERE o.id < t.id) WHERE EXISTS (SELECT 1 FROM bag WHERE a - 49 = t.id) RETURNING id, n;
INSERT INTO t (id, name) VALUES (900, (SELECT min(b) FROM bag)) RETURNING name;
INSERT INTO t (id) SELECT a + 900 FROM bag WHERE a NOT IN (SELECT id FROM t) RETURNING id;
DELETE FROM t WHERE id IN (SELECT a + 900 FROM bag) RETURNING id;
DELETE FROM t WHERE id = (SELECT max(id) FROM t) RETURNING id;
INSERT INTO t (id) VALUES (901) RETURNING (SELECT count(*) > 5 FROM t);
CREATE TABLE unread (n int);
CREATE TABLE unread2 (n int);
CREATE TABLE unread3 (n int);
CREATE TABLE unread4 (n int);
INSERT INTO unread VALUES (7), (8);
INSERT INTO t (id) VALUES (950), (951) RETURNING id, (SELECT max(n) FROM unread), id IN (SELECT n + 943 FROM unread) AS known;
UPDATE t SET name = 'r' WHERE id = 950 RETURNING (SELECT count(*) FROM unread2) AS rows;
INSERT INTO t (id) VALUES (950) ON CONFLICT (id) DO UPDATE SET name = 'c' RETURNING EXISTS (SELECT FROM unread3), name;
DELETE FROM t WHERE id IN (950, 951) RETURNING (SELECT max(n) FROM unread4);
INSERT INTO t WITH w AS (SELECT 902 AS i) SELECT i, 'with' FROM w RETURNING id, name;
UPDATE t SET name = 'x' WHERE id = (SELECT a FROM bag);
WITH w AS (SELECT 903 AS i), x (j) AS (SELECT i + 1 FROM w) INSERT INTO t (id) SELECT i FROM w UNION ALL SELECT j FROM x RETURNING id;
WITH w AS (SELECT 903 AS i) UPDATE t SET name = 'w' || w.i FROM w WHERE t.id = w.i RETURNING name;
WITH w AS (SELECT 904 AS i) DELETE FROM t WHERE id IN (SELECT i FROM w) RETURNING id;
WITH w AS (SELECT 903 AS i) DELETE FROM t USING w WHERE id = i RETURNING t.id, w.i;
DELETE FROM bag WHERE a >= 50;

-- DELETE
DELETE FROM bag WHERE a = 9 RETURNING *;
DELETE FROM bag USING two WHERE bag.a = two.a RETURNING bag.a;
DELETE FROM bag;
DELETE FROM t WHERE id = 123456;
DELETE FROM t WHERE id >= 600 RETURNING id;
DELETE FROM t AS x WHERE x.id = 200;
DELETE FROM t WHERE nope = 1;
DELETE FROM nosuch;
SELECT count(*) FROM t;

-- values of all kinds
INSERT INTO kinds VALUES (1, 2, 3, 1.5, 2.5, 1234.5678, 't', 'text', 'abc', 'ab', '2026-02-03', '2026-02-03 04:05:06.789', '2026-02-03 04:05:06+02', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', '\xdeadbeef');
INSERT INTO kinds (v) VALUES ('abcd');
INSERT INTO kinds (v) VALUES ('abc   ');
INSERT INTO kinds (c) VALUES ('abcd');
INSERT INTO kinds (i2) VALUES (40000);
INSERT INTO kinds (i2) VALUES ('40000');
INSERT INTO kinds (i4) VALUES (3000000000);
INSERT INTO kinds (i8) VALUES (1.5);
INSERT INTO kinds (n) VALUES (123456);
INSERT INTO kinds (n) VALUES (1e5);
INSERT INTO kinds (f4) VALUES (1e10);
INSERT INTO kinds (b) VALUES ('maybe');
INSERT INTO kinds (b) VALUES (1);
INSERT INTO kinds (d) VALUES ('2026-02-30');
INSERT INTO kinds (d) VALUES ('nonsense');
INSERT INTO kinds (t) VALUES (5);
INSERT INTO kinds (t) VALUES (DATE '2026-01-01');
INSERT INTO kinds (ts) VALUES (DATE '2026-01-01');
INSERT INTO kinds (u) VALUES ('xyz');
INSERT INTO kinds (i4) VALUES (5 / 0);
INSERT INTO kinds (i4) VALUES (2147483647 + 1);
SELECT * FROM kinds ORDER BY i4, v, c, i8, n, t, ts;

-- prepared
PREPARE ins (int, text) AS INSERT INTO bag VALUES ($1, $2) RETURNING a + 1;
EXECUTE ins (70, 'p');
EXECUTE ins (71, NULL);
EXECUTE ins (72);
PREPARE del AS DELETE FROM bag WHERE a >= $1;
EXECUTE del (70);
DEALLOCATE ins;

-- as clients see them
SELECT column_name, column_default, is_nullable FROM information_schema.columns WHERE table_name = 'two' ORDER BY ordinal_position;
SELECT conname, contype::text FROM pg_constraint WHERE conrelid = 'two'::regclass ORDER BY 1;
SELECT attname::text, pg_get_expr(adbin, adrelid) FROM pg_attrdef d JOIN pg_attribute a ON adrelid = attrelid AND adnum = attnum WHERE adrelid = 'defaults'::regclass ORDER BY 1;

-- blocks
BEGIN;
INSERT INTO bag VALUES (1, 'in'), (2, 'in');
SELECT * FROM bag ORDER BY a;
UPDATE bag SET b = 'changed' WHERE a = 1;
SELECT * FROM bag ORDER BY a;
SAVEPOINT s;
DELETE FROM bag;
SELECT count(*) FROM bag;
ROLLBACK TO s;
SELECT * FROM bag ORDER BY a;
INSERT INTO t (id) VALUES (1);
SELECT 1;
ROLLBACK TO s;
INSERT INTO bag VALUES (3, 'after');
COMMIT;
SELECT * FROM bag ORDER BY a;
BEGIN;
DELETE FROM bag;
ROLLBACK;
SELECT count(*) FROM bag;
BEGIN;
INSERT INTO t (id) VALUES (700);
INSERT INTO t (id) VALUES (700);
COMMIT;
SELECT count(*) FROM t WHERE id = 700;
BEGIN READ ONLY;
INSERT INTO t (id) VALUES (701);
ROLLBACK;
INSERT INTO bag VALUES (10, 'x'); INSERT INTO bag VALUES (11, 'y'); SELECT count(*) FROM bag;
INSERT INTO bag VALUES (12, 'x'); INSERT INTO t (id) VALUES (1);
SELECT * FROM bag ORDER BY a;

-- not tables
CREATE VIEW v AS SELECT * FROM t;
INSERT INTO nosuch.t VALUES (1);

-- TRUNCATE, DROP
TRUNCATE bag, two;
SELECT count(*) FROM bag;
TRUNCATE nosuch;
TRUNCATE v;
DROP TABLE t;
DROP VIEW v;
DROP TABLE t, bag;
DROP TABLE t;
DROP TABLE IF EXISTS t;
DROP TABLE two;
DROP TABLE kinds;
CREATE TABLE tickets (id uuid DEFAULT gen_random_uuid() PRIMARY KEY, n int, lot float8 DEFAULT random());
INSERT INTO tickets (n) VALUES (1), (2), (3);
SELECT count(DISTINCT id), count(DISTINCT lot), bool_and(lot BETWEEN 0 AND 1) FROM tickets;
UPDATE tickets SET lot = random() * n;
SELECT count(*) FROM (SELECT n FROM tickets ORDER BY random() LIMIT 2) q;
DROP TABLE tickets;

-- the start of the transaction, next to the elements of arrays
SELECT now() > ALL (ARRAY['2020-01-01']::timestamptz[]), array_remove(ARRAY['2020-01-01']::timestamptz[], now());
SELECT array_position(ARRAY['2020-01-01']::timestamptz[], now()), width_bucket(now(), ARRAY['2020-01-01', '2021-01-01']::timestamptz[]);
SELECT array_replace(ARRAY['2020-01-01']::timestamptz[], now(), now() + '1 day'), cardinality(array_fill(now(), ARRAY[2]));

-- settings of PostgreSQL's planner, which clients set, have no effect
SET enable_hashagg = off;
SHOW enable_hashagg;
SET enable_hashagg = 3;
SET max_parallel_workers_per_gather = 0;
SHOW max_parallel_workers_per_gather;
SET max_parallel_workers_per_gather = 1025;
SET constraint_exclusion = on;
SHOW constraint_exclusion;
SHOW default_statistics_target;
SHOW maintenance_work_mem;
SHOW enable_sort;
