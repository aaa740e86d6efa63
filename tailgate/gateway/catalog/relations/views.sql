-- Relations of PostgreSQL's catalog that are queries over others, by their definitions in PostgreSQL 15 (system_views.sql,
-- information_schema.sql). `-- view schema.name`, then the query; the columns' names come from relations.json.
-- Before them are macros of a type's oid and modifier, as information_schema._pg_char_max_length() and others in PostgreSQL.

CREATE MACRO pg_char_max_length(type, modifier) AS
    CAST(CASE WHEN type IN (1042, 1043) AND modifier > 0 THEN modifier - 4 WHEN type IN (1560, 1562) AND modifier > 0 THEN modifier END AS INTEGER);
CREATE MACRO pg_char_octet_length(type, modifier) AS
    CAST(CASE WHEN type IN (25, 1042, 1043) THEN CASE WHEN modifier > 0 AND type <> 25 THEN (modifier - 4) * 4 ELSE 1073741824 END END AS INTEGER);
CREATE MACRO pg_numeric_precision(type, modifier) AS
    CAST(CASE type WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53
    WHEN 1700 THEN CASE WHEN modifier > 0 THEN ((modifier - 4) >> 16) & 65535 END END AS INTEGER);
CREATE MACRO pg_numeric_precision_radix(type) AS
    CAST(CASE WHEN type IN (21, 23, 20, 700, 701) THEN 2 WHEN type = 1700 THEN 10 END AS INTEGER);
CREATE MACRO pg_numeric_scale(type, modifier) AS
    CAST(CASE WHEN type IN (21, 23, 20) THEN 0 WHEN type = 1700 AND modifier > 0 THEN (modifier - 4) & 65535 END AS INTEGER);
CREATE MACRO pg_datetime_precision(type, modifier) AS
    CAST(CASE WHEN type = 1082 THEN 0 WHEN type IN (1083, 1114, 1184, 1266) THEN CASE WHEN modifier < 0 THEN 6 ELSE modifier END
    WHEN type = 1186 THEN CASE WHEN modifier < 0 OR (modifier & 65535) = 65535 THEN 6 ELSE modifier & 65535 END END AS INTEGER);
CREATE MACRO pg_interval_type(type, modifier) AS
    CASE WHEN type = 1186 THEN upper(nullif(regexp_extract(pg_format_type_2(type, modifier), '^interval[()0-9]* (.*)$', 1), '')) END;
CREATE MACRO pg_valid_until(micros) AS CASE micros WHEN 9223372036854775807 THEN CAST('infinity' AS TIMESTAMPTZ)
    WHEN -9223372036854775807 THEN CAST('-infinity' AS TIMESTAMPTZ) ELSE make_timestamptz(micros) END;
CREATE MACRO pg_int4(x) AS CASE WHEN typeof(x) = 'UINTEGER' AND CAST(x AS BIGINT) > 2147483647
    THEN CAST(CAST(x AS BIGINT) - 4294967296 AS INTEGER) ELSE CAST(x AS INTEGER) END;
CREATE MACRO pg_database_oid() AS CAST(CASE WHEN pg_current_database_0() = 'postgres' THEN 5 ELSE 16384 END AS UINTEGER);

-- view pg_catalog.pg_settings
SELECT name, CASE WHEN unit IS NULL THEN coalesce(pg_current_setting_2(name, true), setting) ELSE setting END, unit, category, short_desc,
       extra_desc, context, vartype, source, min_val, max_val, enumvals, boot_val, reset_val, NULL, CAST(NULL AS INTEGER), pending_restart
FROM pg.fixed_pg_settings
UNION ALL
SELECT * FROM pg.tailgate_settings

-- view pg_catalog.pg_roles
SELECT CASE WHEN oid = 10 THEN pg_operator_0() ELSE rolname END, * EXCLUDE (rolname)
       REPLACE ((SELECT m.rolconfig FROM pg.made_roles m WHERE m.oid = r.oid) AS rolconfig,
                coalesce((SELECT m.rolconnlimit FROM pg.made_roles m WHERE m.oid = r.oid), rolconnlimit) AS rolconnlimit,
                (SELECT pg_valid_until(m.valid_until) FROM pg.made_roles m WHERE m.oid = r.oid) AS rolvaliduntil)
FROM pg.fixed_pg_roles r
UNION ALL
SELECT rolname, rolsuper, true, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolconnlimit, '********',
       pg_valid_until(valid_until), rolbypassrls, rolconfig, oid
FROM pg.made_roles WHERE oid NOT IN (0, 10)

-- view pg_catalog.pg_available_extensions
SELECT name, version, version, comment FROM pg.made_extensions

-- view pg_catalog.pg_db_role_setting
SELECT CASE WHEN oid > 0 THEN CAST(0 AS UINTEGER) ELSE pg_database_oid() END, oid, rolconfig FROM pg.made_roles WHERE rolconfig IS NOT NULL
UNION ALL
SELECT CASE WHEN oid > 0 THEN pg_database_oid() ELSE CAST(0 AS UINTEGER) END, oid, otherconfig FROM pg.made_roles WHERE otherconfig IS NOT NULL

-- view pg_catalog.pg_shdescription
SELECT objoid, classoid, description FROM pg.fixed_pg_shdescription
WHERE objoid <> pg_database_oid() OR NOT EXISTS (FROM pg.made_roles WHERE oid = 0 AND comment IS NOT NULL)
UNION ALL
SELECT CASE WHEN oid > 0 THEN oid ELSE pg_database_oid() END, CAST(CASE WHEN oid > 0 THEN 1260 ELSE 1262 END AS UINTEGER), comment
FROM pg.made_roles WHERE comment IS NOT NULL

-- view pg_catalog.pg_authid
SELECT r.oid, r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolreplication, r.rolbypassrls,
       r.rolconnlimit, m.rolpassword, r.rolvaliduntil
FROM pg.pg_roles r LEFT JOIN pg.made_roles m ON m.oid = r.oid

-- view pg_catalog.pg_init_privs
SELECT oid, CAST(1259 AS UINTEGER), CAST(0 AS INTEGER), 'i', relacl FROM pg.pg_class
WHERE relacl IS NOT NULL AND (oid < 16384 OR relnamespace IN (SELECT oid FROM pg.pg_namespace WHERE nspname = 'tailgate'))
UNION ALL
SELECT attrelid, CAST(1259 AS UINTEGER), CAST(attnum AS INTEGER), 'i', attacl FROM pg.pg_attribute WHERE attacl IS NOT NULL AND attrelid < 16384
UNION ALL
SELECT oid, CAST(1255 AS UINTEGER), CAST(0 AS INTEGER), 'i', proacl FROM pg.pg_proc WHERE proacl IS NOT NULL AND oid < 16384
UNION ALL
SELECT oid, CAST(2615 AS UINTEGER), CAST(0 AS INTEGER), 'i', CASE WHEN oid = 2200
       THEN ['pg_database_owner=UC/pg_database_owner', '=U/pg_database_owner'] ELSE nspacl END
FROM pg.pg_namespace WHERE oid < 16384 AND nspacl IS NOT NULL OR oid = 2200 OR nspname = 'tailgate'

-- view pg_catalog.pg_shadow
SELECT r.rolname, r.oid, r.rolcreatedb, r.rolsuper, r.rolreplication, r.rolbypassrls, m.rolpassword, r.rolvaliduntil, r.rolconfig
FROM pg.pg_roles r LEFT JOIN pg.made_roles m ON m.oid = r.oid WHERE r.rolcanlogin

-- view pg_catalog.pg_sequences
SELECT n.nspname, c.relname, pg_pg_get_userbyid_1(c.relowner), s.seqtypid, s.seqstart, s.seqmin, s.seqmax, s.seqincrement, s.seqcycle,
       s.seqcache, pg_pg_sequence_last_value_1(c.oid)
FROM pg.pg_sequence s JOIN pg.pg_class c ON c.oid = s.seqrelid JOIN pg.pg_namespace n ON n.oid = c.relnamespace

-- view pg_catalog.pg_database
SELECT pg_database_oid(), current.name, CAST(10 AS UINTEGER),
       CAST(6 AS INTEGER), 'c', false, true, CAST(-1 AS INTEGER), CAST(0 AS UINTEGER), CAST(0 AS UINTEGER), CAST(1663 AS UINTEGER), 'C', 'C',
       NULL, NULL, current.acl
FROM (SELECT pg_current_database_0() AS name, (SELECT datacl FROM pg.made_database) AS acl) AS current
UNION ALL
SELECT * REPLACE (list_transform(datacl, lambda a: replace(a, 'postgres', pg_operator_0())) AS datacl) FROM pg.fixed_pg_database
WHERE datname <> pg_current_database_0()

-- view pg_catalog.pg_user
SELECT rolname, oid, rolcreatedb, rolsuper, rolreplication, rolbypassrls, '********', rolvaliduntil, rolconfig
FROM pg.pg_roles WHERE rolcanlogin

-- view pg_catalog.pg_group
SELECT rolname, oid, coalesce((SELECT list(m.member) FROM pg.pg_auth_members m WHERE m.roleid = r.oid), [])
FROM pg.pg_roles r WHERE NOT rolcanlogin

-- view pg_catalog.pg_tables
SELECT n.nspname, c.relname, pg_pg_get_userbyid_1(c.relowner), t.spcname, c.relhasindex, c.relhasrules, c.relhastriggers, c.relrowsecurity
FROM pg.pg_class c LEFT JOIN pg.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg.pg_tablespace t ON t.oid = c.reltablespace
WHERE c.relkind IN ('r', 'p')

-- view pg_catalog.pg_views
SELECT n.nspname, c.relname, pg_pg_get_userbyid_1(c.relowner), pg_pg_get_viewdef_1(c.oid)
FROM pg.pg_class c LEFT JOIN pg.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v'

-- view pg_catalog.pg_matviews
SELECT n.nspname, c.relname, pg_pg_get_userbyid_1(c.relowner), t.spcname, c.relhasindex, c.relispopulated, pg_pg_get_viewdef_1(c.oid)
FROM pg.pg_class c LEFT JOIN pg.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg.pg_tablespace t ON t.oid = c.reltablespace
WHERE c.relkind = 'm'

-- view pg_catalog.pg_indexes
SELECT n.nspname, c.relname, i.relname, t.spcname, pg_pg_get_indexdef_1(i.oid)
FROM pg.pg_index x JOIN pg.pg_class c ON c.oid = x.indrelid JOIN pg.pg_class i ON i.oid = x.indexrelid
LEFT JOIN pg.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg.pg_tablespace t ON t.oid = i.reltablespace
WHERE c.relkind IN ('r', 'm', 'p') AND i.relkind IN ('i', 'I')

-- view pg_catalog.pg_stat_all_tables
SELECT c.oid, n.nspname, c.relname, CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(0 AS BIGINT),
       CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT),
       CAST(NULL AS TIMESTAMPTZ), CAST(NULL AS TIMESTAMPTZ), CAST(NULL AS TIMESTAMPTZ), CAST(NULL AS TIMESTAMPTZ), CAST(0 AS BIGINT),
       CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT)
FROM pg.pg_class c LEFT JOIN pg.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 't', 'm', 'p')

-- view pg_catalog.pg_stat_user_tables
SELECT * FROM pg.pg_stat_all_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast.*'

-- view pg_catalog.pg_stat_all_indexes
SELECT c.oid, i.oid, n.nspname, c.relname, i.relname, CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT)
FROM pg.pg_class c JOIN pg.pg_index x ON c.oid = x.indrelid JOIN pg.pg_class i ON i.oid = x.indexrelid
LEFT JOIN pg.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 't', 'm')

-- view pg_catalog.pg_stat_user_indexes
SELECT * FROM pg.pg_stat_all_indexes WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast.*'

-- view pg_catalog.pg_statio_all_tables
SELECT c.oid, n.nspname, c.relname, CAST(0 AS BIGINT), CAST(0 AS BIGINT),
       CASE WHEN c.relhasindex THEN CAST(0 AS BIGINT) END, CASE WHEN c.relhasindex THEN CAST(0 AS BIGINT) END,
       CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS BIGINT)
FROM pg.pg_class c LEFT JOIN pg.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 't', 'm')

-- view pg_catalog.pg_statio_user_tables
SELECT * FROM pg.pg_statio_all_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast.*'

-- view information_schema.information_schema_catalog_name
SELECT pg_current_database_0()

-- view information_schema.schemata
SELECT pg_current_database_0(), nspname, pg_pg_get_userbyid_1(nspowner), NULL, NULL, NULL, NULL FROM pg.pg_namespace

-- view information_schema.tables
SELECT pg_current_database_0(), n.nspname, c.relname, CASE WHEN c.relpersistence = 't' THEN 'LOCAL TEMPORARY' WHEN c.relkind IN ('r', 'p') THEN 'BASE TABLE' ELSE 'VIEW' END,
       NULL, NULL, NULL, NULL, NULL, CASE WHEN c.relkind IN ('r', 'p') OR (c.relkind = 'v' AND pg_pg_relation_is_updatable_2(c.oid, false) & 8 = 8) THEN 'YES' ELSE 'NO' END, 'NO', NULL
FROM pg.pg_namespace n JOIN pg.pg_class c ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'f', 'p') AND (pg_has_table_privilege_2(CAST(c.oid AS VARCHAR), 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
           OR pg_has_any_column_privilege_2(CAST(c.oid AS VARCHAR), 'SELECT, INSERT, UPDATE, REFERENCES'))

-- view information_schema.views
SELECT pg_current_database_0(), n.nspname, c.relname, pg_pg_get_viewdef_1(c.oid),
       CASE WHEN list_contains(c.reloptions, 'check_option=cascaded') THEN 'CASCADED'
            WHEN list_contains(c.reloptions, 'check_option=local') THEN 'LOCAL' ELSE 'NONE' END,
       CASE WHEN pg_pg_relation_is_updatable_2(c.oid, false) & 20 = 20 THEN 'YES' ELSE 'NO' END,
       CASE WHEN pg_pg_relation_is_updatable_2(c.oid, false) & 8 = 8 THEN 'YES' ELSE 'NO' END, 'NO', 'NO', 'NO'
FROM pg.pg_namespace n JOIN pg.pg_class c ON n.oid = c.relnamespace
WHERE c.relkind = 'v' AND (pg_has_table_privilege_2(CAST(c.oid AS VARCHAR), 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
           OR pg_has_any_column_privilege_2(CAST(c.oid AS VARCHAR), 'SELECT, INSERT, UPDATE, REFERENCES'))

-- view information_schema.columns
SELECT pg_current_database_0(), n.nspname, c.relname, a.attname, CAST(a.attnum AS INTEGER), CASE WHEN a.attgenerated = '' THEN d.adbin END,
       CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END,
       CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY' WHEN tn.nspname = 'pg_catalog' THEN pg_format_type_2(a.atttypid, NULL) ELSE 'USER-DEFINED' END,
       pg_char_max_length(a.atttypid, a.atttypmod), pg_char_octet_length(a.atttypid, a.atttypmod),
       pg_numeric_precision(a.atttypid, a.atttypmod), pg_numeric_precision_radix(a.atttypid), pg_numeric_scale(a.atttypid, a.atttypmod),
       pg_datetime_precision(a.atttypid, a.atttypmod), pg_interval_type(a.atttypid, a.atttypmod),
       CAST(NULL AS INTEGER), NULL, NULL, NULL,
       CASE WHEN co.collname IS NOT NULL THEN pg_current_database_0() END, cn.nspname, co.collname,
       CASE WHEN dt.oid IS NOT NULL THEN pg_current_database_0() END, dn.nspname, dt.typname,
       pg_current_database_0(), tn.nspname, t.typname, NULL, NULL, NULL, CAST(NULL AS INTEGER), CAST(a.attnum AS VARCHAR),
       'NO', CASE WHEN a.attidentity IN ('a', 'd') THEN 'YES' ELSE 'NO' END, CASE a.attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT' END,
       CAST(s.seqstart AS VARCHAR), CAST(s.seqincrement AS VARCHAR), CAST(s.seqmax AS VARCHAR), CAST(s.seqmin AS VARCHAR),
       CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END,
       CASE WHEN a.attgenerated = 's' THEN 'ALWAYS' ELSE 'NEVER' END, CASE WHEN a.attgenerated = 's' THEN d.adbin END,
       CASE WHEN c.relkind IN ('r', 'p') OR (c.relkind = 'v' AND pg_pg_column_is_updatable_3(c.oid, a.attnum, false)) THEN 'YES' ELSE 'NO' END
FROM (SELECT a.* REPLACE (CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE a.atttypid END AS atttypid,
                          CASE WHEN d.typtype = 'd' THEN d.typtypmod ELSE a.atttypmod END AS atttypmod),
             CASE WHEN d.typtype = 'd' THEN d.oid END AS domain
      FROM pg.pg_attribute a JOIN pg.pg_type d ON d.oid = a.atttypid) a
JOIN pg.pg_class c ON a.attrelid = c.oid JOIN pg.pg_namespace n ON c.relnamespace = n.oid
JOIN pg.pg_type t ON a.atttypid = t.oid JOIN pg.pg_namespace tn ON t.typnamespace = tn.oid
LEFT JOIN pg.pg_type dt ON dt.oid = a.domain LEFT JOIN pg.pg_namespace dn ON dn.oid = dt.typnamespace
LEFT JOIN pg.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg.pg_collation co ON a.attcollation = co.oid AND co.collname <> 'default' LEFT JOIN pg.pg_namespace cn ON co.collnamespace = cn.oid
LEFT JOIN pg.pg_depend o ON o.classid = 1259 AND o.refclassid = 1259 AND o.refobjid = a.attrelid AND o.refobjsubid = a.attnum AND o.deptype = 'i'
LEFT JOIN pg.pg_sequence s ON s.seqrelid = o.objid
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'f', 'p')
      AND (pg_pg_has_role_2(CAST(c.relowner AS VARCHAR), 'USAGE')
           OR pg_has_column_privilege_3(CAST(c.oid AS VARCHAR), CAST(a.attnum AS VARCHAR), 'SELECT, INSERT, UPDATE, REFERENCES'))

-- view information_schema.attributes
SELECT pg_current_database_0(), n.nspname, c.relname, a.attname, CAST(a.attnum AS INTEGER), NULL, CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END,
       CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY' WHEN tn.nspname = 'pg_catalog' THEN pg_format_type_2(a.atttypid, NULL) ELSE 'USER-DEFINED' END,
       pg_char_max_length(a.atttypid, a.atttypmod), pg_char_octet_length(a.atttypid, a.atttypmod),
       NULL, NULL, NULL, CASE WHEN co.collname IS NOT NULL THEN pg_current_database_0() END, cn.nspname, co.collname,
       pg_numeric_precision(a.atttypid, a.atttypmod), pg_numeric_precision_radix(a.atttypid), pg_numeric_scale(a.atttypid, a.atttypmod),
       pg_datetime_precision(a.atttypid, a.atttypmod), pg_interval_type(a.atttypid, a.atttypmod),
       CAST(NULL AS INTEGER), pg_current_database_0(), tn.nspname, t.typname, NULL, NULL, NULL, CAST(NULL AS INTEGER), CAST(a.attnum AS VARCHAR), 'NO'
FROM pg.pg_attribute a JOIN pg.pg_class c ON a.attrelid = c.oid JOIN pg.pg_namespace n ON c.relnamespace = n.oid
JOIN pg.pg_type t ON a.atttypid = t.oid JOIN pg.pg_namespace tn ON t.typnamespace = tn.oid
LEFT JOIN pg.pg_collation co ON a.attcollation = co.oid AND co.collname <> 'default' LEFT JOIN pg.pg_namespace cn ON co.collnamespace = cn.oid
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind = 'c'

-- view information_schema.user_defined_types
SELECT pg_current_database_0(), n.nspname, c.relname, 'STRUCTURED', 'YES', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), NULL, NULL, NULL, NULL, NULL, NULL, CAST(NULL AS INTEGER), CAST(NULL AS INTEGER),
       CAST(NULL AS INTEGER), CAST(NULL AS INTEGER), NULL, CAST(NULL AS INTEGER), NULL, NULL
FROM pg.pg_class c JOIN pg.pg_namespace n ON c.relnamespace = n.oid WHERE c.relkind = 'c'

-- view information_schema.domains
SELECT pg_current_database_0(), n.nspname, t.typname,
       CASE WHEN bn.nspname = 'pg_catalog' THEN pg_format_type_2(t.typbasetype, NULL) ELSE 'USER-DEFINED' END,
       pg_char_max_length(b.oid, t.typtypmod), pg_char_octet_length(b.oid, t.typtypmod),
       NULL, NULL, NULL, CASE WHEN co.collname IS NOT NULL THEN pg_current_database_0() END, cn.nspname, co.collname,
       pg_numeric_precision(b.oid, t.typtypmod), pg_numeric_precision_radix(b.oid), pg_numeric_scale(b.oid, t.typtypmod),
       pg_datetime_precision(b.oid, t.typtypmod),
       NULL, CAST(NULL AS INTEGER), t.typdefault, pg_current_database_0(), bn.nspname, b.typname, NULL, NULL, NULL, CAST(NULL AS INTEGER), '1'
FROM pg.pg_type t JOIN pg.pg_namespace n ON n.oid = t.typnamespace JOIN pg.pg_type b ON b.oid = t.typbasetype
JOIN pg.pg_namespace bn ON bn.oid = b.typnamespace
LEFT JOIN pg.pg_collation co ON t.typcollation = co.oid AND co.collname <> 'default' LEFT JOIN pg.pg_namespace cn ON co.collnamespace = cn.oid
WHERE t.typtype = 'd'

-- view information_schema.domain_constraints
SELECT pg_current_database_0(), cn.nspname, x.conname, pg_current_database_0(), n.nspname, t.typname, 'NO', 'NO'
FROM pg.pg_constraint x JOIN pg.pg_namespace cn ON cn.oid = x.connamespace JOIN pg.pg_type t ON t.oid = x.contypid
JOIN pg.pg_namespace n ON n.oid = t.typnamespace

-- view information_schema.sequences
SELECT pg_current_database_0(), n.nspname, c.relname, pg_format_type_2(s.seqtypid, NULL),
       CAST(CASE s.seqtypid WHEN 21 THEN 16 WHEN 23 THEN 32 ELSE 64 END AS INTEGER), CAST(2 AS INTEGER), CAST(0 AS INTEGER),
       CAST(s.seqstart AS VARCHAR), CAST(s.seqmin AS VARCHAR), CAST(s.seqmax AS VARCHAR), CAST(s.seqincrement AS VARCHAR),
       CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END
FROM pg.pg_sequence s JOIN pg.pg_class c ON c.oid = s.seqrelid JOIN pg.pg_namespace n ON n.oid = c.relnamespace
WHERE NOT EXISTS (SELECT 1 FROM pg.pg_depend d WHERE d.classid = 1259 AND d.objid = c.oid AND d.deptype = 'i')

-- view information_schema.table_constraints
SELECT pg_current_database_0(), n.nspname, x.conname, pg_current_database_0(), n.nspname, c.relname,
       CASE x.contype WHEN 'c' THEN 'CHECK' WHEN 'f' THEN 'FOREIGN KEY' WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' END,
       CASE WHEN x.condeferrable THEN 'YES' ELSE 'NO' END, CASE WHEN x.condeferred THEN 'YES' ELSE 'NO' END, 'YES',
       CASE WHEN x.contype <> 'u' THEN NULL WHEN i.indnullsnotdistinct THEN 'NO' ELSE 'YES' END
FROM pg.pg_constraint x JOIN pg.pg_class c ON c.oid = x.conrelid JOIN pg.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg.pg_index i ON i.indexrelid = x.conindid WHERE x.contype IN ('c', 'f', 'p', 'u')

-- view information_schema.key_column_usage
SELECT pg_current_database_0(), n.nspname, x.conname, pg_current_database_0(), n.nspname, c.relname, a.attname,
       CAST(list_position(x.conkey, a.attnum) AS INTEGER),
       CASE WHEN x.contype = 'f' THEN CAST(list_position(i.indkey, x.confkey[list_position(x.conkey, a.attnum)]) AS INTEGER) END
FROM pg.pg_constraint x JOIN pg.pg_class c ON c.oid = x.conrelid JOIN pg.pg_namespace n ON n.oid = c.relnamespace
JOIN pg.pg_attribute a ON a.attrelid = c.oid AND list_contains(x.conkey, a.attnum)
LEFT JOIN pg.pg_index i ON i.indexrelid = x.conindid WHERE x.contype IN ('p', 'u', 'f')

-- view information_schema.constraint_column_usage
SELECT pg_current_database_0(), tn.nspname, c.relname, a.attname, pg_current_database_0(), n.nspname, x.conname
FROM pg.pg_constraint x JOIN pg.pg_namespace n ON n.oid = x.connamespace
JOIN pg.pg_class c ON c.oid = CASE WHEN x.contype = 'f' THEN x.confrelid ELSE x.conrelid END JOIN pg.pg_namespace tn ON tn.oid = c.relnamespace
JOIN pg.pg_attribute a ON a.attrelid = c.oid AND list_contains(CASE WHEN x.contype = 'f' THEN x.confkey ELSE x.conkey END, a.attnum)
WHERE x.contype IN ('p', 'u', 'c', 'f')

-- view information_schema.constraint_table_usage
SELECT pg_current_database_0(), rn.nspname, r.relname, pg_current_database_0(), n.nspname, x.conname
FROM pg.pg_constraint x JOIN pg.pg_namespace n ON n.oid = x.connamespace
JOIN pg.pg_class r ON r.oid = CASE WHEN x.contype = 'f' THEN x.confrelid ELSE x.conrelid END JOIN pg.pg_namespace rn ON rn.oid = r.relnamespace
WHERE x.contype IN ('f', 'p', 'u') AND r.relkind IN ('r', 'p') AND pg_pg_has_role_2(CAST(r.relowner AS VARCHAR), 'USAGE')

-- view information_schema.check_constraints
SELECT pg_current_database_0(), n.nspname, x.conname, substring(pg_pg_get_constraintdef_1(CAST(x.oid AS BIGINT)), 7)
FROM pg.pg_constraint x JOIN pg.pg_namespace n ON n.oid = x.connamespace WHERE x.contype = 'c'
UNION ALL
SELECT pg_current_database_0(), n.nspname, concat(n.oid, '_', c.oid, '_', a.attnum, '_not_null'), a.attname || ' IS NOT NULL'
FROM pg.pg_namespace n JOIN pg.pg_class c ON c.relnamespace = n.oid JOIN pg.pg_attribute a ON a.attrelid = c.oid
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull AND c.relkind IN ('r', 'p')

-- view information_schema.referential_constraints
SELECT pg_current_database_0(), n.nspname, x.conname, pg_current_database_0(), kn.nspname, k.conname,
       CASE x.confmatchtype WHEN 'f' THEN 'FULL' ELSE 'NONE' END,
       CASE x.confupdtype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT' ELSE 'NO ACTION' END,
       CASE x.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT' ELSE 'NO ACTION' END
FROM pg.pg_constraint x JOIN pg.pg_namespace n ON n.oid = x.connamespace
LEFT JOIN pg.pg_constraint k ON k.conindid = x.conindid AND k.contype IN ('p', 'u') LEFT JOIN pg.pg_namespace kn ON kn.oid = k.connamespace
WHERE x.contype = 'f'

-- view information_schema.table_privileges
SELECT pg_pg_get_userbyid_1(g.grantor), CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE pg_pg_get_userbyid_1(g.grantee) END,
       pg_current_database_0(), n.nspname, c.relname, g.privilege,
       CASE WHEN g.grantee <> 0 AND (g.grantable OR pg_pg_has_role_3(CAST(g.grantee AS VARCHAR), CAST(c.relowner AS VARCHAR), 'USAGE')) THEN 'YES' ELSE 'NO' END,
       CASE WHEN g.privilege = 'SELECT' THEN 'YES' ELSE 'NO' END
FROM (SELECT * FROM pg.made_grants WHERE attnum = 0
      UNION ALL
      SELECT oid, 0, relowner, 0, 'SELECT', false FROM pg.pg_class
      WHERE oid < 16384 AND pg_has_table_privilege_3('public', CAST(oid AS VARCHAR), 'SELECT')) g
JOIN pg.pg_class c ON c.oid = g.relation JOIN pg.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'f', 'p') AND (g.grantee = 0 OR pg_pg_has_role_2(CAST(g.grantor AS VARCHAR), 'USAGE')
      OR pg_pg_has_role_2(CAST(g.grantee AS VARCHAR), 'USAGE'))

-- view information_schema.column_privileges
SELECT DISTINCT pg_pg_get_userbyid_1(g.grantor), CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE pg_pg_get_userbyid_1(g.grantee) END,
       pg_current_database_0(), n.nspname, c.relname, a.attname, g.privilege,
       CASE WHEN g.grantee <> 0 AND (g.grantable OR pg_pg_has_role_3(CAST(g.grantee AS VARCHAR), CAST(c.relowner AS VARCHAR), 'USAGE')) THEN 'YES' ELSE 'NO' END
FROM pg.made_grants g JOIN pg.pg_class c ON c.oid = g.relation JOIN pg.pg_namespace n ON n.oid = c.relnamespace
JOIN pg.pg_attribute a ON a.attrelid = g.relation AND g.attnum IN (0, a.attnum)
WHERE c.relkind IN ('r', 'v', 'f', 'p') AND a.attnum > 0 AND NOT a.attisdropped AND g.privilege IN ('INSERT', 'SELECT', 'UPDATE', 'REFERENCES')
      AND (g.grantee = 0 OR pg_pg_has_role_2(CAST(g.grantor AS VARCHAR), 'USAGE') OR pg_pg_has_role_2(CAST(g.grantee AS VARCHAR), 'USAGE'))

-- view information_schema.enabled_roles
SELECT rolname FROM pg.pg_roles WHERE pg_pg_has_role_2(CAST(oid AS VARCHAR), 'USAGE')

-- view information_schema.role_table_grants
SELECT * FROM information.table_privileges
WHERE grantor IN (SELECT role_name FROM information.enabled_roles) OR grantee IN (SELECT role_name FROM information.enabled_roles)

-- view information_schema.role_column_grants
SELECT * FROM information.column_privileges
WHERE grantor IN (SELECT role_name FROM information.enabled_roles) OR grantee IN (SELECT role_name FROM information.enabled_roles)

-- view information_schema.applicable_roles
SELECT a.rolname, b.rolname, CASE WHEN m.admin_option THEN 'YES' ELSE 'NO' END
FROM (SELECT member, roleid, admin_option FROM pg.pg_auth_members
      UNION SELECT CAST(10 AS UINTEGER), oid, false FROM pg.pg_roles WHERE rolname = 'pg_database_owner') m
JOIN pg.pg_roles a ON m.member = a.oid JOIN pg.pg_roles b ON m.roleid = b.oid
WHERE pg_pg_has_role_2(CAST(a.oid AS VARCHAR), 'USAGE')

-- view information_schema.administrable_role_authorizations
SELECT * FROM information.applicable_roles WHERE is_grantable = 'YES'

-- view information_schema.character_sets
SELECT NULL, NULL, 'UTF8', 'UCS', 'UTF8', pg_current_database_0(), NULL, NULL
