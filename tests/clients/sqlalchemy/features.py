"""The features of PostgreSQL's dialect: the tests of the suite that run."""

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

OPEN = """
    aggregate_order_by array_type autocommit boolean_col_expressions check_constraint_reflection column_collation_reflection
    comment_reflection comment_reflection_full_unicode constraint_comment_reflection create_or_replace_view create_table_as
    create_temp_table_as cross_schema_fk_reflection ctes ctes_on_dml ctes_with_update_delete ctes_with_values date_historic
    datetime_historic datetime_interval datetime_literals datetime_timezone datetime_timezone_historic default_schema_name_switch
    deferrable_fks delete_from except_ expression_server_defaults fetch_expression fetch_first fetch_no_order_by fetch_ties
    fk_constraint_option_reflection_ondelete_restrict fk_constraint_option_reflection_onupdate_restrict
    float_or_double_precision_behaves_generically foreign_key_constraint_name_reflection
    foreign_key_constraint_option_reflection_ondelete foreign_key_constraint_option_reflection_onupdate has_temp_table
    identity_columns identity_columns_standard implicit_default_schema index_reflects_included_columns indexes_check_column_order
    indexes_with_expressions infinity_floats inline_check_constraint_reflection intersect isolation_level json_type
    materialized_views mod_operator_as_percent_sign non_updating_cascade nullsordering order_by_label_with_expression
    percent_schema_names precision_numerics_enotation_small precision_numerics_many_significant_digits
    precision_numerics_retains_significant_digits reflect_indexes_with_expressions reflect_table_options reflect_tables_no_columns
    reflects_pk_names regexp_match regexp_replace repeated_remote_col_foreign_keys savepoints schema_create_delete server_defaults
    supports_bitwise_and supports_bitwise_not supports_bitwise_or supports_bitwise_shift supports_bitwise_xor supports_distinct_on
    table_value_constructor temp_table_names temporary_views time_timezone timestamp_microseconds tuple_in unicode_ddl
    unique_constraints_reflect_as_index update_from uuid_data_type views window_functions window_range window_range_non_numeric
    window_range_numeric
""".split()


class Features(SuiteRequirements):
    """All features that are closed by default and that PostgreSQL 15 has.

    Computed columns stay closed: the suite declares them without `persisted`, and SQLAlchemy then warns that PostgreSQL 15
    has no virtual ones.
    """


for feature in OPEN:
    assert isinstance(getattr(SuiteRequirements, feature), property), feature
    setattr(Features, feature, property(lambda self: exclusions.open()))
