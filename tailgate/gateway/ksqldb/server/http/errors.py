"""Errors of the HTTP API: a status, an error code of ksqlDB and a message.

    400 40000 malformed request    40001 invalid statement     40002 a query where statements are expected
    401 40100   403 40300   404 40400   405 40500   406 40600   413 41300   415 41500   429 42900
    500 50000   503 50300 the gateway is not reachable    50301 an entry of the log has not been reached

Source: ksqlDB 0.29, documentation, "ksqlDB REST API", "Errors".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from tailgate.gateway.asgi.refusals import Refused
from tailgate.lake.errors import TailgateError

Document = dict[str, Any]
BAD_REQUEST, BAD_STATEMENT, QUERY_ENDPOINT = 40000, 40001, 40002
UNAUTHORIZED, FORBIDDEN, NOT_FOUND, METHOD_NOT_ALLOWED, NOT_ACCEPTABLE = 40100, 40300, 40400, 40500, 40600
TOO_LARGE, UNSUPPORTED_MEDIA, TOO_MANY = 41300, 41500, 42900
SERVER_ERROR, UNAVAILABLE, NOT_REACHED = 50000, 50300, 50301

# SQLSTATE or its class → error code; all others are BAD_STATEMENT
OF_SQLSTATE = {
    "42501": FORBIDDEN,
    "28": UNAUTHORIZED,
    "08": UNAVAILABLE,
    "53": TOO_MANY,
    "57": SERVER_ERROR,
    "58": SERVER_ERROR,
    "XX": SERVER_ERROR,
}
# SQLSTATE → the place before the message: of syntax errors, and of columns that are unknown or ambiguous
PLACES = {"42601": "line {}:{}", "42703": "Line: {}, Col: {}", "42702": "Line: {}, Col: {}"}


class ApiError(Exception):
    """An error of a request. `code / 100` is the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message

    @property
    def status(self) -> int:
        return self.code // 100

    @property
    def document(self) -> Document:
        return {"@type": "generic_error", "error_code": self.code, "message": self.message}


class StatementError(ApiError):
    """An error of one statement. `entities`: those of the statements before it."""

    def __init__(self, error: ApiError, text: str, entities: Sequence[Document] = ()) -> None:
        super().__init__(error.code, error.message)
        self.text, self.entities = text, list(entities)

    @property
    def document(self) -> Document:
        return {**super().document, "@type": "statement_error", "statementText": self.text, "entities": self.entities}


def of_refusal(refused: Refused) -> ApiError:
    """Returns the error of a refused request."""
    return ApiError(refused.status * 100, refused.message)


def of_sql(error: psycopg.Error | TailgateError, text: str = "") -> ApiError:
    """Returns an error of a statement of the gateway. `text`: the statement, for the position of an error."""
    if isinstance(error, TailgateError):
        sqlstate, message, hint, detail = error.sqlstate, error.message, error.hint, error.detail
        offset = error.position
    else:
        sqlstate = error.sqlstate or ("08006" if isinstance(error, psycopg.OperationalError) else "XX000")
        message, hint, detail = error.diag.message_primary or str(error).strip(), error.diag.message_hint, error.diag.message_detail
        offset = int(error.diag.statement_position) - 1 if error.diag.statement_position else None
    code = OF_SQLSTATE.get(sqlstate) or OF_SQLSTATE.get(sqlstate[:2], BAD_STATEMENT)
    if sqlstate in PLACES and offset is not None and (offset or sqlstate == "42601") and offset <= len(text):
        line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
        message = f"{PLACES[sqlstate].format(line, column)}: {message}"
    return ApiError(code, "\n".join(part for part in (message, detail, hint) if part))
