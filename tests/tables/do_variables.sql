-- variables, loops and cases of PL/pgSQL, as migrations send them
CREATE TABLE out (n serial, a text);
CREATE TABLE t (id int PRIMARY KEY, name text, price numeric(8,2), day date);
INSERT INTO t VALUES (1, 'a', 1.50, '2024-01-31'), (2, 'b', 22.25, NULL), (3, NULL, NULL, '2024-03-01');
-- assignments
DO $$ DECLARE n int := 1; s text DEFAULT 'x'; d date = '2024-02-29'; e int; BEGIN n := n + 1; s = s || n; e := n * 2.6; INSERT INTO out (a) VALUES (s), (n), (d + n), (e), (coalesce(e, 0)); END $$;
DO $$ DECLARE c varchar(3) := 'abcdef'; BEGIN NULL; END $$;
DO $$ DECLARE c varchar(3) := 'abc   '; d char(5) := 'ab'; BEGIN INSERT INTO out (a) VALUES ('[' || c || ']'), ('[' || d || ']'), (length(d)); END $$;
DO $$ DECLARE p numeric(5,2) := 1.005; q numeric := 1.10; f float8 := 0.1; BEGIN q := q * 3; INSERT INTO out (a) VALUES (p), (q), (f + 0.2::float8), (p * q); END $$;
DO $$ DECLARE p numeric(5,2); BEGIN p := 1000; END $$;
DO $$ DECLARE b bool := 1; i int := '12'; t2 text := true; u text := 1.50; BEGIN INSERT INTO out (a) VALUES (b), (i + 1), (t2), (u); i := 'x'; END $$;
DO $$ DECLARE i int := date '2024-01-01'; BEGIN NULL; END $$;
DO $$ DECLARE i smallint; BEGIN i := 40000; END $$;
DO $$ DECLARE a int[] := '{1,2}'; b text[] := ARRAY['x', NULL, 'y,z']; i interval := '1 day 2 hours'; j jsonb := '{"a": [1, 2]}'; BEGIN a := a || 3; INSERT INTO out (a) VALUES (a), (a[3]), (b), (b[3]), (i * 2), (j -> 'a' ->> 1), (array_length(a, 1)); END $$;
DO $$ DECLARE m int[] := '{{1,2},{3,4}}'; BEGIN INSERT INTO out (a) VALUES (m[2][1]), (m); END $$;
DO $$ DECLARE x CONSTANT int := 5; BEGIN INSERT INTO out (a) VALUES (x); END $$;
DO $$ DECLARE x CONSTANT int := 5; BEGIN x := 6; END $$;
DO $$ DECLARE x int NOT NULL := 5; BEGIN x := NULL; END $$;
DO $$ DECLARE x int NOT NULL; BEGIN x := 1; END $$;
DO $$ DECLARE x int; x text; BEGIN NULL; END $$;
DO $$ BEGIN y := 1; END $$;
DO $$ DECLARE x none_such; BEGIN NULL; END $$;
DO $$ DECLARE x int := 1 / 0; BEGIN NULL; END $$;
DO $$ DECLARE x int := 0; BEGIN x := 1 / x; END $$;
DO $$ DECLARE x int := 0; BEGIN x := missing + 1; END $$;
DO $$ DECLARE x int; BEGIN x := 1, 2; END $$;
DO $$ DECLARE x int; BEGIN x := id FROM t; END $$;
DO $$ DECLARE x int; BEGIN x := id FROM t WHERE id = 2; INSERT INTO out (a) VALUES (x); x := id FROM t WHERE id = 99; INSERT INTO out (a) VALUES (coalesce(x, -1)); IF count(*) > 2 FROM t THEN INSERT INTO out (a) VALUES ('three'); END IF; END $$;
SELECT a FROM out ORDER BY n;
TRUNCATE out;
-- types with lengths, and arrays of them
DO $$ DECLARE b bit(3) := B'101'; c bit := '1'; d bit(3)[] := '{101,111}'; BEGIN INSERT INTO out (a) VALUES (b), (c), (d); b := B'10'; END $$;
DO $$ DECLARE b bit(3) := B'101'; c bit := '1'; d bit(3)[] := '{101,111}'; BEGIN INSERT INTO out (a) VALUES (b), (c), (d); END $$;
DO $$ DECLARE b numeric(4,1)[] := '{1.25,2}'; c varchar(2)[] := '{ab,c }'; d char(2)[] := ARRAY['a', 'b']; e numeric(4,1)[] := '{{1.25},{2}}'; BEGIN INSERT INTO out (a) VALUES (b), (c), (d), (e); END $$;
DO $$ DECLARE b numeric[] := '{1.50,NaN}'; x numeric; BEGIN FOREACH x IN ARRAY b || 2.0 LOOP INSERT INTO out (a) VALUES (x); END LOOP; END $$;
SELECT a FROM out ORDER BY n;
TRUNCATE out;
-- types of columns and relations
DO $$ DECLARE a t.name%TYPE := 'abc'; b t.price%TYPE := 2.345; c b%TYPE := 7; r t%ROWTYPE; BEGIN r.id := 9; r.price := 1.255; INSERT INTO out (a) VALUES (a), (b), (c), (r.id + 1), (r.price), (r.name IS NULL); END $$;
DO $$ DECLARE a t.missing%TYPE; BEGIN NULL; END $$;
DO $$ DECLARE a missing.id%TYPE; BEGIN NULL; END $$;
DO $$ DECLARE a missing%ROWTYPE; BEGIN NULL; END $$;
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE mood AS ENUM ('sad', 'ok');
DO $$ DECLARE p positive := 1; m mood := 'ok'; BEGIN INSERT INTO out (a) VALUES (p), (m); p := -1; END $$;
DO $$ DECLARE m mood; BEGIN m := 'none'; END $$;
SELECT a FROM out ORDER BY n;
TRUNCATE out;
-- SELECT INTO, RETURNING INTO and FOUND
DO $$ DECLARE i int; s text; r record; BEGIN SELECT id, name INTO i, s FROM t WHERE id = 2; INSERT INTO out (a) VALUES (i || s), (found); SELECT id INTO i FROM t WHERE id = 99; INSERT INTO out (a) VALUES (i IS NULL), (FOUND); SELECT * INTO r FROM t WHERE id = 1; INSERT INTO out (a) VALUES (r.price || r.name || r.day); END $$;
DO $$ DECLARE i int; BEGIN SELECT id INTO STRICT i FROM t; END $$;
DO $$ DECLARE i int; BEGIN SELECT id INTO STRICT i FROM t WHERE id = 99; EXCEPTION WHEN no_data_found THEN INSERT INTO out (a) VALUES ('none'); END $$;
DO $$ DECLARE i int; j int; BEGIN INSERT INTO t VALUES (4, 'd') RETURNING id INTO i; UPDATE t SET name = 'e' WHERE id = i RETURNING t.id + 1 INTO j; INSERT INTO out (a) VALUES (i), (j); DELETE FROM t WHERE id = 99; INSERT INTO out (a) VALUES (found); DELETE FROM t WHERE id = 4; IF found THEN INSERT INTO out (a) VALUES ('deleted'); END IF; PERFORM 1 FROM t WHERE false; INSERT INTO out (a) VALUES (found); END $$;
DO $$ DECLARE i int; BEGIN UPDATE t SET name = name RETURNING id INTO i; END $$;
DO $$ DECLARE i int; j int; BEGIN SELECT 1 INTO i, j; INSERT INTO out (a) VALUES (i), (coalesce(j, 0)); SELECT 1, 2, 3 INTO i, j; INSERT INTO out (a) VALUES (j); END $$;
DO $$ DECLARE i int; BEGIN CREATE TABLE u (a int) INTO i; END $$;
DO $$ BEGIN SELECT 1 INTO nowhere; END $$;
DO $$ DECLARE n int; BEGIN UPDATE t SET name = name WHERE id < 3; GET DIAGNOSTICS n = ROW_COUNT; INSERT INTO out (a) VALUES (n); END $$;
DO $$ DECLARE r record; BEGIN INSERT INTO out (a) VALUES (r.x); END $$;
DO $$ DECLARE r record; BEGIN SELECT 1 AS a INTO r; INSERT INTO out (a) VALUES (r.b); END $$;
SELECT a FROM out ORDER BY n;
TRUNCATE out;
-- a name of a variable and of a column
DO $$ DECLARE id int := 1; BEGIN DELETE FROM t WHERE id = id; END $$;
DO $$ DECLARE name text := 'x'; BEGIN UPDATE t SET name = name; END $$;
DO $$ DECLARE name text := 'x'; BEGIN INSERT INTO t (id, name) VALUES (7, name); INSERT INTO out SELECT 1, o.a FROM (SELECT name AS a) o; DELETE FROM t WHERE t.id = 7 AND t.name = 'x'; END $$;
DO $$ <<b>> DECLARE id int := 2; BEGIN DELETE FROM out; INSERT INTO out (a) SELECT t.name FROM t WHERE t.id = b.id; END $$;
DO $$ DECLARE t text := 'q'; BEGIN INSERT INTO out (a) SELECT t.name || id FROM t WHERE id = 1; INSERT INTO out (a) SELECT t; END $$;
DO $$ DECLARE x int := 2; BEGIN INSERT INTO out (a) SELECT id AS x FROM t ORDER BY x DESC LIMIT x; END $$;
SELECT a FROM out ORDER BY a;
SELECT count(*) FROM t;
TRUNCATE out;
-- loops
DO $$ DECLARE i int := 0; BEGIN WHILE i < 3 LOOP i := i + 1; INSERT INTO out (a) VALUES (i); END LOOP; LOOP i := i - 1; EXIT WHEN i < 1; CONTINUE WHEN i = 1; INSERT INTO out (a) VALUES ('down ' || i); END LOOP; END $$;
DO $$ BEGIN FOR i IN 1..3 LOOP INSERT INTO out (a) VALUES (i); END LOOP; FOR i IN REVERSE 10..1 BY 4 LOOP INSERT INTO out (a) VALUES (i); END LOOP; FOR i IN 3..1 LOOP INSERT INTO out (a) VALUES ('never'); END LOOP; INSERT INTO out (a) VALUES (found); END $$;
DO $$ BEGIN FOR i IN 1..NULL LOOP NULL; END LOOP; END $$;
DO $$ BEGIN FOR i IN 1..3 BY 0 LOOP NULL; END LOOP; END $$;
DO $$ DECLARE r record; s int := 0; BEGIN FOR r IN SELECT * FROM t ORDER BY id LOOP s := s + r.id; INSERT INTO out (a) VALUES (r.id || coalesce(r.name, '-') || coalesce(r.price, 0)); END LOOP; INSERT INTO out (a) VALUES (s), (found), (r.id); END $$;
DO $$ DECLARE i int; n text; BEGIN FOR i, n IN SELECT id, name FROM t ORDER BY id DESC LOOP INSERT INTO out (a) VALUES (i || coalesce(n, '?')); END LOOP; FOR i IN SELECT id FROM t WHERE false LOOP NULL; END LOOP; INSERT INTO out (a) VALUES (i IS NULL), (found); END $$;
DO $$ DECLARE r record; BEGIN FOR r IN UPDATE t SET name = upper(name) WHERE id < 3 RETURNING id, name LOOP INSERT INTO out (a) VALUES (r.name); END LOOP; END $$;
DO $$ DECLARE r record; BEGIN FOR r IN DELETE FROM t WHERE false LOOP NULL; END LOOP; END $$;
DO $$ BEGIN FOR r IN SELECT 1 LOOP NULL; END LOOP; END $$;
DO $$ DECLARE x text; BEGIN FOREACH x IN ARRAY ARRAY['p', 'q', NULL] LOOP INSERT INTO out (a) VALUES (coalesce(x, 'null')); END LOOP; END $$;
DO $$ DECLARE x text; BEGIN FOREACH x IN ARRAY NULL::text[] LOOP NULL; END LOOP; END $$;
DO $$ DECLARE x text; BEGIN FOREACH x IN ARRAY 5 LOOP NULL; END LOOP; END $$;
DO $$ BEGIN <<rows>> FOR i IN 1..3 LOOP FOR j IN 1..3 LOOP CONTINUE rows WHEN j = 2; EXIT rows WHEN i = 3; INSERT INTO out (a) VALUES (i || '/' || j || rows.i); END LOOP; END LOOP rows; END $$;
DO $$ BEGIN <<b>> BEGIN INSERT INTO out (a) VALUES ('in'); EXIT b; INSERT INTO out (a) VALUES ('never'); END b; INSERT INTO out (a) VALUES ('after'); RETURN; INSERT INTO out (a) VALUES ('never'); END $$;
DO $$ BEGIN EXIT; END $$;
DO $$ BEGIN CONTINUE; END $$;
DO $$ BEGIN LOOP EXIT nowhere; END LOOP; END $$;
DO $$ BEGIN <<b>> BEGIN CONTINUE b; END; END $$;
DO $$ BEGIN <<a>> LOOP EXIT; END LOOP b; END $$;
DO $$ BEGIN RETURN 1; END $$;
SELECT a FROM out ORDER BY n;
TRUNCATE out;
-- blocks inside blocks
DO $$ DECLARE x int := 1; BEGIN DECLARE x int := x + 10; y int := x; BEGIN INSERT INTO out (a) VALUES (x), (y); x := 99; END; INSERT INTO out (a) VALUES (x); END $$;
DO $$ DECLARE x int := 1; BEGIN BEGIN x := 2; INSERT INTO out (a) VALUES ('undone'); PERFORM 1 / (x - 2); EXCEPTION WHEN division_by_zero THEN INSERT INTO out (a) VALUES (x || SQLSTATE || sqlerrm); END; END $$;
DO $$ BEGIN FOR i IN 1..3 LOOP BEGIN INSERT INTO t (id) VALUES (i + 1); EXCEPTION WHEN unique_violation THEN INSERT INTO out (a) VALUES ('exists ' || i); END; END LOOP; END $$;
SELECT a FROM out ORDER BY n;
SELECT id FROM t ORDER BY id;
TRUNCATE out;
-- CASE
DO $$ DECLARE x int := 3; BEGIN CASE x WHEN 1, 2 THEN INSERT INTO out (a) VALUES ('few'); WHEN 3 THEN INSERT INTO out (a) VALUES ('three'); ELSE NULL; END CASE; CASE WHEN x > 5 THEN NULL; ELSE INSERT INTO out (a) VALUES ('else'); END CASE; CASE x WHEN 9 THEN NULL; END CASE; END $$;
DO $$ DECLARE x int := 3; BEGIN CASE x WHEN 1, 2 THEN INSERT INTO out (a) VALUES ('few'); WHEN 3 THEN INSERT INTO out (a) VALUES ('three'); END CASE; CASE WHEN x > 5 THEN NULL; ELSE INSERT INTO out (a) VALUES ('else'); END CASE; END $$;
-- EXECUTE with INTO and USING
DO $$ DECLARE n bigint; s text; r record; BEGIN EXECUTE format('SELECT count(*) FROM %I WHERE id < $1', 't') INTO n USING 3; INSERT INTO out (a) VALUES (n); EXECUTE 'SELECT $1 || $2' INTO s USING 'a'::text, n; INSERT INTO out (a) VALUES (s); FOR r IN EXECUTE 'SELECT id FROM t WHERE id >= $1 ORDER BY 1' USING 2 LOOP INSERT INTO out (a) VALUES (r.id); END LOOP; EXECUTE 'INSERT INTO out (a) VALUES ($1)' USING s; EXECUTE 'SELECT 1 WHERE false' INTO n; INSERT INTO out (a) VALUES (n IS NULL); END $$;
DO $$ DECLARE n int; BEGIN EXECUTE 'SELECT id FROM t' INTO STRICT n; END $$;
DO $$ DECLARE n int; BEGIN EXECUTE 'DELETE FROM t WHERE false' INTO n; END $$;
DO $$ DECLARE x int := 1; BEGIN EXECUTE 'SELECT x'; END $$;
DO $$ BEGIN EXECUTE 'SELECT $2' USING 1; END $$;
SELECT a FROM out ORDER BY n;
TRUNCATE out;
-- the system catalog
DO $$ DECLARE r record; BEGIN FOR r IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename IN ('t', 'out') ORDER BY 1 LOOP EXECUTE format('ALTER TABLE %I ADD COLUMN added int DEFAULT 1', r.tablename); END LOOP; END $$;
SELECT added FROM t WHERE id = 1;
DO $$ DECLARE tbl text := 't'; col pg_attribute.attname%TYPE := 'added'; BEGIN IF EXISTS (SELECT 1 FROM information_schema.columns WHERE table_name = tbl AND column_name = col) THEN EXECUTE format('ALTER TABLE %I DROP COLUMN %I', tbl, col); END IF; END $$;
DO $$ DECLARE c text; BEGIN SELECT conname INTO c FROM pg_constraint WHERE conrelid = 't'::regclass AND contype = 'p'; EXECUTE 'ALTER TABLE t DROP CONSTRAINT ' || quote_ident(c); INSERT INTO out (a) VALUES (c); END $$;
DO $$ DECLARE relname text := 't'; BEGIN PERFORM 1 FROM pg_class WHERE relname = relname; END $$;
DO $$ DECLARE r record; n int := 0; BEGIN FOR r IN (SELECT table_name FROM information_schema.tables WHERE table_name = 't') LOOP n := n + 1; END LOOP; INSERT INTO out (a) VALUES (n); END $$;
SELECT a FROM out ORDER BY n;
TRUNCATE out;
-- RAISE with conditions and options, ASSERT
DO $$ BEGIN RAISE unique_violation; END $$;
DO $$ BEGIN RAISE unique_violation USING MESSAGE = 'again', DETAIL = 'd', HINT = 'h' || 1; END $$;
DO $$ BEGIN RAISE EXCEPTION 'n %', 1 USING ERRCODE = 'foreign_key_violation', TABLE = 'x'; END $$;
DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'AB123'; END $$;
DO $$ BEGIN RAISE SQLSTATE '22012'; END $$;
DO $$ BEGIN RAISE EXCEPTION 'n' USING MESSAGE = 'm'; END $$;
DO $$ BEGIN RAISE EXCEPTION 'n' USING HINT = NULL; END $$;
DO $$ BEGIN RAISE EXCEPTION 'n' USING ERRCODE = 'none_such'; END $$;
DO $$ BEGIN RAISE none_such; END $$;
DO $$ BEGIN RAISE EXCEPTION 'x' USING none = 1; END $$;
DO $$ BEGIN RAISE 'again' USING ERRCODE = '23505'; EXCEPTION WHEN unique_violation THEN INSERT INTO out (a) VALUES (sqlerrm); END $$;
DO $$ BEGIN ASSERT 1 = 1; ASSERT 1 = 2, 'no' || 1; END $$;
DO $$ BEGIN ASSERT NULL; END $$;
-- records in lists of values
CREATE TABLE copy AS SELECT id, name FROM t WHERE false;
DO $$ DECLARE r copy%ROWTYPE; BEGIN FOR r IN SELECT id, name FROM t ORDER BY id LOOP INSERT INTO copy VALUES (r.*); INSERT INTO copy SELECT r.*; END LOOP; END $$;
SELECT * FROM copy ORDER BY id;
DO $$ DECLARE x int := 5; BEGIN CREATE TABLE made AS SELECT x, x + 1 AS y; END $$;
-- columns of a record with the same name
DO $$ DECLARE r record; BEGIN SELECT 1 AS a, 'x' AS a, 2 AS b INTO r; INSERT INTO out (a) VALUES (r.a), (r.b); END $$;
DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM t JOIN copy ON copy.id = 3 - t.id ORDER BY t.id LOOP INSERT INTO out (a) VALUES (r.id || r.name); END LOOP; END $$;
SELECT a FROM out ORDER BY n;
TRUNCATE out;
-- variables in WITH that writes
DO $$ DECLARE x int := 5; BEGIN WITH q AS (INSERT INTO out (a) VALUES (x) RETURNING a) INSERT INTO out (a) SELECT q.a || x FROM q; END $$;
DO $$ DECLARE a text := 'y'; BEGIN WITH q AS (UPDATE out SET a = a RETURNING 1) SELECT FROM q; END $$;
SELECT a FROM out ORDER BY a;
TRUNCATE out;
-- ROW_COUNT
DO $$ DECLARE i int; n int; BEGIN SELECT id INTO i FROM t; GET DIAGNOSTICS n = ROW_COUNT; INSERT INTO out (a) VALUES (n); SELECT id INTO i FROM t WHERE false; GET CURRENT DIAGNOSTICS n = ROW_COUNT; INSERT INTO out (a) VALUES (n); EXECUTE 'SELECT 1 FROM t' INTO i; GET DIAGNOSTICS n = ROW_COUNT; INSERT INTO out (a) VALUES (n); PERFORM 1 FROM t; GET DIAGNOSTICS n = ROW_COUNT; INSERT INTO out (a) VALUES (n); END $$;
SELECT a FROM out ORDER BY n;
TRUNCATE out;
SELECT * FROM made;
-- syntax
DO $$ DECLARE n; BEGIN NULL; END $$;
DO $$ DECLARE n int BEGIN NULL; END $$;
DO $$ DECLARE n int; BEGIN SELECT 1 INTO n INTO n; END $$;
DO $$ DECLARE n int; BEGIN GET DIAGNOSTICS n = NOTHING; END $$;
DO $$ BEGIN RAISE 'x' USING HINT 'y'; END $$;
DO $$ DECLARE n int; BEGIN SELEC 1 INTO n; END $$;
DO $$ DECLARE n int; BEGIN FOR i IN REVERSE SELECT 1 LOOP NULL; END LOOP; END $$;
DO $$ DECLARE n int; BEGIN LOOP NULL; END; END $$;
