"""Names of all functions and operators of PostgreSQL.

A name that the catalogue lacks is not supported if it is listed here, and otherwise does not exist.

Source: PostgreSQL 15, catalogs pg_proc and pg_operator, without functions for internal use.
"""

FUNCTIONS = frozenset(
    """
    abbrev abs aclcontains acldefault aclinsert aclremove acos acosd acosh age area array_agg array_agg_array_finalfn
    array_agg_array_transfn array_agg_finalfn array_agg_transfn array_append array_cat array_dims array_fill array_larger
    array_length array_lower array_ndims array_position array_positions array_prepend array_remove array_replace array_smaller
    array_subscript_handler array_to_json array_to_string array_to_tsvector array_typanalyze array_upper ascii asin asind asinh
    atan atan2 atan2d atand atanh avg bernoulli bit bit_and bit_count bit_length bit_or bit_xor bool_accum bool_accum_inv
    bool_alltrue bool_and bool_anytrue bool_or booland_statefunc boolor_statefunc bound_box broadcast btrim
    bytea_string_agg_finalfn bytea_string_agg_transfn cardinality cbrt ceil ceiling center char char_length character_length chr
    clock_timestamp col_description concat concat_ws convert_from convert_to corr cos cosd cosh cot cotd count covar_pop
    covar_samp cume_dist cume_dist_final current_catalog current_database current_query current_role current_schema
    current_schemas current_setting current_user currtid2 currval cursor_to_xml cursor_to_xmlschema database_to_xml
    database_to_xml_and_xmlschema database_to_xmlschema date_bin date_part date_trunc datemultirange daterange daterange_subdiff
    decode degrees dense_rank dense_rank_final dexp diagonal diameter div dlog1 dlog10 dround dtrunc encode every exp extract
    factorial family first_value floor fmgr_c_validator fmgr_internal_validator fmgr_sql_validator format format_type gcd
    gen_random_uuid generate_series generate_subscripts get_bit get_byte get_current_ts_config getdatabaseencoding getpgusername
    gtsquery_compress gtsquery_consistent gtsquery_penalty gtsquery_picksplit gtsquery_same gtsquery_union gtsvector_compress
    gtsvector_consistent gtsvector_decompress gtsvector_options gtsvector_penalty gtsvector_picksplit gtsvector_same
    gtsvector_union heap_tableam_handler height host hostmask in_range initcap int4multirange int4range int8multirange int8range
    interval is_normalized isclosed isempty isfinite ishorizontal isopen isparallel isperp isvertical json_agg json_agg_finalfn
    json_agg_transfn json_array_elements json_array_elements_text json_array_length json_build_array json_build_object json_each
    json_each_text json_extract_path json_extract_path_text json_object json_object_agg json_object_agg_finalfn
    json_object_agg_transfn json_object_keys json_populate_record json_populate_recordset json_strip_nulls json_to_record
    json_to_recordset json_to_tsvector json_typeof jsonb_agg jsonb_agg_finalfn jsonb_agg_transfn jsonb_array_elements
    jsonb_array_elements_text jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text
    jsonb_extract_path jsonb_extract_path_text jsonb_insert jsonb_object jsonb_object_agg jsonb_object_agg_finalfn
    jsonb_object_agg_transfn jsonb_object_keys jsonb_path_exists jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz
    jsonb_path_query jsonb_path_query_array jsonb_path_query_array_tz jsonb_path_query_first jsonb_path_query_first_tz
    jsonb_path_query_tz jsonb_populate_record jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls
    jsonb_subscript_handler jsonb_to_record jsonb_to_recordset jsonb_to_tsvector jsonb_typeof justify_days justify_hours
    justify_interval lag last_value lastval lcm lead left length like ln lo_close lo_creat lo_create lo_export lo_from_bytea
    lo_get lo_import lo_lseek lo_lseek64 lo_open lo_put lo_tell lo_tell64 lo_truncate lo_truncate64 lo_unlink localtime log
    log10 loread lower lower_inc lower_inf lowrite lpad ltrim make_date make_interval make_time make_timestamp make_timestamptz
    makeaclitem masklen max md5 min min_scale mod mode mode_final multirange mxid_age netmask network network_larger
    network_smaller nextval normalize notlike now npoints nth_value ntile num_nonnulls num_nulls numeric nummultirange numnode
    numrange numrange_subdiff obj_description octet_length ordered_set_transition ordered_set_transition_multi overlaps overlay
    parse_ident pclose percent_rank percent_rank_final percentile_cont percentile_cont_float8_final
    percentile_cont_float8_multi_final percentile_cont_interval_final percentile_cont_interval_multi_final percentile_disc
    percentile_disc_final percentile_disc_multi_final phraseto_tsquery pi plainto_tsquery popen position
    postgresql_fdw_validator pow power query_to_xml query_to_xml_and_xmlschema query_to_xmlschema querytree quote_ident
    quote_literal quote_nullable radians radius random range_agg range_intersect_agg range_merge rank rank_final
    raw_array_subscript_handler regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace
    regexp_split_to_array regexp_split_to_table regexp_substr regr_count regr_r2 regr_slope repeat replace reverse right round
    row_number row_security_active rpad rtrim scale schema_to_xml schema_to_xml_and_xmlschema schema_to_xmlschema session_user
    set_bit set_byte set_config set_masklen setseed setval setweight sha224 sha256 sha384 sha512 shobj_description sign sin sind
    sinh slope split_part sqrt starts_with statement_timestamp stddev stddev_pop stddev_samp string_agg string_agg_finalfn
    string_agg_transfn string_to_array string_to_table strip strpos substr substring sum suppress_redundant_updates_trigger
    system table_to_xml table_to_xml_and_xmlschema table_to_xmlschema tan tand tanh text textlen time timeofday timestamp
    timestamptz timezone to_ascii to_char to_date to_hex to_json to_jsonb to_number to_timestamp to_tsquery to_tsvector
    transaction_timestamp translate trim_array trim_scale trunc tsmultirange tsquery_phrase tsrange tsrange_subdiff
    tstzmultirange tstzrange tstzrange_subdiff tsvector_update_trigger tsvector_update_trigger_column txid_current
    txid_current_if_assigned txid_current_snapshot txid_snapshot_xip txid_snapshot_xmax txid_status txid_visible_in_snapshot
    unique_key_recheck unistr unnest upper upper_inc upper_inf user var_pop var_samp varbit varchar variance version
    websearch_to_tsquery width width_bucket xmlagg xpath xpath_exists
    """.split()
)

OPERATORS = frozenset(
    """
    !! !~ !~* !~~ !~~* # ## #- #> #>> % & && &< &<| &> * *< *<= *<> *= *> *>= + - -> ->> -|- / < <-> << <<= <<| <= <> <@ <^ = >
    >= >> >>= >^ ? ?# ?& ?- ?-| ?| ?|| @ @-@ @> @? @@ @@@ ^ ^@ | |&> |/ |>> || ||/ ~ ~* ~<=~ ~<~ ~= ~>=~ ~>~ ~~ ~~*
    """.split()
)
