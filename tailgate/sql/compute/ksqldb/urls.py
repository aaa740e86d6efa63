"""ksqlDB's functions of URLs, which have the syntax of RFC 3986.

Source: ksqlDB 0.29, documentation, "Scalar functions", section "URLs"; RFC 3986, appendix B. A URL with an opaque part has neither
path nor query, as in java.net.URI.
"""

from __future__ import annotations

import re
from urllib.parse import quote_plus, unquote_to_bytes

from tailgate.lake.errors import InvalidParameterValue
from tailgate.sql.compute.registry import udf

PARTS = re.compile(
    r"(?:(?P<protocol>[A-Za-z][A-Za-z0-9+.-]*):(?P<opaque>[^/#][^#]*)?)?(?://(?P<authority>[^/?#]*))?"
    r"(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.ASCII,
)
AUTHORITY = re.compile(r"(?:[^@]*@)?(?P<host>\[[^\]]*\]|[^:@\[\]]*)(?::(?P<port>[0-9]{0,9}))?", re.ASCII)
INVALID = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}]|%(?![0-9A-Fa-f]{2})")
NAMES = ("protocol", "host", "port", "path", "query", "fragment")
ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def _parts(url: str) -> dict[str, str | None]:
    """Returns the parts of a URL by name. Raises 22023."""
    match = None if INVALID.search(url) else PARTS.fullmatch(url)
    if match is None or not url:
        raise InvalidParameterValue("URL input has invalid syntax")
    parts = match.groupdict()
    if parts["opaque"] is not None:  # as in mailto:a@b
        parts["path"] = None
    authority = AUTHORITY.fullmatch(parts["authority"] or "")
    return parts | (authority.groupdict() if authority else {"host": None, "port": None})


def decoded(text: str) -> str:
    """Returns a text whose + and %xx are replaced. Raises 22023."""
    if ESCAPE.search(text):
        raise InvalidParameterValue("URL input has an invalid escape sequence")
    return unquote_to_bytes(text.replace("+", " ")).decode(errors="replace").replace("\0", "�")


@udf("text", "text", to="text")
def ksqldb_url_part(url: str, part: str) -> str | None:
    """Returns the protocol, host, port, path, query or fragment of a URL; NULL if it has none. Raises 22023."""
    if part not in NAMES:
        raise InvalidParameterValue(f'a URL has no part "{part}"')
    value = _parts(url)[part]
    if value is None or (not value and part in ("host", "port")):
        return None
    return decoded(value.replace("+", "%2B")) if part in ("path", "query", "fragment") else value


@udf("text", "text", to="text")
def ksqldb_url_parameter(url: str, name: str) -> str | None:
    """Returns the value of the first parameter of a name in a URL's query; an empty text if it has no value."""
    for parameter in (_parts(url)["query"] or "").split("&"):
        key, _, value = parameter.partition("=")
        if key and decoded(key.replace("+", "%2B")) == name:
            return decoded(value.replace("+", "%2B"))
    return None


@udf("text", to="text")
def ksqldb_url_decode(text: str) -> str:
    return decoded(text)


@udf("text", to="text")
def ksqldb_url_encode(text: str) -> str:
    return quote_plus(text, safe="*-._").replace("~", "%7E")
