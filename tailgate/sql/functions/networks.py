"""Operators and functions of inet, cidr, macaddr and macaddr8. A cidr is an inet where no row has its type."""

from __future__ import annotations

from tailgate.sql.functions.entry import Function, udf

I, C, M, M8, T, N, L, B = "inet", "cidr", "macaddr", "macaddr8", "text", "int4", "int8", "bool"
CONTAINMENT = (("<<", "sub"), ("<<=", "subeq"), (">>", "sup"), (">>=", "supeq"), ("&&", "overlap"))

ROWS = (
    *(udf(sign, (I, I), B, f"network_{name}", "operator") for sign, name in CONTAINMENT),
    udf("~", (I,), I, "inet_not", "prefix"),
    udf("&", (I, I), I, "inet_and", "operator"),
    udf("|", (I, I), I, "inet_or", "operator"),
    udf("+", (I, L), I, "inet_plus", "operator"),
    udf("+", (L, I), I, "inet_plus", "operator", order=(1, 0)),
    udf("-", (I, L), I, "inet_minus", "operator"),
    udf("-", (I, I), L, "inet_difference", "operator"),
    udf("abbrev", (I,), T, "inet_output"),
    udf("abbrev", (C,), T, "abbrev_cidr"),
    udf("broadcast", (I,), I),
    udf("family", (I,), N, "inet_family"),
    udf("host", (I,), T),
    udf("hostmask", (I,), I),
    udf("inet_merge", (I, I), C),
    Function("inet_same_family", (I, I), B, *("(tg_inet_family({0}) = tg_inet_family({1}))",) * 2),
    udf("masklen", (I,), N),
    udf("netmask", (I,), I),
    udf("network", (I,), C),
    udf("set_masklen", (I, N), I),
    udf("set_masklen", (C, N), C, "set_masklen_cidr"),
    udf("text", (I,), T, "inet_to_text"),
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
