"""Answers requests: role, endpoint, privileges, parameters, rows, response.

A request is checked in this order, so that nobody without a token learns which endpoints exist:

    method 405 ──► role 401 ──► rate 429 ──► path 404 ──► privileges 403 ──► parameters 400 ──► rows
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import re
from collections.abc import Mapping

from tailgate.gateway.http.bound_endpoints import BoundEndpoint, BoundEndpoints
from tailgate.gateway.http.callers import Rates, Tokens, role_of
from tailgate.gateway.http.messages import HttpError, Request, Response, error_response, status_of
from tailgate.gateway.http.reading import EndpointReader, Page, Range
from tailgate.gateway.http.routes import Routes, query_fields
from tailgate.gateway.resources.budgets import TASK_BUDGET
from tailgate.gateway.resources.concurrency import REQUESTER, Requester
from tailgate.gateway.security.authentication import Peer
from tailgate.gateway.serving.failures import translated
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.session.gateway import Gateway
from tailgate.lake.catalog import Catalog, Endpoint
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, NoData, QueryCanceled, TailgateError, UndefinedObject, of
from tailgate.sql.authorization import Authorized, authorize

REQUEST_S_MAX = 30.0  # evaluation of one request
PAGE_ROWS, PAGE_ROWS_MAX = 100, 1_000  # rows of a response without and with `limit`
GZIP_BYTES_MIN = 1024  # below it compression saves no packet
GZIP_LEVEL = 1
METHODS = b"GET, HEAD, OPTIONS"
ETAG_BYTES = 12
EXPOSED = b"ETag, Link, Tailgate-Time"


class HttpService:
    """The service of a gateway. `origins`: sites whose pages may read responses; `*` stands for all."""

    def __init__(self, gateway: Gateway, origins: frozenset[str] = frozenset(), rate: float | None = None) -> None:
        self._gateway, self._origins = gateway, origins
        self._endpoints = BoundEndpoints(gateway.serving)
        self._reader = EndpointReader(gateway.serving, gateway.answers.lookups)
        self._tokens = Tokens()
        self._rates = Rates() if rate is None else Rates(rate)
        self._routes: tuple[Catalog | None, Routes] = (None, Routes(()))

    async def answer(self, request: Request, peer: Peer) -> Response:
        """Returns the response to a request; every error becomes one."""
        cross_origin = self._cross_origin(request)
        try:
            response = await self._answer(request, peer)
        except HttpError as error:
            response = error_response(error.status, error.error, error.fields)
        except TailgateError as error:
            response = error_response(status_of(error), self._told(error, request))
        except Exception as error:  # noqa: BLE001  # reported as an internal error
            response = error_response(500, self._told(error, request))
        if not cross_origin:
            return response
        return Response(response.status, response.body, (*response.fields, *cross_origin), response.type)

    def _told(self, error: Exception, request: Request) -> TailgateError:
        """Returns the error for the client: of errors of rows, which may quote values, only their SQLSTATE."""
        reported = self._gateway.internal_errors.reported(translated(error), request.path)
        if reported.sqlstate.startswith(("22", "23", "P0")):
            return of(reported.sqlstate, "the query of the endpoint failed", hint="Its owner sees the error in SQL.")
        return of(reported.sqlstate, reported.message, hint=reported.hint)

    # --- one request

    async def _answer(self, request: Request, peer: Peer) -> Response:
        if request.method == "OPTIONS":
            return Response(204, fields=((b"Allow", METHODS),))
        if request.method not in ("GET", "HEAD"):
            raise HttpError(405, FeatureNotSupported(f"method {request.method} is not supported"), (b"Allow", METHODS))
        catalog = self._gateway.serving.progress.catalog
        role = role_of(request, peer, catalog, self._gateway.secret, self._tokens)
        self._rates.take(role, asyncio.get_running_loop().time())
        REQUESTER.set(Requester(role.id, role.superuser))
        TASK_BUDGET.set(self._gateway.budget_of(role.id, role.superuser))
        endpoint, path = self._route(request, catalog)
        bound = await self._endpoints.get(endpoint)
        query = authorize(bound.query.prepared, role, self._gateway.serving.progress.catalog)
        try:
            fields = query_fields(request.query)
            values = bound.values(path, fields)
            rows = _range(bound, request, fields)
        except TailgateError as error:
            raise HttpError(400, error) from error
        page = await self._page(bound, query, values, rows)
        return _response(bound, request, page, rows)

    def _route(self, request: Request, catalog: Catalog) -> tuple[Endpoint, dict[str, str]]:
        """Returns the endpoint of a path and its parameters in the path. Raises an HttpError with 400 or 404."""
        if self._routes[0] is not catalog:
            self._routes = (catalog, Routes(catalog.each(Endpoint)))
        try:
            route = self._routes[1].find(request.path)
        except TailgateError as error:
            raise HttpError(400, error) from error
        if route is None:
            raise HttpError(404, UndefinedObject("there is no endpoint with this path"))
        return route

    async def _page(self, bound: BoundEndpoint, query: Authorized[Prepared], values: list[object], rows: Range) -> Page:
        reading = self._reader.page(bound, query, values, rows)
        try:
            return await asyncio.wait_for(reading, REQUEST_S_MAX)
        except asyncio.TimeoutError:
            raise QueryCanceled("canceling the request due to its timeout") from None
        except InvalidParameterValue as error:
            if rows.at is None:
                raise
            raise HttpError(400, error) from error

    # --- other sites

    def _cross_origin(self, request: Request) -> tuple[tuple[bytes, bytes], ...]:
        """Returns the header fields that let the page of another site read the response."""
        origin = request.headers.get(b"origin")
        if origin is None or not self._origins:
            return ()
        if "*" not in self._origins and origin.decode("latin-1") not in self._origins:
            return ((b"Vary", b"Origin"),)
        fields = [(b"Access-Control-Allow-Origin", origin), (b"Vary", b"Origin"), (b"Access-Control-Expose-Headers", EXPOSED)]
        if request.method == "OPTIONS":
            allowed = b"Authorization, Tailgate-As-Of, Tailgate-Role, If-None-Match"
            fields += [(b"Access-Control-Allow-Methods", b"GET, HEAD"), (b"Access-Control-Allow-Headers", allowed)]
        return tuple(fields)


def _range(bound: BoundEndpoint, request: Request, fields: Mapping[str, str]) -> Range:
    """Returns the rows that a request asks for. Raises 22023."""
    as_of = request.headers.get(b"tailgate-as-of")
    at = None if as_of is None else _integer(as_of.decode("latin-1"), "Tailgate-As-Of", 0, 2**63 - 1)
    if bound.query.single:
        return Range(at)
    limit = _integer(fields["limit"], "limit", 1, PAGE_ROWS_MAX) if "limit" in fields else PAGE_ROWS
    if "cursor" not in fields:
        return Range(at, 0, limit)
    cursor = _decoded(fields["cursor"])
    if at is not None and at != cursor[0]:
        raise InvalidParameterValue("the cursor belongs to another time than Tailgate-As-Of")
    return Range(cursor[0], cursor[1], limit)


def _integer(text: str, name: str, least: int, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", text) or not least <= int(text) <= most:
        raise InvalidParameterValue(f'invalid value for "{name}": an integer from {least} to {most} is required')
    return int(text)


def _encoded(time: int, offset: int) -> bytes:
    """Returns the cursor behind `offset` rows at a time: later pages are read at the time of the first."""
    return base64.urlsafe_b64encode(b"%d.%d" % (time, offset)).rstrip(b"=")


def _decoded(cursor: str) -> tuple[int, int]:
    try:
        time, offset = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).split(b".")
        if not (time.isdigit() and offset.isdigit() and len(time) < 19 and len(offset) < 19):
            raise ValueError
        return int(time), int(offset)
    except ValueError:
        raise InvalidParameterValue('invalid value for "cursor"') from None


def _response(bound: BoundEndpoint, request: Request, page: Page, rows: Range) -> Response:
    """Returns the response with the rows of a page: one object, or an array."""
    time = (b"Tailgate-Time", b"%d" % page.time)
    if bound.query.single and not page.rows:
        return error_response(404, NoData("no row has this key"), (time,))
    body = page.rows[0] if bound.query.single else b"[" + b",".join(page.rows) + b"]"
    etag = b'W/"' + hashlib.blake2b(body, digest_size=ETAG_BYTES).hexdigest().encode() + b'"'
    fields = [(b"ETag", etag), time, (b"Cache-Control", b"private, no-cache"), (b"Vary", b"Accept-Encoding, Authorization")]
    if page.more:
        fields.append((b"Link", _next(request, page.time, rows)))
    if _matches(request.headers.get(b"if-none-match"), etag):
        return Response(304, fields=tuple(fields))
    if len(body) >= GZIP_BYTES_MIN and _accepts_gzip(request.headers.get(b"accept-encoding", b"")):
        body = gzip.compress(body, GZIP_LEVEL)
        fields.append((b"Content-Encoding", b"gzip"))
    return Response(200, body, tuple(fields))


def _next(request: Request, time: int, rows: Range) -> bytes:
    """Returns the Link to the next page."""
    others = [f for f in request.query.split("&") if f and not f.startswith("cursor=")]
    cursor = _encoded(time, rows.offset + rows.limit).decode()
    return f'<{request.path}?{"&".join([*others, f"cursor={cursor}"])}>; rel="next"'.encode("latin-1")


def _matches(sent: bytes | None, etag: bytes) -> bool:
    """Returns whether If-None-Match has the tag, by the weak comparison."""
    if sent is None:
        return False
    tags = [t.strip().removeprefix(b"W/") for t in sent.split(b",")]
    return b"*" in tags or etag.removeprefix(b"W/") in tags


def _accepts_gzip(sent: bytes) -> bool:
    for part in sent.lower().split(b","):
        coding, _, quality = part.replace(b" ", b"").partition(b";q=")
        if coding in (b"gzip", b"*") and quality not in (b"0", b"0.0", b"0.00", b"0.000"):
            return True
    return False
