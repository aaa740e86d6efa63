"""Removes the literals from a statement's text, because they may be confidential."""

from __future__ import annotations

from tailgate.sql.lexer.tokens import tokens

LITERALS = frozenset({"string", "bits", "integer", "decimal"})
MASK = "?"
REST = "…"


def mask_literals(text: str) -> str:
    """Returns the text with `?` for each literal. Comments and line breaks become a blank.

    The text after a lexical error is left out, because it may be part of a literal.

    >>> mask_literals("SELECT E'a\\\\'x', $$y$$ /* secret */, 1.5 FROM t WHERE a=$1")
    'SELECT ?, ? , ? FROM t WHERE a=$1'
    >>> mask_literals("ALTER ROLE r PASSWORD/**/'x")
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
