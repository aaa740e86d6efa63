-- ADD COLUMN
CREATE TABLE t (id int PRIMARY KEY, name text NOT NULL DEFAULT 'x', CHECK (id > 0));
INSERT INTO t VALUES (1, 'one'), (2, DEFAULT);
CREATE TABLE bag (a int);
INSERT INTO bag VALUES (1), (1), (NULL);
CREATE VIEW all_t AS SELECT * FROM t;
ALTER TABLE t ADD COLUMN plain int;
SELECT * FROM t ORDER BY id;
SELECT * FROM all_t ORDER BY id;
ALTER TABLE t ADD note varchar(5) DEFAULT 'note';
ALTER TABLE t ADD COLUMN amount numeric(8, 2) NOT NULL DEFAULT 1.005;
SELECT * FROM t ORDER BY id;
INSERT INTO t (id) VALUES (3) RETURNING *;
INSERT INTO t VALUES (4, 'four', 4, NULL, 4.444) RETURNING *;
INSERT INTO t VALUES (5, 'five', 5, NULL, NULL);
UPDATE t SET plain = id * 10, note = upper(note) WHERE id < 3 RETURNING *;
DELETE FROM t WHERE amount = 4.44;
INSERT INTO t (id, name) VALUES (1, 'again') ON CONFLICT (id) DO UPDATE SET amount = t.amount + 1 RETURNING *;
SELECT attname, atttypid::regtype::text, atttypmod, attnotnull, atthasdef FROM pg_attribute WHERE attrelid = 't'::regclass AND attnum > 0 ORDER BY attnum;
SELECT column_name, column_default IS NULL, is_nullable, ordinal_position FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position;
ALTER TABLE t ADD COLUMN plain int;
ALTER TABLE t ADD COLUMN IF NOT EXISTS plain int;
ALTER TABLE t ADD COLUMN IF NOT EXISTS more text, ADD COLUMN other boolean DEFAULT false;
SELECT id, more, other FROM t ORDER BY id;
ALTER TABLE t ADD COLUMN twice int, ADD COLUMN twice int;
ALTER TABLE t ADD COLUMN needed int NOT NULL;
ALTER TABLE t ADD COLUMN bad int DEFAULT 'x';
ALTER TABLE t ADD COLUMN bad int DEFAULT true;
ALTER TABLE t ADD COLUMN bad varchar(2) DEFAULT 'long';
ALTER TABLE t ADD COLUMN bad nosuch;
ALTER TABLE t ADD COLUMN bad int DEFAULT id;
ALTER TABLE t ADD COLUMN bad int DEFAULT nope();
ALTER TABLE t ADD COLUMN bad int NOT NULL NULL;
ALTER TABLE nosuch ADD COLUMN a int;
ALTER TABLE IF EXISTS nosuch ADD COLUMN a int;
ALTER TABLE nosuch.t ADD COLUMN a int;
ALTER TABLE all_t ADD COLUMN a int;
ALTER TABLE bag ADD COLUMN b int DEFAULT 2 + 3;
SELECT * FROM bag ORDER BY a;
INSERT INTO bag VALUES (1);
SELECT a, b, count(*) FROM bag GROUP BY a, b ORDER BY a, b;
ALTER TABLE ONLY bag ADD COLUMN c text[] DEFAULT '{x}', ADD d jsonb DEFAULT '{"k": 1}', ADD e interval DEFAULT '1 day', ADD f timestamptz DEFAULT '2026-01-01 00:00:00+00', ADD g bytea;
SELECT * FROM bag ORDER BY a, b;
DELETE FROM bag WHERE b = 5;
SELECT * FROM bag ORDER BY a;
TRUNCATE bag;
ALTER TABLE bag ADD COLUMN needed int NOT NULL;
INSERT INTO bag (a) VALUES (1);
INSERT INTO bag (a, needed) VALUES (1, 2) RETURNING a, needed;
CREATE VIEW new_t AS SELECT * FROM t;
ALTER TABLE t RENAME TO t;
ALTER VIEW new_t RENAME TO new_t;
ALTER VIEW new_t SET SCHEMA public;
SELECT * FROM new_t ORDER BY id;
-- SET DEFAULT
ALTER TABLE t ALTER COLUMN plain SET DEFAULT 7;
ALTER TABLE t ALTER note DROP DEFAULT, ALTER COLUMN other DROP DEFAULT;
INSERT INTO t (id) VALUES (10) RETURNING *;
ALTER TABLE t ALTER COLUMN name DROP DEFAULT;
INSERT INTO t (id) VALUES (11);
ALTER TABLE t ALTER COLUMN nosuch SET DEFAULT 1;
ALTER TABLE t ALTER COLUMN nosuch DROP DEFAULT;
ALTER TABLE t ALTER COLUMN plain SET DEFAULT 'x';
ALTER TABLE t ALTER COLUMN plain SET DEFAULT true;
ALTER TABLE t ADD COLUMN later int DEFAULT 1, ALTER COLUMN later SET DEFAULT 2;
ALTER TABLE t RENAME TO renamed;
INSERT INTO renamed (id, name) VALUES (0, 'check');
INSERT INTO renamed (id, name) VALUES (12, 'twelve') RETURNING id, plain;
ALTER TABLE
ALTER TABLE renamed
ALTER TABLE renamed ADD
ALTER TABLE renamed ADD COLUMN
ALTER TABLE renamed ADD COLUMN a
ALTER TABLE renamed ALTER COLUMN plain SET DEFAULT
DROP TABLE renamed, bag CASCADE;
-- IF NOT EXISTS with constraints
CREATE TABLE owners (id int PRIMARY KEY);
INSERT INTO owners VALUES (1);
CREATE TABLE pets (name text);
INSERT INTO pets VALUES ('Rex');
ALTER TABLE pets ADD COLUMN IF NOT EXISTS owner int DEFAULT 1 REFERENCES owners (id) ON DELETE CASCADE;
ALTER TABLE pets ADD COLUMN IF NOT EXISTS owner int DEFAULT 1 REFERENCES owners (id) ON DELETE CASCADE;
ALTER TABLE pets ADD COLUMN IF NOT EXISTS id serial PRIMARY KEY, ADD COLUMN IF NOT EXISTS name text UNIQUE CHECK (name <> '');
ALTER TABLE pets ADD COLUMN IF NOT EXISTS id serial PRIMARY KEY;
ALTER TABLE pets DROP COLUMN name, ADD COLUMN IF NOT EXISTS name text DEFAULT 'Tom' UNIQUE;
ALTER TABLE pets ADD COLUMN IF NOT EXISTS age int CONSTRAINT adult CHECK (age > 1) DEFAULT 0;
SELECT conname, contype FROM pg_constraint WHERE conrelid = 'pets'::regclass ORDER BY conname;
SELECT name, owner, id FROM pets ORDER BY id;
DELETE FROM owners;
SELECT count(*) FROM pets;
-- GROUP BY the primary key after DROP COLUMN
CREATE TABLE grouped (dropped int, id int PRIMARY KEY, name text);
INSERT INTO grouped VALUES (1, 1, 'one'), (2, 2, 'two');
ALTER TABLE grouped DROP COLUMN dropped;
SELECT g.id, g.name, count(h.id) FROM grouped g LEFT JOIN grouped h ON h.id < g.id GROUP BY g.id ORDER BY g.id;
DROP TABLE grouped;
