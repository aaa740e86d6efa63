"""Texts that consist of one pull query, by their templates: clients send thousands that differ in their literals only.

text ──► without variables and comments ──► template: the text without its literals ──► parsed before: sent as it is
The gateway parses each text, so a literal that is not valid is an error there.
"""

from __future__ import annotations

from tailgate.gateway.ksqldb.server.http.requests import StatementRequest
from tailgate.sql.lexer.literal_templates import template

TEMPLATES_MAX = 1_000
TEXT_MAX = 1_000  # characters of a text that is matched

_ENDS = " \t\r\n;"


class PullTexts:
    """The templates of a server."""

    def __init__(self) -> None:
        self._templates: set[bytes | None] = set()

    def find(self, request: StatementRequest) -> str | None:
        """Returns the text of a pull query, with a semicolon, if one with its template was added; otherwise None."""
        if request.variables or len(request.text) > TEXT_MAX:
            return None
        text = _ended(request.text)
        return text if template(text.encode()) in self._templates else None

    def add(self, request: StatementRequest, text: str) -> None:
        """Adds the template of a request whose text is the pull query `text`."""
        key = template(text.encode())
        if key is None or request.variables or len(text) > TEXT_MAX or _ended(request.text) != text:
            return
        if len(self._templates) >= TEMPLATES_MAX:
            self._templates.clear()
        self._templates.add(key)


def _ended(text: str) -> str:
    """Returns a text that ends with one semicolon.

    >>> _ended("SELECT 1 ;; ")
    'SELECT 1;'
    """
    return text.strip(_ENDS) + ";"
