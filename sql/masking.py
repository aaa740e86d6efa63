"""The template of a statement: its text without the literals, which may hold values that nobody else may see."""

from __future__ import annotations

from sql.tokens import tokens

LITERALS = frozenset({"string", "bits", "integer", "decimal"})
MASK = "?"
REST = "…"


def masked(text: str) -> str:
    """The text of a statement with `?` in place of each literal. Comments and line breaks become a blank.

    What follows a token that cannot be read is left out: it may be the inside of a literal.

    >>> masked("SELECT E'a\\\\'x', $$y$$ /* secret */, 1.5 FROM t WHERE a=$1")
    'SELECT ?, ? , ? FROM t WHERE a=$1'
    >>> masked("ALTER ROLE r PASSWORD/**/'x")
    'ALTER ROLE r PASSWORD …'
    """
    parts: list[str] = []
    end = 0
    for token in tokens(text):
        if token.kind == "end":
            break
        if token.position > end and parts:
            parts.append(" ")
        if token.kind == "error":
            parts.append(REST)
            break
        parts.append(MASK if token.kind in LITERALS else token.text)
        end = token.end
    return "".join(parts)
