-- GRANT OPTION, owners' privileges and owned objects, as in PostgreSQL. Each line has the role that executes the statement.
operator: DROP ROLE IF EXISTS granted_role
boss: CREATE TABLE g (a int PRIMARY KEY, b int)
boss: CREATE VIEW w AS SELECT a FROM g
boss: CREATE SEQUENCE q
boss: GRANT SELECT, INSERT ON g TO low WITH GRANT OPTION
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
boss: SELECT grantor, grantee, privilege_type, is_grantable FROM information_schema.table_privileges WHERE table_name = 'g' ORDER BY 1, 2, 3
boss: SELECT has_table_privilege('low', 'g', 'SELECT WITH GRANT OPTION'), has_table_privilege('low', 'g', 'UPDATE WITH GRANT OPTION'), has_table_privilege('g', 'UPDATE WITH GRANT OPTION')
low: GRANT SELECT, INSERT, UPDATE ON g TO helper
low: GRANT UPDATE ON g TO helper
low: GRANT ALL ON g TO helper
low: GRANT SELECT ON w TO helper
low: REVOKE UPDATE ON g FROM helper
low: GRANT INSERT ON g TO PUBLIC WITH GRANT OPTION
low: GRANT INSERT ON g TO PUBLIC
low: GRANT SELECT ON g TO boss
helper: INSERT INTO g VALUES (1, 2)
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
boss: REVOKE SELECT ON g FROM low
boss: REVOKE GRANT OPTION FOR SELECT ON g FROM low
boss: REVOKE GRANT OPTION FOR SELECT ON g FROM low CASCADE
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
helper: SELECT * FROM g
low: SELECT * FROM g
boss: REVOKE INSERT ON g FROM low CASCADE
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
boss: GRANT UPDATE ON g TO low WITH GRANT OPTION
low: GRANT UPDATE ON g TO helper WITH GRANT OPTION
helper: GRANT UPDATE ON g TO low WITH GRANT OPTION
helper: GRANT UPDATE (b) ON g TO low
low: REVOKE UPDATE ON g FROM helper
low: REVOKE UPDATE ON g FROM helper CASCADE
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
boss: GRANT SELECT (a), UPDATE (b) ON g TO helper WITH GRANT OPTION
boss: SELECT attname, attacl FROM pg_attribute WHERE attrelid = 'g'::regclass AND attnum > 0 ORDER BY 1
boss: SELECT has_column_privilege('helper', 'g', 'a', 'SELECT WITH GRANT OPTION'), has_column_privilege('helper', 'g', 'b', 'SELECT WITH GRANT OPTION'), has_any_column_privilege('helper', 'g', 'UPDATE WITH GRANT OPTION')
helper: GRANT SELECT (a, b) ON g TO low
helper: GRANT ALL (a) ON g TO low
helper: GRANT INSERT (a) ON g TO low
boss: SELECT attname, attacl FROM pg_attribute WHERE attrelid = 'g'::regclass AND attnum > 0 ORDER BY 1
boss: SELECT grantor, grantee, column_name, privilege_type, is_grantable FROM information_schema.column_privileges WHERE table_name = 'g' ORDER BY 1, 2, 3, 4
boss: REVOKE SELECT (a) ON g FROM helper
boss: REVOKE SELECT ON g FROM helper
boss: REVOKE ALL ON g FROM helper CASCADE
boss: GRANT DELETE ON g TO helper WITH GRANT OPTION
helper: GRANT SELECT (a) ON g TO low
helper: GRANT SELECT ON g TO low
boss: REVOKE DELETE ON g FROM helper
boss: SELECT attname, attacl FROM pg_attribute WHERE attrelid = 'g'::regclass AND attnum > 0 ORDER BY 1
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
boss: REVOKE SELECT ON g FROM boss
boss: SELECT * FROM g
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
boss: SELECT has_table_privilege('g', 'SELECT'), has_table_privilege('g', 'SELECT WITH GRANT OPTION')
boss: REVOKE ALL ON g FROM boss, low
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
boss: INSERT INTO g VALUES (7, 7)
boss: ALTER TABLE g ADD COLUMN c int
boss: GRANT ALL ON g TO boss
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
boss: SELECT * FROM g
boss: GRANT SELECT ON g TO low GRANTED BY boss
boss: GRANT SELECT ON g TO low GRANTED BY CURRENT_USER
boss: GRANT SELECT ON g TO low GRANTED BY low
boss: GRANT SELECT ON g TO low GRANTED BY nobody
boss: GRANT USAGE ON SEQUENCE q TO low WITH GRANT OPTION
boss: SELECT relacl FROM pg_class WHERE relname = 'q'
low: GRANT USAGE ON q TO helper
low: GRANT SELECT ON SEQUENCE q TO helper
boss: REVOKE GRANT OPTION FOR USAGE ON q FROM low
boss: REVOKE ALL ON q FROM low CASCADE
boss: SELECT relacl FROM pg_class WHERE relname = 'q'
low: GRANT USAGE ON SCHEMA lo TO helper WITH GRANT OPTION
low: SELECT nspacl FROM pg_namespace WHERE nspname = 'lo'
low: SELECT has_schema_privilege('helper', 'lo', 'USAGE WITH GRANT OPTION'), has_schema_privilege('helper', 'lo', 'CREATE WITH GRANT OPTION')
helper: GRANT USAGE, CREATE ON SCHEMA lo TO boss
helper: GRANT CREATE ON SCHEMA lo TO boss
boss: GRANT CREATE ON SCHEMA lo TO helper
boss: GRANT SELECT ON lo.nothing TO helper
low: REVOKE ALL ON SCHEMA lo FROM helper
low: REVOKE ALL ON SCHEMA lo FROM helper CASCADE
low: SELECT nspacl FROM pg_namespace WHERE nspname = 'lo'
helper: GRANT SELECT ON ALL TABLES IN SCHEMA lo TO boss
low: CREATE TABLE lo.one (x int)
low: CREATE TABLE lo.two (x int)
low: GRANT USAGE ON SCHEMA lo TO helper, boss
low: GRANT SELECT ON lo.one, lo.two TO helper WITH GRANT OPTION
helper: GRANT SELECT ON ALL TABLES IN SCHEMA lo TO boss
boss: SELECT relname, relacl FROM pg_class WHERE relname IN ('one', 'two') ORDER BY 1
boss: CREATE TYPE mood AS ENUM ('sad', 'ok')
boss: CREATE DOMAIN positive AS int CHECK (VALUE > 0)
boss: REVOKE USAGE ON TYPE mood FROM PUBLIC
boss: REVOKE USAGE ON DOMAIN positive FROM PUBLIC
boss: SELECT typname, typacl FROM pg_type WHERE typname IN ('mood', 'positive') ORDER BY 1
low: CREATE TABLE lo.three (m mood)
low: CREATE TABLE lo.three (m mood[])
low: CREATE TABLE lo.three (m positive)
low: ALTER TABLE lo.one ADD COLUMN m mood
low: CREATE VIEW lo.four AS SELECT 'ok'::mood AS m
low: CREATE TABLE lo.four AS SELECT 'ok'::mood AS m
low: CREATE DOMAIN lo.five AS positive
low: CREATE TYPE lo.five AS (m mood)
boss: CREATE TYPE pair AS (a int, m mood)
low: SELECT has_type_privilege('pair', 'USAGE'), has_type_privilege('pair', 'USAGE WITH GRANT OPTION')
low: CREATE TABLE lo.three (p pair)
low: DROP TABLE lo.three
boss: REVOKE USAGE ON TYPE pair FROM PUBLIC
low: CREATE TABLE lo.three (p pair)
boss: GRANT SELECT ON TYPE pair TO low
boss: GRANT ALL ON TYPE pair TO low
boss: SELECT typname, typacl FROM pg_type WHERE typname = 'pair'
low: CREATE TABLE lo.three (p pair[])
low: DROP TABLE lo.three
operator: ALTER TYPE pair OWNER TO helper
operator: ALTER DOMAIN positive OWNER TO helper
boss: SELECT typname, typacl FROM pg_type WHERE typname IN ('pair', 'positive') ORDER BY 1
operator: ALTER DOMAIN positive OWNER TO boss
operator: DROP TYPE pair
low: SELECT 'ok'::mood::text, 1::positive
low: GRANT USAGE ON TYPE mood TO helper
boss: GRANT USAGE ON TYPE mood TO low WITH GRANT OPTION
boss: SELECT typname, typacl FROM pg_type WHERE typname IN ('mood', 'positive') ORDER BY 1
low: CREATE TABLE lo.three (m mood)
low: DROP TABLE lo.three
low: GRANT USAGE ON TYPE mood TO helper
boss: REVOKE USAGE ON TYPE mood FROM low
boss: REVOKE USAGE ON TYPE mood FROM low CASCADE
low: SELECT has_type_privilege('mood', 'USAGE'), has_type_privilege('boss', 'mood', 'USAGE WITH GRANT OPTION'), has_type_privilege('mood[]', 'USAGE'), has_type_privilege('positive', 'usage'), has_type_privilege('int', 'USAGE'), has_type_privilege(99999999::oid, 'USAGE')
low: SELECT has_type_privilege('nosuch', 'USAGE')
low: SELECT has_type_privilege('int', 'SELECT')
boss: CREATE TYPE pair AS (a int, b int)
low: CREATE TABLE lo.three (p pair)
low: DROP TABLE lo.three
boss: REVOKE USAGE ON TYPE pair FROM PUBLIC
low: CREATE TABLE lo.three (p pair[])
low: CREATE TYPE lo.six AS (p pair)
low: CREATE TYPE lo.six AS (m mood)
boss: GRANT USAGE ON TYPE pair TO low
boss: SELECT typname, typacl FROM pg_type WHERE typname = 'pair'
low: CREATE TYPE lo.six AS (p pair)
low: ALTER TYPE lo.six ADD ATTRIBUTE m mood
low: SELECT has_type_privilege('pair', 'USAGE'), has_type_privilege('helper', 'pair', 'USAGE')
low: DROP TYPE lo.six
boss: DROP TYPE pair
boss: DROP TYPE mood
boss: DROP DOMAIN positive
operator: CREATE ROLE granted_role
boss: GRANT SELECT ON g TO granted_role WITH GRANT OPTION
operator: GRANT granted_role TO helper
helper: GRANT SELECT ON g TO PUBLIC
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
operator: DROP ROLE granted_role
operator: DROP OWNED BY granted_role
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
operator: DROP ROLE granted_role
boss: GRANT UPDATE ON g TO low WITH GRANT OPTION
low: GRANT UPDATE ON g TO helper
boss: ALTER TABLE g OWNER TO low
operator: GRANT low TO boss
boss: ALTER TABLE g OWNER TO low
operator: GRANT CREATE ON SCHEMA public TO low
boss: ALTER TABLE g OWNER TO low
low: SELECT relacl FROM pg_class WHERE relname = 'g'
low: ALTER TABLE g OWNER TO boss
operator: ALTER TABLE g OWNER TO boss
boss: SELECT relacl FROM pg_class WHERE relname = 'g'
helper: REASSIGN OWNED BY low TO helper
low: REASSIGN OWNED BY low TO helper
low: REASSIGN OWNED BY low TO nobody
low: REASSIGN OWNED BY nobody TO low
boss: REASSIGN OWNED BY low TO boss
operator: REASSIGN OWNED BY low, helper TO boss
boss: SELECT relname, rolname FROM pg_class JOIN pg_roles AS r ON relowner = r.oid WHERE relname IN ('one', 'two', 'g', 'w', 'q') ORDER BY 1
boss: SELECT nspname, rolname, nspacl FROM pg_namespace JOIN pg_roles AS r ON nspowner = r.oid WHERE nspname = 'lo'
operator: BEGIN
operator: CREATE TYPE feeling AS ENUM ('sad')
operator: ALTER TYPE feeling OWNER TO boss
operator: REASSIGN OWNED BY boss TO low
operator: SELECT rolname FROM pg_type JOIN pg_roles AS r ON typowner = r.oid WHERE typname = 'feeling'
operator: SELECT relname, rolname FROM pg_class JOIN pg_roles AS r ON relowner = r.oid WHERE relname IN ('one', 'two', 'g', 'w', 'q') ORDER BY 1
operator: DROP OWNED BY low CASCADE
operator: SELECT relname FROM pg_class WHERE relname IN ('one', 'two', 'g', 'w', 'q') ORDER BY 1
operator: ROLLBACK
operator: REASSIGN OWNED BY boss TO low
operator: REVOKE low FROM boss
boss: SELECT relname, relacl FROM pg_class WHERE relname IN ('one', 'two', 'g', 'w', 'q') ORDER BY 1
low: GRANT SELECT ON g TO boss, helper
boss: DROP OWNED BY low
operator: GRANT CREATE ON SCHEMA public TO helper
helper: CREATE VIEW depending AS SELECT a FROM g
low: DROP OWNED BY low
low: DROP OWNED BY low RESTRICT
boss: DROP OWNED BY boss
low: SELECT relacl FROM pg_class WHERE relname = 'g'
operator: DROP OWNED BY boss
low: SELECT relacl FROM pg_class WHERE relname = 'g'
low: BEGIN
low: DROP OWNED BY low CASCADE
low: COMMIT
helper: SELECT * FROM depending
helper: DROP OWNED BY helper, nobody
helper: SELECT relname FROM pg_class WHERE relname IN ('one', 'two', 'g', 'w', 'q') ORDER BY 1
operator: DROP OWNED BY helper
operator: SELECT nspname FROM pg_namespace WHERE nspname = 'lo'
