"""Masks secrets in the text of a query that other roles or operators see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from tailgate.sql.lexer.tokens import Token, tokens

PASSWORD, SECRET = "password", "secret"  # the value after these words is never shown; names of options may end in the first
CONNECTOR = "connector"  # the properties of a connector of Kafka Connect may contain passwords under any name
LITERALS = ("string", "bits", "integer", "decimal", "error")  # kinds of tokens that are values
NO_VALUES = ("=", "null", SECRET, ";", ")", ",")  # tokens that are not a value, in the place of one
STARS = "'********'"
# A token that this does not find has none of the three words: they are in the text, or are made of escapes or of several parts of a string.
MAY_BE_SENSITIVE = re.compile(rf"{PASSWORD}|{SECRET}|{CONNECTOR}|\\|u&|--|'\s+'", re.IGNORECASE)


def mask_secrets(query: str) -> str:
    """Masks secrets in the text of a query.

    If the text contains the words password or secret, or creates a connector, stars replace all its literals, and any token in the place
    of a literal after these words. Text that cannot be tokenized, up to its end, is replaced by stars, too.

    >>> mask_secrets("ALTER ROLE ann PASSWORD/**/'x'"), mask_secrets("CREATE SECRET s AS/**/'x'"), mask_secrets("SELECT 'x'")
    ("ALTER ROLE ann PASSWORD/**/'********'", "CREATE SECRET s AS/**/'********'", "SELECT 'x'")
    """
    if not MAY_BE_SENSITIVE.search(query):
        return query
    row = tokens(query)
    if not any(map(_is_sensitive, row)) and not _creates_connector(row):
        return query
    out, at, in_secret, value_next = "", 0, False, False
    for token in row:
        in_secret = in_secret or token.value == SECRET
        hidden = token.kind in LITERALS or (value_next and token.kind != "end" and token.value not in NO_VALUES)
        out += query[at : token.position] + (STARS if hidden else token.text)
        at = token.end
        value_next = token.value.endswith(PASSWORD) or (in_secret and token.value == "as") or (value_next and token.value == "=")
    return out


def _creates_connector(row: Sequence[Token]) -> bool:
    """Returns whether a query contains the words SOURCE CONNECTOR or SINK CONNECTOR."""
    return any(a.value in ("source", "sink") and b.value == CONNECTOR for a, b in pairwise(row))


def _is_sensitive(token: Token) -> bool:
    return any(word in (token.text if token.kind == "error" else token.value).lower() for word in (PASSWORD, SECRET))
