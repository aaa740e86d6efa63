-- Privileges on columns, as in PostgreSQL. Each line has the role that executes the statement.
boss: CREATE TABLE t (a int PRIMARY KEY, b int NOT NULL DEFAULT 0, c text, CHECK (b >= 0))
boss: INSERT INTO t VALUES (1, 10, 'x'), (2, 20, 'y')
boss: CREATE TABLE u (a int, b int)
boss: INSERT INTO u VALUES (1, 1), (3, 3)
boss: GRANT ALL ON u TO low
low: SELECT count(*) FROM t
low: SELECT a FROM t
boss: GRANT SELECT (nope) ON t TO low
boss: GRANT DELETE (a) ON t TO low
boss: GRANT USAGE (a) ON t TO low
boss: GRANT SELECT (a) ON SCHEMA public TO low
boss: GRANT SELECT () ON t TO low
boss: GRANT SELECT (a) ON t TO nobody_of_this_name
boss: GRANT SELECT (a), INSERT (a, c), UPDATE (c) ON t TO low
low: SELECT a FROM t ORDER BY a
low: SELECT count(*), 1 FROM t
low: SELECT 1 FROM t
low: SELECT b FROM t
low: SELECT * FROM t
low: SELECT t FROM t
low: SELECT t::text FROM t
low: SELECT t.* FROM t
low: SELECT row_to_json(t) FROM t
low: SELECT (t).a FROM t
low: TABLE t
low: SELECT a FROM t WHERE b = 10
low: SELECT a FROM t ORDER BY b
low: SELECT max(a) FROM t GROUP BY b
low: SELECT max(a) FROM t HAVING max(b) > 1
low: SELECT max(a) FILTER (WHERE b > 1) FROM t
low: SELECT row_number() OVER (ORDER BY b) FROM t
low: SELECT x.a FROM (SELECT * FROM t) AS x
low: SELECT x.a FROM (SELECT a FROM t) AS x ORDER BY 1
low: SELECT x.one FROM t AS x (one, two) ORDER BY 1
low: SELECT x.two FROM t AS x (one, two)
low: SELECT a FROM t JOIN u USING (a)
low: SELECT t.a FROM t JOIN u USING (a, b)
low: SELECT u.a FROM t NATURAL JOIN u
low: SELECT t.a FROM t JOIN u ON t.a = u.a
low: SELECT t.a FROM t JOIN u ON t.b = u.a
low: SELECT j.a FROM (t CROSS JOIN u) AS j (a, b, c, d, e) ORDER BY 1
low: SELECT j.b FROM (t CROSS JOIN u) AS j (a, b, c, d, e)
low: SELECT u.a FROM t, u WHERE t.a = u.a
low: SELECT * FROM u WHERE EXISTS (SELECT FROM t WHERE t.b = u.b)
low: SELECT * FROM u WHERE EXISTS (SELECT FROM t WHERE t.a = u.a)
low: SELECT (SELECT max(t.b) FROM t) FROM u
low: SELECT a, (SELECT t.b) FROM t
low: SELECT l.x FROM t, LATERAL (SELECT t.a AS x) AS l ORDER BY 1
low: SELECT l.x FROM t, LATERAL (SELECT t.b AS x) AS l
low: WITH w AS (SELECT b FROM t) SELECT 1 FROM w
low: SELECT a FROM t UNION SELECT b FROM t
low: SELECT DISTINCT ON (b) a FROM t
low: SELECT generate_series(1, b) FROM t
low: SELECT public.t.a FROM public.t ORDER BY 1
low: SELECT public.t.b FROM public.t
low: COPY t (a) TO STDOUT
low: COPY t TO STDOUT
low: COPY t (a, b) TO STDOUT
low: COPY (SELECT a FROM t ORDER BY a) TO STDOUT
low: SELECT a FROM t FOR UPDATE
low: SELECT a FROM t FOR SHARE
low: LOCK TABLE t IN ACCESS SHARE MODE
low: INSERT INTO t VALUES (3, 30)
low: INSERT INTO t VALUES (3)
low: INSERT INTO t (a, b) VALUES (4, 40)
low: INSERT INTO t (a, c) VALUES (4, 'z')
low: INSERT INTO t (a, b) VALUES (5, DEFAULT)
low: INSERT INTO t (a, c) SELECT 5, 'v'
low: INSERT INTO t DEFAULT VALUES
low: INSERT INTO t (a) VALUES (6) RETURNING a
low: INSERT INTO t (a) VALUES (7) RETURNING b
low: INSERT INTO t (a) VALUES (7) RETURNING *
low: INSERT INTO t (a) VALUES (7) RETURNING 1
low: INSERT INTO t (a) VALUES (1)
low: INSERT INTO t (c) VALUES ('no key')
low: INSERT INTO t (a, c) VALUES (1, 'q') ON CONFLICT DO NOTHING
low: INSERT INTO t (a, c) VALUES (1, 'q') ON CONFLICT (a) DO NOTHING
low: INSERT INTO t (a, c) VALUES (1, 'q') ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING
low: INSERT INTO t (a, c) VALUES (1, 'q') ON CONFLICT (a) DO UPDATE SET c = 'w'
low: INSERT INTO t (a, c) VALUES (1, 'q') ON CONFLICT (a) DO UPDATE SET b = 1
low: INSERT INTO t (a, c) VALUES (1, 'q') ON CONFLICT (a) DO UPDATE SET c = excluded.a::text
low: INSERT INTO t (a, c) VALUES (1, 'q') ON CONFLICT (a) DO UPDATE SET c = excluded.c
low: INSERT INTO t (a, c) VALUES (1, 'q') ON CONFLICT (a) DO UPDATE SET c = t.b::text
low: INSERT INTO t (a, c) VALUES (1, 'q') ON CONFLICT (a) DO UPDATE SET c = 'r' WHERE t.b > 1
low: INSERT INTO t (a, c) VALUES (1, 'q') ON CONFLICT (a) DO UPDATE SET c = 'r' WHERE t.a > 1
low: UPDATE t SET c = 'u'
low: UPDATE t SET c = 'u' WHERE a = 1
low: UPDATE t SET c = 'u' WHERE b = 10
low: UPDATE t SET c = c || 'u'
low: UPDATE t SET c = a::text
low: UPDATE t SET b = 1
low: UPDATE t SET b = DEFAULT
low: UPDATE t SET (c, b) = ('p', 1)
low: UPDATE t SET c = 'f' FROM u WHERE t.a = u.a
low: UPDATE t SET c = 'f' FROM u WHERE t.b = u.a
low: UPDATE t SET c = 'v' WHERE a = 1 RETURNING a
low: UPDATE t SET c = 'v' WHERE a = 1 RETURNING c
low: UPDATE t SET c = 'v' WHERE a = 1 RETURNING *
low: UPDATE u SET a = t.a FROM t WHERE t.a = u.a
low: UPDATE u SET a = t.b FROM t WHERE t.a = u.a
low: DELETE FROM t
low: TRUNCATE t
boss: GRANT DELETE ON t TO low
low: DELETE FROM t WHERE a = 7
low: DELETE FROM t WHERE b = 7
low: DELETE FROM t WHERE a = 6 RETURNING a
low: DELETE FROM t WHERE a = 5 RETURNING *
low: DELETE FROM t USING u WHERE t.a = u.a AND u.b = 3
low: DELETE FROM t USING u WHERE t.b = u.a
low: DELETE FROM t WHERE false
boss: REVOKE DELETE ON t FROM low
low: COPY t (a, c) FROM STDIN
low: COPY t (a, b) FROM STDIN
low: COPY t FROM STDIN
low: MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE SET c = 'm'
low: MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE SET c = 'm' || t.b
low: MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN UPDATE SET b = 1
low: MERGE INTO t USING u ON t.b = u.a WHEN MATCHED THEN UPDATE SET c = 'm'
low: MERGE INTO t USING u ON t.a = u.a WHEN MATCHED AND t.b > 1 THEN UPDATE SET c = 'm'
low: MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE
low: MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN INSERT (a, c) VALUES (u.a, 'i')
low: MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (u.a, 1)
low: MERGE INTO t USING u ON t.a = u.a WHEN NOT MATCHED THEN INSERT VALUES (u.a)
low: MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DO NOTHING
low: PREPARE p AS SELECT a FROM t ORDER BY a
low: EXECUTE p
boss: REVOKE SELECT (a) ON t FROM low
low: EXECUTE p
low: SELECT count(*) FROM t
low: INSERT INTO t (a) VALUES (1)
low: INSERT INTO t (a, c) VALUES (NULL, 'n')
low: UPDATE t SET c = 'k'
low: UPDATE t SET c = 'k' WHERE a = 1
boss: GRANT SELECT ON t TO low
low: SELECT * FROM t ORDER BY a
boss: REVOKE SELECT (a) ON t FROM low
low: SELECT a FROM t ORDER BY a
boss: GRANT SELECT (b), SELECT (c) ON t TO low
boss: REVOKE SELECT ON t FROM low
low: SELECT b FROM t
low: SELECT c FROM t
boss: GRANT ALL (c) ON t TO PUBLIC
low: SELECT c FROM t ORDER BY c
helper: SELECT c FROM t ORDER BY c
helper: SELECT a FROM t
boss: REVOKE ALL (c) ON t FROM PUBLIC
helper: SELECT c FROM t
boss: GRANT SELECT (a, b, c) ON t TO helper
helper: SELECT * FROM t ORDER BY a
helper: SELECT t::text FROM t ORDER BY a
boss: ALTER TABLE t ADD COLUMN d int
helper: SELECT a, b, c FROM t ORDER BY a
helper: SELECT * FROM t
helper: SELECT t FROM t
boss: ALTER TABLE t DROP COLUMN d
helper: SELECT * FROM t ORDER BY a
boss: ALTER TABLE t RENAME COLUMN c TO e
helper: SELECT e FROM t ORDER BY e
boss: GRANT SELECT (c) ON t TO helper
boss: ALTER TABLE t ALTER COLUMN e TYPE varchar(20)
helper: SELECT e FROM t ORDER BY e
boss: ALTER TABLE t ALTER COLUMN b TYPE bigint
helper: SELECT b FROM t ORDER BY b
boss: ALTER TABLE t DROP COLUMN e
helper: SELECT * FROM t ORDER BY a
boss: REVOKE ALL ON t FROM helper
helper: SELECT a FROM t
boss: DROP TABLE u
boss: CREATE TABLE s (id int PRIMARY KEY, secret text, public text)
boss: INSERT INTO s VALUES (1, 'hidden', 'shown')
boss: CREATE VIEW v AS SELECT id, secret, public AS name FROM s
boss: GRANT SELECT (id, name), UPDATE (name), INSERT (id, name) ON v TO low
low: SELECT id, name FROM v
low: SELECT secret FROM v
low: SELECT * FROM v
low: SELECT count(*) FROM v
low: SELECT id FROM s
low: UPDATE v SET name = 'changed' WHERE id = 1
low: UPDATE v SET name = 'changed' WHERE secret = 'hidden'
low: UPDATE v SET secret = 'x'
low: UPDATE v SET name = secret
low: INSERT INTO v (id, name) VALUES (2, 'two')
low: INSERT INTO v (id, secret) VALUES (3, 'three')
low: INSERT INTO v VALUES (3)
low: INSERT INTO v (id, name) VALUES (2, 'again')
low: INSERT INTO v (id, name) VALUES (2, 'again') ON CONFLICT (id) DO UPDATE SET name = excluded.name
low: INSERT INTO v (id, name) VALUES (2, 'again') ON CONFLICT (id) DO UPDATE SET name = excluded.secret
low: INSERT INTO v (id, name) VALUES (4, 'four') RETURNING id
low: INSERT INTO v (id, name) VALUES (5, 'five') RETURNING secret
low: DELETE FROM v WHERE id = 2
boss: GRANT DELETE ON v TO low
low: DELETE FROM v WHERE id = 2
low: DELETE FROM v WHERE secret IS NULL
boss: CREATE VIEW checked AS SELECT id, public FROM s WHERE public <> 'bad' WITH CHECK OPTION
boss: GRANT INSERT (id, public), UPDATE (public), SELECT (id) ON checked TO low
low: INSERT INTO checked (id, public) VALUES (9, 'bad')
low: UPDATE checked SET public = 'bad' WHERE id = 1
boss: GRANT SELECT (id, public) ON s TO helper
operator: GRANT CREATE ON SCHEMA public TO helper
helper: CREATE VIEW h AS SELECT id, public FROM s
helper: CREATE VIEW h2 AS SELECT id FROM h
helper: GRANT SELECT, UPDATE, INSERT, DELETE ON h, h2 TO low
low: SELECT * FROM h ORDER BY id
low: SELECT * FROM h2 ORDER BY id
low: UPDATE h SET public = 'by low'
boss: GRANT UPDATE (public), INSERT (id) ON s TO helper
low: UPDATE h SET public = 'by low' WHERE id = 1
low: UPDATE h SET id = 77 WHERE id = 1
low: INSERT INTO h2 VALUES (70)
low: INSERT INTO h VALUES (71, 'x')
low: DELETE FROM h2
boss: REVOKE SELECT (public) ON s FROM helper
low: SELECT id FROM h
low: SELECT id FROM h2
low: UPDATE h SET public = 'by low'
low: UPDATE h SET public = 'by low' WHERE id = 1
low: INSERT INTO h2 VALUES (72)
boss: GRANT REFERENCES (id) ON s TO low
low: CREATE TABLE lo.r (id int REFERENCES s)
low: CREATE TABLE lo.r2 (id text REFERENCES s (secret))
low: INSERT INTO lo.r VALUES (1), (100)
low: DROP TABLE lo.r
boss: REVOKE REFERENCES (id) ON s FROM low
low: CREATE TABLE lo.s (id int REFERENCES s (id))
low: CREATE TABLE lo.own (id int PRIMARY KEY, up int REFERENCES lo.own)
low: DROP TABLE lo.own
low: CREATE TABLE lo.r (id int REFERENCES s (id))
boss: GRANT REFERENCES ON s TO low
low: CREATE TABLE lo.r (id int REFERENCES s (id))
low: DROP TABLE lo.r
boss: GRANT TRUNCATE ON s TO low
low: TRUNCATE s
boss: GRANT ALL ON s TO low
boss: GRANT SELECT (id), INSERT (id, secret) ON s TO low
boss: GRANT UPDATE (id) ON s TO PUBLIC
boss: SELECT relacl FROM pg_class WHERE relname = 's'
boss: SELECT attname, attacl FROM pg_attribute WHERE attrelid = 's'::regclass AND attnum > 0 ORDER BY attnum
boss: SELECT attname, attacl FROM pg_attribute WHERE attrelid = 'v'::regclass AND attnum > 0 ORDER BY attnum
low: SELECT has_table_privilege('s', 'SELECT'), has_table_privilege('helper', 's', 'SELECT'), has_table_privilege('s', 'TRIGGER')
low: SELECT has_column_privilege('helper', 's', 'id', 'SELECT'), has_column_privilege('helper', 's', 'secret', 'SELECT')
low: SELECT has_column_privilege('helper', 's', 'id', 'UPDATE'), has_column_privilege('helper', 's'::regclass, 2::smallint, 'UPDATE')
low: SELECT has_column_privilege('s', 'id', 'SELECT'), has_column_privilege('s', 'secret', 'SELECT WITH GRANT OPTION')
boss: SELECT has_column_privilege('s', 'id', 'SELECT WITH GRANT OPTION'), has_any_column_privilege('v', 'UPDATE')
low: SELECT has_any_column_privilege('v', 'UPDATE'), has_any_column_privilege('helper', 'v', 'SELECT'), has_table_privilege('v', 'UPDATE')
low: SELECT has_any_column_privilege('helper', 's', 'SELECT'), has_any_column_privilege('helper', 's', 'REFERENCES')
low: SELECT has_column_privilege('s', 'nope', 'SELECT')
low: SELECT has_column_privilege('s', '--1', 'SELECT')
low: SELECT has_column_privilege('s', '²', 'SELECT')
low: SELECT has_table_privilege('²', 's', 'SELECT')
low: SELECT has_schema_privilege('²', 'USAGE')
low: SELECT has_column_privilege('s', 'id', 'DELETE')
low: SELECT has_any_column_privilege('s', 'DELETE')
low: SELECT has_table_privilege('s', 'USAGE')
low: SELECT has_column_privilege('s', 99::smallint, 'SELECT') IS NULL
low: SELECT grantor, grantee, table_name, column_name, privilege_type, is_grantable FROM information_schema.column_privileges WHERE table_schema = 'public' ORDER BY 1, 2, 3, 4, 5
helper: SELECT grantor, grantee, table_name, column_name, privilege_type, is_grantable FROM information_schema.role_column_grants WHERE table_schema = 'public' ORDER BY 1, 2, 3, 4, 5
low: SELECT grantor, grantee, table_name, privilege_type, is_grantable, with_hierarchy FROM information_schema.table_privileges WHERE table_schema = 'public' ORDER BY 1, 2, 3, 4
helper: SELECT grantor, grantee, table_name, privilege_type, is_grantable, with_hierarchy FROM information_schema.role_table_grants WHERE table_schema = 'public' ORDER BY 1, 2, 3, 4
low: SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2
helper: SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, 2
helper: SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1
boss: REVOKE ALL ON s FROM low
boss: SELECT relacl FROM pg_class WHERE relname = 's'
boss: SELECT attname, attacl FROM pg_attribute WHERE attrelid = 's'::regclass AND attnum > 0 ORDER BY attnum
boss: BEGIN
boss: CREATE TABLE w (a int, b int)
boss: GRANT SELECT (b) ON w TO low
boss: INSERT INTO w VALUES (1, 2)
boss: COMMIT
low: SELECT b FROM w
low: SELECT a FROM w
boss: BEGIN
boss: GRANT SELECT (a) ON w TO low
boss: ROLLBACK
low: SELECT a FROM w
boss: CREATE TABLE n (id serial, x int)
boss: GRANT TRUNCATE ON n TO low
low: TRUNCATE n
low: TRUNCATE n RESTART IDENTITY
boss: CREATE TABLE k (a int PRIMARY KEY, b int, c int CHECK (c > 0))
boss: INSERT INTO k VALUES (1, 5, 1)
boss: GRANT INSERT (a, b), UPDATE (c) ON k TO low
low: UPDATE k SET c = -1
low: WITH i AS (INSERT INTO k (a, b) VALUES (2, 2)) UPDATE k SET c = -1
low: WITH u AS (UPDATE k SET c = -2) INSERT INTO k (a, b) VALUES (3, 7)
low: INSERT INTO k (a) VALUES (1)
