-- OWNER TO, as in PostgreSQL. Each line has the role that executes the statement; operator is a superuser.
operator: GRANT helper TO boss
boss: CREATE TABLE t (id serial PRIMARY KEY, x int)
boss: CREATE VIEW v AS SELECT x FROM t
boss: CREATE MATERIALIZED VIEW m AS SELECT 1 AS x
boss: CREATE UNIQUE INDEX m_x ON m (x)
boss: CREATE SEQUENCE s
boss: ALTER VIEW v OWNER TO low
boss: ALTER VIEW v OWNER TO nobody_of_this_name
boss: ALTER VIEW v OWNER TO helper
operator: GRANT CREATE ON SCHEMA public TO helper
boss: ALTER VIEW t OWNER TO helper
boss: ALTER VIEW nope OWNER TO helper
boss: ALTER VIEW IF EXISTS nope OWNER TO helper
low: ALTER VIEW v OWNER TO low
low: ALTER SEQUENCE s OWNER TO low
boss: ALTER VIEW v OWNER TO helper
helper: SELECT * FROM v
boss: SELECT * FROM v
boss: GRANT SELECT ON t TO helper
helper: SELECT * FROM v
boss: ALTER MATERIALIZED VIEW m OWNER TO helper
boss: ALTER SEQUENCE s OWNER TO helper
boss: ALTER SEQUENCE t_id_seq OWNER TO helper
boss: SELECT relname, rolname FROM pg_class JOIN pg_roles AS r ON relowner = r.oid WHERE relnamespace = 'public'::regnamespace AND relname IN ('t', 'v', 'm', 'm_x', 's', 't_id_seq') ORDER BY 1
helper: SELECT nextval('s')
low: SELECT nextval('s')
boss: ALTER TABLE t OWNER TO helper, ADD COLUMN y int
boss: ALTER TABLE t ADD COLUMN z int, OWNER TO helper
boss: ALTER TABLE t OWNER TO helper
boss: ALTER TABLE v OWNER TO boss
boss: ALTER TABLE s OWNER TO boss
boss: ALTER TABLE m OWNER TO boss
boss: SELECT relname, rolname FROM pg_class JOIN pg_roles AS r ON relowner = r.oid WHERE relnamespace = 'public'::regnamespace AND relname IN ('t', 'v', 'm', 'm_x', 's', 't_id_seq') ORDER BY 1
boss: BEGIN
boss: CREATE VIEW w AS SELECT 1 AS x
boss: ALTER VIEW w OWNER TO helper
boss: ROLLBACK
helper: DROP VIEW v
boss: DROP VIEW v
low: CREATE TYPE lo.mood AS ENUM ('sad', 'ok')
low: CREATE DOMAIN lo.positive AS int CHECK (VALUE > 0)
low: CREATE TABLE lo.r (a int)
low: SELECT 'ok'::lo.mood, 1::lo.positive, a FROM jsonb_populate_record(NULL::lo.r, '{"a": 1}')
boss: SELECT 'ok'::lo.mood::text
boss: SELECT 1::lo.positive
boss: SELECT a FROM jsonb_populate_record(NULL::lo.r, '{"a": 1}')
low: GRANT USAGE ON SCHEMA lo TO boss
boss: SELECT 'ok'::lo.mood::text, 1::lo.positive
boss: SELECT a FROM jsonb_populate_record(NULL::lo.r, '{"a": 1}')
boss: CREATE VIEW uses AS SELECT 'ok'::lo.mood::text AS x
low: REVOKE USAGE ON SCHEMA lo FROM boss
boss: SELECT x FROM uses
boss: CREATE TABLE o (x int)
boss: GRANT SELECT, INSERT ON o TO boss
boss: SELECT relacl FROM pg_class WHERE relname = 'o'
boss: SELECT grantee, privilege_type FROM information_schema.table_privileges WHERE table_name = 'o' ORDER BY 1, 2
boss: GRANT UPDATE (x) ON o TO boss
operator: ALTER TABLE o OWNER TO low
boss: SELECT x FROM o
boss: UPDATE o SET x = 1
low: SELECT x FROM o
boss: CREATE TABLE o2 (x int)
boss: GRANT SELECT ON o2 TO boss, low
operator: ALTER TABLE o2 OWNER TO low, ADD COLUMN y int
boss: SELECT x FROM o2
operator: ALTER TABLE o2 OWNER TO helper
low: SELECT x FROM o2
operator: CREATE SCHEMA given AUTHORIZATION boss
boss: GRANT CREATE, USAGE ON SCHEMA given TO boss
boss: SELECT nspacl FROM pg_namespace WHERE nspname = 'given'
operator: ALTER SCHEMA given OWNER TO low
boss: CREATE TABLE given.g (x int)
-- Foreign keys are checked unless a superuser disables them.
boss: CREATE TABLE keyed (id int PRIMARY KEY)
boss: CREATE TABLE referring (id int REFERENCES keyed)
boss: ALTER TABLE referring DISABLE TRIGGER ALL
boss: ALTER TABLE keyed DISABLE TRIGGER ALL
boss: ALTER TABLE keyed ENABLE TRIGGER ALL
low: ALTER TABLE keyed DISABLE TRIGGER USER
boss: ALTER TABLE referring DISABLE TRIGGER USER
boss: SET session_replication_role = replica
boss: INSERT INTO referring VALUES (5)
operator: ALTER TABLE public.referring DISABLE TRIGGER ALL
boss: ALTER TABLE referring ENABLE TRIGGER ALL
boss: INSERT INTO referring VALUES (5)
boss: DROP TABLE referring, keyed
