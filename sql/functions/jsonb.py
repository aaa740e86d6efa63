"""jsonb: operators and functions over its canonical text, by functions of ours with one meaning in both engines."""

from __future__ import annotations

from sql.functions.casts import PRINTED
from sql.functions.comparison import SIGNS
from sql.functions.entry import Function, own, strict

COMPARED = "tg_jsonb_order({0})"  # bytes in the order of jsonb

J, T, N, P = "jsonb", "text", "int4", "text[]"


def _both(name: str, arguments: tuple[str, ...], result: str, template: str, kind: str = "function") -> Function:
    return Function(name, arguments, result, template, template, kind)  # type: ignore[arg-type]


def _comparisons() -> list[Function]:
    """By value, not by text: 1.0 = 1."""
    first, second = (COMPARED.replace("{0}", f"{{{i}}}") for i in (0, 1))
    return [_both(sign, (J, J), "bool", f"({first} {sign} {second})", "operator") for sign in SIGNS]


def _made() -> list[Function]:
    """to_jsonb of each type: numbers and truth values as they are printed, all else as a string."""
    rows = [_both("to_jsonb", (J,), J, "{0}")]
    for t in ("int2", "int4", "int8", "numeric", "bool"):
        rows.append(Function("to_jsonb", (t,), J, *PRINTED[t]))
    for t in ("text", "varchar", "name", "uuid"):
        rows.append(_both("to_jsonb", (t,), J, "tg_jsonb_of_text({0})"))
    for t in ("time", "interval", "bytea"):
        spark, duckdb = PRINTED[t]
        rows.append(Function("to_jsonb", (t,), J, f"tg_jsonb_of_text({spark})", f"tg_jsonb_of_text({duckdb})"))
    for t in ("float4", "float8", "timestamp", "timestamptz", "date"):
        rows.append(own("to_jsonb", (t,), J, f"jsonb_of_{t}", note="at UTC" if t == "timestamptz" else ""))
    return rows


ROWS = (
    own("->", (J, T), J, "jsonb_get", "operator"),
    own("->", (J, N), J, "jsonb_element", "operator"),
    own("->>", (J, T), T, "jsonb_get_text", "operator"),
    own("->>", (J, N), T, "jsonb_element_text", "operator"),
    own("#>", (J, P), J, "jsonb_path", "operator"),
    own("#>>", (J, P), T, "jsonb_path_text", "operator"),
    own("@>", (J, J), "bool", "jsonb_contains", "operator"),
    own("<@", (J, J), "bool", "jsonb_contains", "operator", order=(1, 0)),
    own("?", (J, T), "bool", "jsonb_exists", "operator"),
    own("?|", (J, P), "bool", "jsonb_exists_any", "operator"),
    own("?&", (J, P), "bool", "jsonb_exists_all", "operator"),
    own("||", (J, J), J, "jsonb_concat", "operator"),
    Function("-", (J, T), J, strict("tg_jsonb_delete({0}, array({1}))", 2), strict("tg_jsonb_delete({0}, [{1}])", 2), "operator"),
    own("-", (J, N), J, "jsonb_delete_at", "operator"),
    own("-", (J, P), J, "jsonb_delete", "operator"),
    own("#-", (J, P), J, "jsonb_delete_path", "operator"),
    *_comparisons(),
    own("jsonb_typeof", (J,), T),
    own("jsonb_array_length", (J,), N),
    Function("jsonb_extract_path", (J, T), J, "tg_jsonb_path({0}, array({+}))", "tg_jsonb_path({0}, [{+}])", variadic=True),
    Function("jsonb_extract_path_text", (J, T), T, "tg_jsonb_path_text({0}, array({+}))", "tg_jsonb_path_text({0}, [{+}])", variadic=True),
    own("jsonb_set", (J, P, J), J, order=(0, 1, 2, "true")),
    own("jsonb_set", (J, P, J, "bool"), J),
    own("jsonb_insert", (J, P, J), J, order=(0, 1, 2, "false")),
    own("jsonb_insert", (J, P, J, "bool"), J),
    own("jsonb_strip_nulls", (J,), J),
    own("jsonb_pretty", (J,), T),
    own("jsonb_object", (P,), J, "jsonb_from_pairs"),
    own("jsonb_object", (P, P), J, "jsonb_object_of"),
    *_made(),
    # arguments are made jsonb and text by the binder, two lists of them for an object
    own("jsonb_build_array", ("jsonb[]",), J),
    own("jsonb_build_object", ("text[]", "jsonb[]"), J),
)
