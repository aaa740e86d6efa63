"""The current activity of one session, and the text of its query without secrets."""

from __future__ import annotations

import time

from tailgate.gateway.session.statements.statistics import Lane
from tailgate.sql.lexer.tokens import Token, tokens

QUERY_BYTES_MAX = 1024  # PostgreSQL's track_activity_query_size
PASSWORD, SECRET = "password", "secret"  # the value after these words is never shown; names of options may end in the first
LITERALS = ("string", "bits", "integer", "decimal", "error")  # kinds of tokens that are values
NO_VALUES = ("=", "null", SECRET, ";", ")", ",")  # tokens that are not a value, in the place of one
STARS = "'********'"


class Activity:
    """The current activity of one session. Times are in seconds since the epoch.

    `asked` is called at the start of each statement and `ended` after it. `lane` is its kind, and `clock` its start by the monotonic clock.
    """

    __slots__ = ("asked_at", "began", "block_at", "changed_at", "clock", "lane", "query", "running")

    def __init__(self) -> None:
        self.began = self.asked_at = self.changed_at = time.time()
        self.block_at: float | None = None
        self.query: bytes = b""
        self.running = False
        self.clock = time.monotonic()
        self.lane: Lane = "unknown"

    def asked(self, query: bytes) -> None:
        """Records the start of a statement."""
        self.query, self.running = query[:QUERY_BYTES_MAX], True
        self.asked_at = self.changed_at = time.time()
        self.clock, self.lane = time.monotonic(), "unknown"

    def polled(self, query: bytes) -> None:
        """Records a statement that was answered immediately."""
        self.query = query[:QUERY_BYTES_MAX]
        self.asked_at = self.changed_at = time.time()

    def ended(self, in_block: bool) -> None:
        """Records the end of a statement."""
        self.running = False
        self.changed_at = time.time()
        if not in_block:
            self.block_at = None
        elif self.block_at is None:
            self.block_at = self.asked_at


def shown(query: str) -> str:
    """Masks secrets in the text of a query.

    If the text contains the words password or secret, stars replace all its literals, and any token in the place of a literal after
    these words. Text that cannot be tokenized, up to its end, is replaced by stars, too.

    >>> shown("ALTER ROLE ann PASSWORD/**/'x'"), shown("CREATE SECRET s AS/**/'x'"), shown("SELECT 'x'")
    ("ALTER ROLE ann PASSWORD/**/'********'", "CREATE SECRET s AS/**/'********'", "SELECT 'x'")
    """
    row = tokens(query)
    if not any(map(_is_sensitive, row)):
        return query
    out, at, in_secret, value_next = "", 0, False, False
    for token in row:
        in_secret = in_secret or token.value == SECRET
        hidden = token.kind in LITERALS or (value_next and token.kind != "end" and token.value not in NO_VALUES)
        out += query[at : token.position] + (STARS if hidden else token.text)
        at = token.end
        value_next = token.value.endswith(PASSWORD) or (in_secret and token.value == "as") or (value_next and token.value == "=")
    return out


def _is_sensitive(token: Token) -> bool:
    return any(word in (token.text if token.kind == "error" else token.value).lower() for word in (PASSWORD, SECRET))
