"""The files of the page, and the header fields that limit its rights.

The content security policy allows scripts and styles from this server only, none within a page, and requests to this server only. A value
of a row that was shown as markup by mistake could run no script.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
FIELDS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page."""

    type: str
    data: bytes
    etag: str


@cache
def files() -> dict[str, File]:
    """Returns the files by name."""
    by_name = {}
    for path in resources.files(__package__).joinpath("static").iterdir():
        data = path.read_bytes()
        etag = f'"{hashlib.blake2b(data, digest_size=12).hexdigest()}"'
        by_name[path.name] = File(TYPES[path.name.rpartition(".")[2]], data, etag)
    return by_name


def response(request: Request, name: str) -> Response | None:
    """Returns the response with a file, or None if there is no such file."""
    file = files().get(name)
    if file is None:
        return None
    fields = {**FIELDS, "ETag": file.etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=fields)
    return Response(file.data, headers=fields, media_type=file.type)
