-- values that aggregates without ORDER BY collect are in the order of a subquery, of a function's rows or of VALUES
CREATE TABLE t (id int PRIMARY KEY, n int, words text[], doc jsonb);
INSERT INTO t VALUES (1, 5, '{b,a,c}', '[3, 1, 2]'), (2, NULL, '{}', '[]'), (3, 1, '{z,NULL,y}', '["b", "a"]'), (10, 3, NULL, NULL);
SELECT array_agg(x) AS a, string_agg(x::text, ',') AS b, json_agg(x) AS c, jsonb_agg(x) AS d FROM (VALUES (3), (1), (2)) v (x);
SELECT json_agg(x)::jsonb AS a FROM (SELECT id, n FROM t ORDER BY id) x;
SELECT json_agg(row_to_json(x))::jsonb AS a FROM (SELECT id FROM t ORDER BY n DESC NULLS LAST LIMIT 3) x WHERE id > 1;
WITH s AS (SELECT id, n FROM t ORDER BY n, id) SELECT coalesce(json_agg(y), '[]')::jsonb AS a, count(*) AS c FROM (SELECT * FROM s) y;
SELECT k, array_agg(id) AS a, sum(id) AS b FROM (SELECT id % 2 AS k, id FROM t ORDER BY id DESC) x GROUP BY k ORDER BY k;
SELECT id, string_agg(w, ',') AS a, array_agg(w ORDER BY w) AS b, array_agg(DISTINCT w) AS c FROM t, unnest(words) w GROUP BY id ORDER BY id;
SELECT id, (SELECT string_agg(e #>> '{}', '') FROM jsonb_array_elements(doc) e) AS a, (SELECT array_agg(w || o) FROM unnest(words) WITH ORDINALITY q (w, o)) AS b FROM t ORDER BY id;
SELECT id, array_agg(w) FILTER (WHERE w > 'a') AS a FROM t LEFT JOIN LATERAL unnest(words) w ON true GROUP BY id ORDER BY id;
SELECT array_agg(g) AS a, string_agg(g::text, '') AS b FROM generate_series(5, 1, -2) g;
SELECT array_agg(b) AS a FROM (SELECT n AS b FROM t UNION SELECT 4 ORDER BY 1 DESC) x;
SELECT ARRAY(SELECT x FROM unnest(ARRAY[3, 1, 2]) x) AS a, ARRAY(SELECT unnest(ARRAY['b', 'a'])) AS b, ARRAY(SELECT x FROM (VALUES (3), (1)) v (x) WHERE x > 0) AS c;
SELECT id, ARRAY(SELECT words[i] FROM generate_subscripts(words, 1) i) AS a, ARRAY(SELECT e FROM jsonb_array_elements(doc) e WHERE e > '0') AS b FROM t ORDER BY id;
SELECT jsonb_agg(DISTINCT n ORDER BY n DESC) AS a, jsonb_agg(DISTINCT 'w' || n ORDER BY 'w' || n) AS b FROM t;
WITH r AS (SELECT random() AS x FROM generate_series(1, 50)) SELECT (SELECT sum(x) FROM r)::numeric(20, 8) = (SELECT sum(y) FROM unnest((SELECT array_agg(x) FROM r)) y)::numeric(20, 8) AS same;
