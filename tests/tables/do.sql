-- blocks of PL/pgSQL, as migrations and start scripts send them
CREATE TABLE t (id int PRIMARY KEY, name text);
DO $$ BEGIN CREATE TYPE mood AS ENUM ('sad', 'ok'); EXCEPTION WHEN duplicate_object THEN null; END $$;
DO $$ BEGIN CREATE TYPE mood AS ENUM ('sad', 'ok'); EXCEPTION WHEN duplicate_object THEN null; END $$;
DO $$ BEGIN CREATE TYPE mood AS ENUM ('sad', 'ok'); EXCEPTION WHEN duplicate_table THEN null; END $$;
DO $$ BEGIN ALTER TABLE t ADD CONSTRAINT named CHECK (name <> ''); EXCEPTION WHEN duplicate_object OR undefined_table THEN null; END $$;
DO $$ BEGIN ALTER TABLE t ADD CONSTRAINT named CHECK (name <> ''); EXCEPTION WHEN duplicate_object OR undefined_table THEN null; END $$;
DO $$ BEGIN ALTER TABLE none ADD CONSTRAINT named CHECK (name <> ''); EXCEPTION WHEN duplicate_object OR undefined_table THEN null; END $$;
SELECT conname FROM pg_constraint WHERE conrelid = 't'::regclass ORDER BY conname;
DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'do_reader') THEN CREATE ROLE do_reader; END IF; END $$;
DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'do_reader') THEN CREATE ROLE do_reader; END IF; END $$;
DO $$ BEGIN CREATE ROLE do_reader; EXCEPTION WHEN duplicate_object THEN RAISE NOTICE 'the role exists'; END $$;
SELECT count(*) FROM pg_roles WHERE rolname = 'do_reader';
DO $$ BEGIN DROP ROLE do_reader; END $$;
-- rows
DO $$ BEGIN INSERT INTO t VALUES (1, 'a'); INSERT INTO t VALUES (2, 'b'); UPDATE t SET name = name || '!'; END $$;
DO $$ BEGIN INSERT INTO t VALUES (3, 'c'); INSERT INTO t VALUES (1, 'd'); END $$;
SELECT * FROM t ORDER BY id;
DO $$ BEGIN INSERT INTO t VALUES (3, 'c'); BEGIN INSERT INTO t VALUES (4, 'd'); INSERT INTO t VALUES (1, 'x'); EXCEPTION WHEN unique_violation THEN INSERT INTO t VALUES (5, 'e'); END; END $$;
SELECT * FROM t ORDER BY id;
DO $$ BEGIN INSERT INTO t VALUES (6, 'f'); BEGIN INSERT INTO t VALUES (6, 'x'); EXCEPTION WHEN foreign_key_violation THEN NULL; END; EXCEPTION WHEN SQLSTATE '23505' THEN INSERT INTO t VALUES (7, 'g'); END $$;
DO $$ BEGIN INSERT INTO t VALUES (1, 'x'); EXCEPTION WHEN integrity_constraint_violation THEN INSERT INTO t VALUES (8, 'h'); END $$;
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN others THEN INSERT INTO t VALUES (9, SQLSTATE || ' ' || SQLERRM); END $$;
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN RAISE; END $$;
SELECT * FROM t ORDER BY id;
-- IF
DO $$ BEGIN IF (SELECT count(*) FROM t) > 100 THEN DELETE FROM t; ELSIF (SELECT count(*) FROM t) > 3 THEN DELETE FROM t WHERE id > 6; ELSE DROP TABLE t; END IF; END $$;
DO $$ BEGIN IF NULL THEN DELETE FROM t; ELSEIF false THEN DROP TABLE t; ELSE IF true THEN DELETE FROM t WHERE id = 5; END IF; END IF; END $$;
SELECT id FROM t ORDER BY id;
DO LANGUAGE plpgsql 'BEGIN IF EXISTS (SELECT 1 FROM information_schema.columns WHERE table_name = ''t'' AND column_name = ''name'') THEN ALTER TABLE t RENAME COLUMN name TO title; END IF; END';
SELECT title FROM t WHERE id = 1;
-- a condition that is not boolean is converted as text
DO $$ BEGIN IF 1 THEN DELETE FROM t WHERE id = 4; END IF; IF 'no' THEN DROP TABLE t; END IF; IF 0::bigint THEN DROP TABLE t; END IF; END $$;
SELECT count(*) FROM t WHERE id = 4;
DO $$ BEGIN IF (SELECT 5) THEN NULL; END IF; END $$;
-- EXECUTE
DO $$ BEGIN EXECUTE 'CREATE TABLE u (a int)'; EXECUTE format('CREATE TABLE %I (a int)', 'Odd name'); EXECUTE 'INSERT INTO u SELECT ' || (SELECT max(id) FROM t); END $$;
SELECT a FROM u;
SELECT * FROM "Odd name";
DO $$ BEGIN EXECUTE NULL; END $$;
DO $$ BEGIN EXECUTE 'SELEC 1'; END $$;
DO $$ BEGIN EXECUTE 'COMMIT'; END $$;
DO $$ BEGIN EXECUTE ''; EXECUTE ' ; '; END $$;
DO $$ BEGIN EXECUTE 'SELECT 1 AS a INTO made'; END $$;
DO $$ BEGIN EXECUTE 'SELECT $1'; END $$;
DO $$ BEGIN PERFORM $1; END $$;
PREPARE block AS DO 'BEGIN END';
-- RAISE
DO $$ BEGIN RAISE EXCEPTION 'stop at % of %%, %', 1 + 1, NULL::text; END $$;
DO $$ BEGIN RAISE EXCEPTION '% % % % %', true, 'a'::char(3), ARRAY[true, NULL], 1.50, ROW(false, 'x y'); END $$;
DO $$ BEGIN BEGIN BEGIN PERFORM 1 / 0; EXCEPTION WHEN others THEN RAISE 'second'; END; EXCEPTION WHEN raise_exception THEN NULL; END; RAISE; END $$;
CREATE TABLE failed (sqlstate text, sqlerrm text);
DO $$ BEGIN PERFORM 1 / 0; EXCEPTION WHEN others THEN INSERT INTO failed (sqlstate, sqlerrm) VALUES (SQLSTATE, SQLERRM); INSERT INTO failed SELECT SQLSTATE, to_jsonb(SQLERRM)::text; END $$;
SELECT * FROM failed ORDER BY sqlerrm;
DO $$ BEGIN RAISE 'stop'; EXCEPTION WHEN raise_exception THEN INSERT INTO u VALUES (99); END $$;
DO $$ BEGIN RAISE; END $$;
DO $$ BEGIN RAISE NOTICE 'only %'; END $$;
DO $$ BEGIN RAISE NOTICE 'none', 1; END $$;
SELECT a FROM u ORDER BY a;
-- a block is a part of the transaction
BEGIN;
DO $$ BEGIN INSERT INTO u VALUES (5); BEGIN INSERT INTO u VALUES (6); PERFORM 1 / 0; EXCEPTION WHEN others THEN NULL; END; END $$;
SAVEPOINT s;
DO $$ BEGIN INSERT INTO u VALUES (7); DROP TABLE "Odd name"; END $$;
ROLLBACK TO s;
DO $$ BEGIN INSERT INTO u VALUES (8); PERFORM 1 / 0; EXCEPTION WHEN unique_violation THEN NULL; END $$;
ROLLBACK TO s;
SELECT a FROM u ORDER BY a;
ROLLBACK;
SELECT a FROM u ORDER BY a;
SELECT count(*) FROM "Odd name";
-- errors of the block
DO $$ BEGIN SELECT 1; END $$;
DO $$ BEGIN INSERT INTO u VALUES (1) RETURNING a; END $$;
DO $$ BEGIN INSERT INTO u VALUES (1); SELEC 1; END $$;
DO $$ BEGIN NULL; EXCEPTION WHEN no_such_error THEN NULL; END $$;
DO $$ BEGIN COPY u TO STDOUT; END $$;
DO $$ BEGIN NULL; $$;
DO $$ BEGIN NULL END $$;
DO $$ SELECT 1 $$;
DO LANGUAGE sql 'SELECT 1';
DO LANGUAGE nope 'BEGIN NULL; END';
DO 'BEGIN END' 'BEGIN END';
DO LANGUAGE plpgsql;
DO;
DO $$ BEGIN END $$;
DO $$ BEGIN END; $$;
SET client_min_messages = warning;
DO $$ BEGIN RAISE NOTICE 'not sent'; END $$;
