"""The settings that exist, with PostgreSQL's names, defaults and rules. A name that contains a dot may be chosen freely.

Source: PostgreSQL 15, chapter 20, "Server Configuration".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tailgate.lake.errors import (
    UndefinedObject,
)
from tailgate.operations.settings.configuration import nearest
from tailgate.sql.ksqldb.declared.defaults import KEY_FORMATS, NO_FORMAT, VALUE_FORMATS
from tailgate.sql.ksqldb.declared.switches import PROPERTIES
from tailgate.sql.ksqldb.dialect import DIALECTS

# An existing minor version of PostgreSQL 15: drivers choose their statements by it, and some fail to parse a suffix.
SERVER_VERSION = "15.13"
SERVER_VERSION_NUM = "150013"


@dataclass(frozen=True, slots=True)
class Setting:
    """The definition of a setting.

    `kind`: how values are checked, a key of CHECKS. `choices`: the values of an enum, or the minimum and maximum of a number.
    `reported`: clients receive ParameterStatus when it changes. `fixed`: it cannot be changed.
    `superuser`: only superusers change it. `about`: the text in SHOW ALL.
    """

    name: str
    default: str
    kind: str = "string"
    choices: tuple[str, ...] = ()
    reported: bool = False
    fixed: bool = False
    superuser: bool = False
    about: str = ""

    @property
    def own(self) -> bool:
        """Returns whether PostgreSQL lacks the setting."""
        return self.name.startswith(("tailgate.", "real_time_", "auto.", "ksql."))


_INT_MAX = str(2**31 - 1)
_DAY_MS = _INT_MAX
_REAL_MAX = "1.7976931348623157e308"
# they have no effect: DuckDB and Spark plan queries
_PLANNER = (
    *(
        Setting(f"enable_{name}", "on", "bool")
        for name in """
        async_append bitmapscan gathermerge hashagg hashjoin incremental_sort indexonlyscan indexscan material memoize mergejoin nestloop
        parallel_append parallel_hash partition_pruning seqscan sort tidscan
        """.split()
    ),
    Setting("enable_partitionwise_aggregate", "off", "bool"),
    Setting("enable_partitionwise_join", "off", "bool"),
    *(
        Setting(name, default, "real", ("0", _REAL_MAX))
        for name, default in {
            "cpu_index_tuple_cost": "0.005",
            "cpu_operator_cost": "0.0025",
            "cpu_tuple_cost": "0.01",
            "parallel_setup_cost": "1000",
            "parallel_tuple_cost": "0.1",
            "random_page_cost": "4",
            "seq_page_cost": "1",
        }.items()
    ),
    *(
        Setting(name, default, "real", ("-1", _REAL_MAX))
        for name, default in {"jit_above_cost": "100000", "jit_inline_above_cost": "500000", "jit_optimize_above_cost": "500000"}.items()
    ),
    Setting("constraint_exclusion", "partition", "enum", ("partition", "on", "off")),
    Setting("cursor_tuple_fraction", "0.1", "real", ("0", "1")),
    Setting("default_statistics_target", "100", "int", ("1", "10000")),
    Setting("effective_cache_size", "4GB", "blocks", ("1", _INT_MAX)),
    Setting("force_parallel_mode", "off", "enum", ("off", "on", "regress")),
    Setting("from_collapse_limit", "8", "int", ("1", _INT_MAX)),
    Setting("geqo", "on", "bool"),
    Setting("geqo_effort", "5", "int", ("1", "10")),
    Setting("geqo_generations", "0", "int", ("0", _INT_MAX)),
    Setting("geqo_pool_size", "0", "int", ("0", _INT_MAX)),
    Setting("geqo_seed", "0", "real", ("0", "1")),
    Setting("geqo_selection_bias", "2", "real", ("1.5", "2")),
    Setting("geqo_threshold", "12", "int", ("2", _INT_MAX)),
    Setting("hash_mem_multiplier", "2", "real", ("1", "1000")),
    Setting("jit", "on", "bool"),
    Setting("join_collapse_limit", "8", "int", ("1", _INT_MAX)),
    Setting("max_parallel_maintenance_workers", "2", "int", ("0", "1024")),
    Setting("max_parallel_workers", "8", "int", ("0", "1024")),
    Setting("max_parallel_workers_per_gather", "2", "int", ("0", "1024")),
    Setting("min_parallel_index_scan_size", "512kB", "blocks", ("0", "715827882")),
    Setting("min_parallel_table_scan_size", "8MB", "blocks", ("0", "715827882")),
    Setting("parallel_leader_participation", "on", "bool"),
    Setting("plan_cache_mode", "auto", "enum", ("auto", "force_generic_plan", "force_custom_plan")),
    Setting("recursive_worktable_factor", "10", "real", ("0.001", "1000000")),
)
_ROWS = (
    *_PLANNER,
    Setting("application_name", "", reported=True, about="Sets the application name to be reported in statistics and logs."),
    Setting("array_nulls", "on", "bool"),
    Setting("auto.offset.reset", "latest", "enum", ("earliest", "latest"), about="Sets where queries of ksqlDB begin to read streams."),
    Setting("backslash_quote", "safe_encoding"),
    Setting("bytea_output", "hex", "enum", ("escape", "hex"), about="Sets the output format for bytea."),
    Setting("check_function_bodies", "on", "bool"),
    Setting("client_encoding", "UTF8", "encoding", reported=True, about="Sets the client's character set encoding."),
    Setting(
        "client_min_messages", "notice", "enum", ("debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error")
    ),
    Setting("DateStyle", "ISO, MDY", "datestyle", reported=True, about="Sets the display format for date and time values."),
    Setting("default_table_access_method", "heap"),
    Setting("default_tablespace", ""),
    Setting("default_text_search_config", "pg_catalog.simple"),
    Setting("default_transaction_deferrable", "off", "bool"),
    Setting(
        "default_transaction_isolation", "read committed", "enum", ("serializable", "repeatable read", "read committed", "read uncommitted")
    ),
    Setting("default_transaction_read_only", "off", "bool", reported=True),
    Setting("escape_string_warning", "on", "bool"),
    Setting("extra_float_digits", "1", "int", ("-15", "3"), about="Sets the number of digits displayed for floating-point values."),
    Setting("idle_in_transaction_session_timeout", "0", "ms", ("0", _DAY_MS), about="Sets the maximum allowed idle time in a transaction."),
    Setting("idle_session_timeout", "0", "ms", ("0", _DAY_MS)),
    Setting("in_hot_standby", "off", reported=True, fixed=True),
    Setting("integer_datetimes", "on", reported=True, fixed=True),
    Setting(
        "IntervalStyle",
        "postgres",
        "intervalstyle",
        ("postgres", "postgres_verbose", "sql_standard", "iso_8601"),
        reported=True,
        about="Sets the display format for interval values.",
    ),
    Setting("is_superuser", "on", reported=True, fixed=True),
    *(
        Setting(
            f"ksql.functions.{name}.limit", _INT_MAX, "int", ("1", _INT_MAX), about=f"Sets the number of values that {name.upper()} keeps."
        )
        for name in ("collect_list", "collect_set")
    ),
    Setting("ksql.output.topic.name.prefix", "", about="Sets what begins the names of topics of queries that KAFKA_TOPIC does not name."),
    Setting("ksql.persistence.default.format.key", "kafka", "enum", KEY_FORMATS, about="Sets the default of KEY_FORMAT."),
    Setting("ksql.persistence.default.format.value", NO_FORMAT, "enum", VALUE_FORMATS, about="Sets the default of VALUE_FORMAT."),
    Setting("ksql.persistence.wrap.single.values", "on", "bool", about="Sets the default of WRAP_SINGLE_VALUE."),
    *(Setting(name, "on", "bool", about="Enables a feature of ksqlDB.") for name in PROPERTIES),
    Setting("lc_collate", "C", fixed=True),
    Setting("lc_ctype", "C", fixed=True),
    Setting("lc_messages", "C"),
    Setting("lc_monetary", "C"),
    Setting("lc_numeric", "C"),
    Setting("lc_time", "C"),
    Setting("lock_timeout", "0", "ms", ("0", _DAY_MS)),
    Setting(
        "log_min_duration_statement",
        "-1",
        "ms",
        ("-1", _DAY_MS),
        superuser=True,
        about="Sets the minimum execution time above which all statements will be logged.",
    ),
    Setting("log_statement", "none", "enum", ("none", "ddl", "mod", "all"), superuser=True, about="Sets the type of statements logged."),
    Setting("maintenance_work_mem", "64MB", "kB", ("1024", _INT_MAX)),
    Setting("max_connections", "10000", fixed=True),
    Setting("max_identifier_length", "63", fixed=True),
    Setting("max_index_keys", "32", fixed=True),
    Setting("max_prepared_transactions", "0", fixed=True),
    Setting("quote_all_identifiers", "off", "bool"),
    Setting("restrict_nonsystem_relation_kind", ""),
    Setting("row_security", "on", "bool"),
    Setting("real_time_recency", "off", "bool", about="Makes queries wait until what Kafka holds is in."),
    Setting("real_time_recency_timeout", "10s", "ms", ("0", _DAY_MS), about="Sets how long real_time_recency may wait."),
    Setting("role", "none"),
    Setting("search_path", '"$user", public', "path", about="Sets the schema search order for names that are not schema-qualified."),
    Setting("server_encoding", "UTF8", reported=True, fixed=True),
    Setting("server_version", SERVER_VERSION, reported=True, fixed=True, about="Shows the server version."),
    Setting("server_version_num", SERVER_VERSION_NUM, fixed=True),
    Setting("session_authorization", "", reported=True),
    Setting(
        "session_replication_role",
        "origin",
        "enum",
        ("origin", "replica", "local"),
        superuser=True,
        about="Sets the session's behavior for triggers and rewrite rules.",
    ),
    Setting("ssl", "off", fixed=True),
    Setting("standard_conforming_strings", "on", "on", reported=True),
    Setting("statement_timeout", "0", "ms", ("0", _DAY_MS), about="Sets the maximum allowed duration of any statement."),
    Setting("synchronous_commit", "on"),
    Setting("synchronize_seqscans", "on", "bool"),
    Setting("tailgate.as_of", "", "time", about="Sets the time that queries read at, in ms or as a timestamp; empty is now."),
    Setting("tailgate.dialect", "auto", "enum", DIALECTS, about="Sets the dialect of statements; auto: by their words."),
    Setting("TimeZone", "UTC", "zone", reported=True, about="Sets the time zone for displaying and interpreting time stamps."),
    Setting("timezone_abbreviations", "Default"),
    Setting("transaction_deferrable", "off", "bool"),
    Setting("transaction_isolation", "read committed", "enum", ("serializable", "repeatable read", "read committed", "read uncommitted")),
    Setting("transaction_read_only", "off", "bool"),
    Setting("wal_level", "replica", fixed=True),
    Setting("work_mem", "4MB", "kB", ("64", _INT_MAX)),
    Setting("xmloption", "content"),
)
TABLE: dict[str, Setting] = {row.name.lower(): row for row in _ROWS}
ALIASES = {
    "time zone": "timezone",
    "names": "client_encoding",
    "transaction isolation level": "transaction_isolation",
    "session authorization": "session_authorization",
}


def known(name: str) -> Setting | None:
    """Returns the setting with this name, or None. Case and spaces do not matter."""
    word = " ".join(name.lower().split())
    return TABLE.get(ALIASES.get(word, word))


def find(name: str) -> Setting | None:
    """Returns the setting with this name, or None for a custom setting (with a dot). Case and spaces do not matter. Raises 42704."""
    setting = known(name)
    if setting is None and "." not in name:
        raise UndefinedObject(f'unrecognized configuration parameter "{name}"', hint=near(name.lower(), TABLE))
    return setting


def near(name: str, names: Iterable[str]) -> str | None:
    """Returns a hint with the name that is most similar to an unknown one, or None if none is similar.

    >>> near("statement_timout", TABLE)
    'Perhaps you meant "statement_timeout".'
    """
    return nearest(name, [TABLE[each].name if each in TABLE else each for each in names])
