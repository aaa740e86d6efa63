"""Templates: texts without their literals. Clients send thousands of texts that differ in their literals only.

A text is plain if the pattern finds exactly its literals, in both dialects: it has no comments, quoted names, escapes and variables.
"""

from __future__ import annotations

import re

LITERALS = re.compile(rb"'(?:[^']|'')*'|\b\d{1,18}\b")
_NOT_PLAIN = re.compile(rb"[\"`\\$]|--|/\*|\b[eEbBxXuUnN]&?'")


def template(text: bytes) -> bytes | None:
    """Returns a text with `?` in place of its literals, or None if it is not plain.

    >>> template(b"SELECT a FROM t WHERE k = 'it''s' AND n = 5"), template(b"SELECT 5 -- one")
    (b'SELECT a FROM t WHERE k = ? AND n = ?', None)
    """
    return None if _NOT_PLAIN.search(text) else LITERALS.sub(b"?", text)
