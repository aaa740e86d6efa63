-- of the session
SELECT pg_advisory_lock(1)::text, pg_try_advisory_lock(1), pg_advisory_lock_shared(1)::text, pg_try_advisory_lock_shared(1);
SELECT pg_advisory_lock(1, 2)::text, pg_try_advisory_lock(-1, 2147483647), pg_try_advisory_lock(-9223372036854775808);
SELECT locktype, classid, objid, objsubid, mode, granted FROM pg_locks WHERE locktype = 'advisory' ORDER BY 5, 2, 3;
SELECT pg_advisory_unlock(1), pg_advisory_unlock(1), pg_advisory_unlock(1), pg_advisory_unlock(2);
SELECT pg_advisory_unlock_shared(1), pg_advisory_unlock_shared(1), pg_advisory_unlock_shared(1);
SELECT pg_advisory_unlock(1, 2), pg_advisory_unlock(2, 1);
SELECT pg_advisory_lock(NULL)::text, pg_try_advisory_lock(1, NULL), pg_advisory_unlock(NULL);
SELECT pg_advisory_unlock_all()::text;
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
-- of the transaction
SELECT pg_advisory_xact_lock(3)::text, pg_try_advisory_xact_lock_shared(3);
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
BEGIN;
SELECT pg_advisory_xact_lock(4)::text, pg_try_advisory_xact_lock(4), pg_advisory_unlock(4);
SAVEPOINT a;
SELECT pg_advisory_xact_lock(4)::text, pg_advisory_xact_lock_shared(5)::text, pg_advisory_lock(6)::text;
SELECT objid FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1;
ROLLBACK TO a;
SELECT objid FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1;
SELECT 1 / 0;
ROLLBACK;
SELECT objid FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1;
BEGIN;
SELECT pg_advisory_xact_lock(6)::text, pg_advisory_unlock(6);
SELECT objid, mode FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1;
COMMIT;
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
SELECT pg_advisory_lock(7)::text;
DISCARD ALL;
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
-- places and errors
VALUES (pg_try_advisory_lock(8));
SELECT pg_advisory_unlock(8) AS first, pg_advisory_unlock('8') AS second, pg_advisory_unlock(8::smallint) AS third;
SELECT pg_advisory_lock('x');
SELECT pg_advisory_lock(1.5);
SELECT pg_advisory_lock();
SELECT pg_advisory_lock(1, 2, 3);
SELECT pg_advisory_lock(1, 3000000000)::text;
-- hashes of texts as keys
SELECT hashtext('migration') AS a, hashtextextended('migration', 7) AS b, hashtext('') AS c, hashtext(NULL) AS d, hashtextextended('äöü and more than twelve bytes', -1) AS e;
SELECT pg_try_advisory_xact_lock(hashtext('a')) AS got, pg_try_advisory_lock(hashtext('a')::bigint) AS second, pg_try_advisory_lock(hashtext('a'), hashtext('b')) AS pair;
SELECT classid, objid, objsubid FROM pg_locks WHERE locktype = 'advisory' ORDER BY 1, 2, 3;
SELECT pg_advisory_unlock(hashtext('a')) AS a, pg_advisory_unlock(hashtext('a'), hashtext('b')) AS b, pg_advisory_unlock(hashtextextended('a', 0)) AS c;
PREPARE locked AS SELECT pg_try_advisory_xact_lock(hashtext('job ' || $1)) AS got, pg_try_advisory_xact_lock(hashtextextended($1, $2)) AS other;
EXECUTE locked ('x', 5);
EXECUTE locked (NULL, 5);
