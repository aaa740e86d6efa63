"""Functions and operators of regular expressions.

In a view the pattern and its flags must be literals, because sql.compute.regexp translates the pattern
once, when the view is created. In the templates `{search1}` and `{test1}` are the translation of
argument 1 for a search and a test, `{global1}` is 0 with the flag g and 1 without, and `{like1}` is a test in DuckDB.
"""

from __future__ import annotations

from dataclasses import replace

from tailgate.sql.functions.entry import Function, Kind

T, N = "text", "int4"


def _row(
    name: str, arguments: tuple[str, ...], result: str, spark: str, duckdb: str, kind: Kind = "function", *, flagged: bool = False
) -> Function:
    return Function(name, arguments, result, spark, duckdb, kind, flagged=flagged)


def _operators() -> list[Function]:
    rows = []
    for sign in ("~", "~*", "!~", "!~*"):
        negation = "NOT " if "!" in sign else ""
        spark = f"({negation}tg_re_like({{0}}, {{test1}}))"
        rows += [_row(sign, (left, T), "bool", spark, f"({negation}{{like1}})", "operator") for left in (T, "bpchar")]
    return rows


def _flagged(name: str, arguments: tuple[str, ...], result: str, spark: str, duckdb: str) -> list[Function]:
    """Returns an entry without flags, and one with flags as the last argument."""
    last = f"{{{len(arguments)}}}"
    return [
        _row(name, arguments, result, spark, duckdb.replace("{flags}", "''")),
        _row(name, (*arguments, T), result, spark, duckdb.replace("{flags}", last), flagged=True),
    ]


def _with_optional_arguments(name: str) -> list[Function]:
    """Returns an entry for each number of optional arguments, such as start, n, flags and group."""
    result = T if name == "regexp_substr" else N
    names = {"regexp_count": ("start", "flags"), "regexp_substr": ("start", "n", "flags", "group"),
             "regexp_instr": ("start", "n", "end", "flags", "group")}[name]  # fmt: skip
    defaults = {"start": "1", "n": "1", "end": "0", "flags": "''", "group": "0"}
    rows = []
    for count in range(len(names) + 1):
        values = {n: f"{{{2 + i}}}" if i < count else defaults[n] for i, n in enumerate(names)}
        duckdb = f"tg_{name}({{0}}, {{1}}, {', '.join(values.values())})"
        spark = f"tg_re_{name[7:]}({{0}}, {{search1}}, {', '.join(v for n, v in values.items() if n != 'flags')})"
        types = tuple(T if n == "flags" else N for n in names[:count])
        flagged = count > 0 and names[count - 1] == "flags"
        if "flags" in names[:count] and not flagged:
            spark = ""  # views need the flags as the last argument
        rows.append(_row(name, (T, T, *types), result, spark, duckdb, flagged=flagged))
    return rows


ROWS = (
    *_operators(),
    *_flagged("regexp_like", (T, T), "bool", "tg_re_like({0}, {test1})", "{like1}"),
    *_flagged("regexp_match", (T, T), "text[]", "tg_re_match({0}, {search1})", "tg_regexp_match({0}, {1}, {flags})"),
    *_flagged("regexp_split_to_array", (T, T), "text[]", "tg_re_split({0}, {search1})", "tg_regexp_split_to_array({0}, {1}, {flags})"),
    *_flagged("regexp_replace", (T, T, T), T, "tg_re_replace({0}, {search1}, {2}, 1, {global1})",
              "tg_regexp_replace({0}, {1}, {2}, {flags})"),
    _row("regexp_replace", (T, T, T, N), T,
         "tg_re_replace({0}, {search1}, {2}, {3}, 1)", "tg_regexp_replace_nth({0}, {1}, {2}, {3}, 1, '')"),
    _row("regexp_replace", (T, T, T, N, N), T,
         "tg_re_replace({0}, {search1}, {2}, {3}, {4})",
         "tg_regexp_replace_nth({0}, {1}, {2}, {3}, {4}, '')"),
    _row("regexp_replace", (T, T, T, N, N, T), T,
         "tg_re_replace({0}, {search1}, {2}, {3}, {4})",
         "tg_regexp_replace_nth({0}, {1}, {2}, {3}, {4}, {5})", flagged=True),
    *(row for name in ("regexp_count", "regexp_substr", "regexp_instr") for row in _with_optional_arguments(name)),
    *(replace(row, name="regexp_split_to_table", result=T, kind="set") for row in _flagged("regexp_split_to_array", (T, T), "text[]",
        "tg_re_split({0}, {search1})", "tg_regexp_split_to_array({0}, {1}, {flags})")),
    *(replace(row, kind="set") for row in _flagged("regexp_matches", (T, T), "text[]",
        "tg_re_matches({0}, {search1}, {global1})", "tg_regexp_matches({0}, {1}, {flags})")),
    _row("substring", (T, T), T, "tg_re_part({0}, {search1})", "tg_regexp_part({0}, {1})"),
    _row("substring", (T, T, T), T, "", "tg_substring_similar({0}, {1}, {2})"),
)  # fmt: skip
