"""jsonb: operators and functions over its canonical text, by functions of ours with one meaning in both engines."""

from __future__ import annotations

from sql.functions.entry import Function

J = "jsonb"


def _row(name: str, arguments: tuple[str, ...], result: str, call: str, kind: str = "operator") -> Function:
    template = f"{call}({', '.join(f'{{{n}}}' for n in range(len(arguments)))})"
    return Function(name, arguments, result, template, template, kind)  # type: ignore[arg-type]


# a scalar is stored as an array of one element, and -> with a number reads it as one
LISTED = "CASE WHEN tg_jsonb_typeof({0}) IN ('object', 'array') THEN {0} ELSE concat('[', {0}, ']') END"

ROWS = (
    Function("->", (J, "text"), J, "tg_jsonb_get({0}, {1})", "tg_jsonb_get({0}, {1})", "operator"),
    Function("->", (J, "int4"), J, f"tg_jsonb_get({LISTED}, {{1}})", "tg_jsonb_element({0}, {1})", "operator"),
    Function("->>", (J, "text"), "text", "tg_jsonb_get_text({0}, {1})", "tg_jsonb_get_text({0}, {1})", "operator"),
    Function("->>", (J, "int4"), "text", f"tg_jsonb_get_text({LISTED}, {{1}})", "tg_jsonb_element_text({0}, {1})", "operator"),
    _row("#>", (J, "text[]"), J, "tg_jsonb_path"),
    _row("#>>", (J, "text[]"), "text", "tg_jsonb_path_text"),
    _row("@>", (J, J), "bool", "tg_jsonb_contains"),
    Function("<@", (J, J), "bool", "tg_jsonb_contains({1}, {0})", "tg_jsonb_contains({1}, {0})", "operator"),
    _row("?", (J, "text"), "bool", "tg_jsonb_exists"),
    _row("jsonb_typeof", (J,), "text", "tg_jsonb_typeof", "function"),
    _row("jsonb_array_length", (J,), "int4", "tg_jsonb_array_length", "function"),
    # chosen by PostgreSQL, refused here
    Function("||", (J, J), J, kind="operator"),
    Function("-", (J, "text"), J, kind="operator"),
    Function("-", (J, "int4"), J, kind="operator"),
    Function("-", (J, "text[]"), J, kind="operator"),
    Function("#-", (J, "text[]"), J, kind="operator"),
    Function("?|", (J, "text[]"), "bool", kind="operator"),
    Function("?&", (J, "text[]"), "bool", kind="operator"),
)
