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
