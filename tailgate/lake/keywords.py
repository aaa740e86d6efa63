"""PostgreSQL's key words that may not be any name, by where each may be used, and names and texts in quotes.

Source: PostgreSQL 15, `pg_get_keywords()`.
"""

import re

# never a name, except as a label after AS
RESERVED = frozenset(
    """
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create current_catalog
    current_date current_role current_time current_timestamp current_user default deferrable desc distinct do else end except
    false fetch for foreign from grant group having in initially intersect into lateral leading limit localtime localtimestamp
    not null offset on only or order placing primary references returning select session_user some symmetric table then to
    trailing true union unique user using variadic when where window with
    """.split()
)

# names of types and functions, never of columns and relations
TYPE_OR_FUNCTION = frozenset(
    """
    authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull join left like natural
    notnull outer overlaps right similar tablesample verbose
    """.split()
)

# names of columns and relations; as a type or function they have special grammar
COLUMN = frozenset(
    """
    between bigint bit boolean char character coalesce dec decimal exists extract float greatest grouping inout int integer
    interval least national nchar none normalize nullif numeric out overlay position precision real row setof smallint substring
    time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi
    xmlroot xmlserialize xmltable
    """.split()
)

# a label of an output column only after AS
LABEL_NEEDS_AS = frozenset(
    """
    array as char character create day except fetch filter for from grant group having hour intersect into isnull limit minute
    month notnull offset on order over overlaps precision returning second to union varying where window with within without
    year
    """.split()
)

NOT_A_COLUMN = RESERVED | TYPE_OR_FUNCTION
NOT_A_FUNCTION = RESERVED | COLUMN

PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
QUOTED = RESERVED | COLUMN | TYPE_OR_FUNCTION  # must be quoted as a name


def quoted(name: str) -> str:
    """Returns a name as a statement writes it, in quotes if needed.

    >>> quoted("kv"), quoted("Kv"), quoted("select")
    ('kv', '"Kv"', '"select"')
    """
    safe = PLAIN.fullmatch(name) and name not in QUOTED
    return name if safe else '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """Returns a text as a literal of SQL.

    >>> quoted_text("o'clock")
    "'o''clock'"
    """
    return "'" + text.replace("'", "''") + "'"
