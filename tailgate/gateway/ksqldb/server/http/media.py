"""Media types of requests and responses."""

from __future__ import annotations

from functools import lru_cache

from tailgate.gateway.ksqldb.server.http import errors
from tailgate.gateway.ksqldb.server.http.errors import ApiError

JSON, KSQL, DELIMITED = "application/json", "application/vnd.ksql.v1+json", "application/vnd.ksqlapi.delimited.v1"
PROTOBUF = "application/vnd.ksql.v1+protobuf"
ENTITIES = (JSON, KSQL)  # of endpoints other than queries; the first is the default
QUERY = (KSQL, JSON, DELIMITED, PROTOBUF)
STREAM = (DELIMITED, JSON, KSQL, PROTOBUF)
ACKS = (DELIMITED, JSON)
HEADERS_CACHED = 100
# curl sends the second unless told otherwise; bodies are JSON whatever the type
REQUESTS = (JSON, "application/x-www-form-urlencoded", KSQL, DELIMITED, "")


@lru_cache(HEADERS_CACHED)
def accepted(header: str | None, offered: tuple[str, ...]) -> str:
    """Returns the type of the response: the offered one that the Accept header prefers. Raises 406.

    >>> accepted("text/html, application/json;q=0.9", ENTITIES), accepted(None, STREAM), accepted("*/*", QUERY)
    ('application/json', 'application/vnd.ksqlapi.delimited.v1', 'application/vnd.ksql.v1+json')
    """
    if not header or not header.strip():
        return offered[0]
    ranges = sorted((_weighed(part) for part in header.split(",") if part.strip()), key=lambda pair: -pair[1])
    for range, weight in ranges:
        for type in offered:
            if weight > 0 and (range in (type, "*/*") or (range.endswith("/*") and type.startswith(range[:-1]))):
                return type
    raise ApiError(errors.NOT_ACCEPTABLE, f"Not Acceptable. Supported media types: {', '.join(offered)}")


def _weighed(part: str) -> tuple[str, float]:
    """Returns a media range of Accept with its weight."""
    range, *parameters = (p.strip().lower() for p in part.split(";"))
    weight = next((p[2:] for p in parameters if p.startswith("q=")), "1")
    try:
        return range, float(weight)
    except ValueError:
        return range, 0.0


def check_request(header: str | None) -> None:
    """Raises 415 for the media type of a request's body that is not JSON."""
    type = (header or "").partition(";")[0].strip().lower()
    if type not in REQUESTS:
        raise ApiError(errors.UNSUPPORTED_MEDIA, f"Unsupported Media Type: {type}")
