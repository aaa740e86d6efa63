"""Operators and functions of inet, cidr, macaddr and macaddr8. A cidr is an inet where no row has its type."""

from __future__ import annotations

from tailgate.sql.functions.entry import Function, udf

A, C, M, M8, T, N, L, B = "inet", "cidr", "macaddr", "macaddr8", "text", "int4", "int8", "bool"
CONTAINMENT = (("<<", "sub"), ("<<=", "subeq"), (">>", "sup"), (">>=", "supeq"), ("&&", "overlap"))

ROWS = (
    *(udf(sign, (A, A), B, f"network_{name}", "operator") for sign, name in CONTAINMENT),
    udf("~", (A,), A, "inet_not", "prefix"),
    udf("&", (A, A), A, "inet_and", "operator"),
    udf("|", (A, A), A, "inet_or", "operator"),
    udf("+", (A, L), A, "inet_plus", "operator"),
    udf("+", (L, A), A, "inet_plus", "operator", order=(1, 0)),
    udf("-", (A, L), A, "inet_minus", "operator"),
    udf("-", (A, A), L, "inet_difference", "operator"),
    udf("abbrev", (A,), T, "inet_output"),
    udf("abbrev", (C,), T, "abbrev_cidr"),
    udf("broadcast", (A,), A),
    udf("family", (A,), N, "inet_family"),
    udf("host", (A,), T),
    udf("hostmask", (A,), A),
    udf("inet_merge", (A, A), C),
    Function("inet_same_family", (A, A), B, *("(tg_inet_family({0}) = tg_inet_family({1}))",) * 2),
    udf("masklen", (A,), N),
    udf("netmask", (A,), A),
    udf("network", (A,), C),
    udf("set_masklen", (A, N), A),
    udf("set_masklen", (C, N), C, "set_masklen_cidr"),
    udf("text", (A,), T, "inet_to_text"),
    *(
        row
        for t in (M, M8)
        for row in (
            udf("~", (t,), t, "macaddr_not", "prefix"),
            udf("&", (t, t), t, "macaddr_and", "operator"),
            udf("|", (t, t), t, "macaddr_or", "operator"),
            udf("trunc", (t,), t, "macaddr_trunc"),
        )
    ),
    udf("macaddr8_set7bit", (M8,), M8),
)
