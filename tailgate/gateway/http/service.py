"""Answers requests: role, endpoint, privileges, parameters, rows, response.

A request is checked in this order, so that nobody without a token learns which endpoints exist:

    method 405 ──► role 401 ──► rate 429 ──► path 404, 405 ──► privileges 403 ──► parameters 400 ──► rows
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import replace

from tailgate.gateway.http import openapi, parameters
from tailgate.gateway.http.bound_endpoints import PAGING, BoundEndpoint, BoundEndpoints, BoundWrite, Call, form_of
from tailgate.gateway.http.callers import REQUESTS_PER_S, Rates, Tokens, check_site, now_ms, role_of
from tailgate.gateway.http.events import EVENTS, HEARTBEAT_S, end, object_events, of_query, target_of, wants_events
from tailgate.gateway.http.idempotency import key_of
from tailgate.gateway.http.messages import JSON, HttpError, Request, Response, error_response, status_of
from tailgate.gateway.http.reading import EndpointReader, Page, Range, cursor_at, integer, range_of
from tailgate.gateway.http.requests import Handled, RequestStatistics
from tailgate.gateway.http.routes import Routes, query_fields
from tailgate.gateway.http.writing import EndpointWriter
from tailgate.gateway.resources.budgets import TASK_BUDGET
from tailgate.gateway.resources.concurrency import REQUESTER, Quota, Requester
from tailgate.gateway.security.authentication import Peer
from tailgate.gateway.serving.failures import translated
from tailgate.gateway.serving.prepared import Prepared
from tailgate.gateway.serving.row_changes import RowChanges
from tailgate.gateway.session.gateway import Gateway
from tailgate.gateway.writes.plans import InsertPlan
from tailgate.lake.catalog import Catalog, Endpoint
from tailgate.lake.catalog.roles import Role
from tailgate.lake.errors import (
    FeatureNotSupported,
    Gone,
    InvalidParameterValue,
    NoData,
    ObjectNotInPrerequisiteState,
    QueryCanceled,
    TailgateError,
    UndefinedObject,
    of,
)
from tailgate.operations.settings.process import ProcessSettings
from tailgate.sql.authorization import Authorized, authorize

REQUEST_S_MAX = 30.0  # evaluation of one request
# streams of events: in total, those of them for superusers alone, and of a role without `--http-streams`
STREAMS_MAX, STREAMS_RESERVE, STREAMS_EACH = 5_000, 100, 1_000
LONG_BODY_BYTES = 16 << 10  # the values of longer ones are read in another process; an array of this size takes 5 ms
GZIP_BYTES_MIN = 1024  # below it compression saves no packet
GZIP_LEVEL = 1
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
ETAG_BYTES = 12
VARY = b"Accept, Accept-Encoding, Authorization"
EXPOSED = b"ETag, Idempotency-Replayed, Link, Tailgate-Time"
ALLOWED = b"Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Tailgate-As-Of, Tailgate-Role, If-None-Match"


class HttpService:
    """The service of a gateway. `origins`: sites whose pages may read responses; `*` stands for all."""

    def __init__(
        self,
        gateway: Gateway,
        origins: frozenset[str] = frozenset(),
        rate: float | None = None,
        streams: int | None = None,
        *,
        logs: bool = False,
    ) -> None:
        self._gateway, self._origins = gateway, origins
        self._statistics = RequestStatistics(gateway, logs=logs)
        self._endpoints = BoundEndpoints(gateway.serving)
        self._reader = EndpointReader(gateway.serving, gateway.answers.lookups)
        self.writer = EndpointWriter(gateway)
        self.rows = RowChanges(gateway.serving)
        self.streams = Quota("streams of events", STREAMS_MAX, STREAMS_EACH if streams is None else streams, STREAMS_RESERVE)
        self._tokens = Tokens()
        self._rates = Rates() if rate is None else Rates(rate)
        self._routes: tuple[Catalog | None, Routes] = (None, Routes(()))

    def follow(self, settings: ProcessSettings) -> None:
        """Takes new values of the settings that can change while the service runs."""
        settings.on_change("http-origin", lambda origins: setattr(self, "_origins", frozenset(origins)))
        settings.on_change("http-rate", lambda rate: setattr(self._rates, "limit", rate or REQUESTS_PER_S))
        settings.on_change("http-streams", lambda each: setattr(self.streams, "each", each or STREAMS_EACH))
        settings.on_change("http-log", lambda logs: setattr(self._statistics, "logs", logs))

    async def answer(self, request: Request, peer: Peer) -> Response:
        """Returns the response to a request; every error becomes one."""
        cross_origin = self._cross_origin(request)
        handled = Handled(request, peer)
        try:
            response = await self._answer(request, peer, handled)
        except HttpError as error:
            handled.sqlstate = error.error.sqlstate
            response = error_response(error.status, error.error, error.fields)
        except Exception as error:  # noqa: BLE001  # reported as an internal error
            shown_error = self._told(error, request)
            handled.sqlstate = shown_error.sqlstate
            writes = request.method not in ("GET", "HEAD")
            response = error_response(status_of(error, writes=writes) if isinstance(error, TailgateError) else 500, shown_error)
        self._statistics.ended(handled, response)
        if not cross_origin:
            return response
        return replace(response, fields=(*response.fields, *cross_origin))

    def _told(self, error: Exception, request: Request) -> TailgateError:
        """Returns the error for the client: of errors of rows, which may quote values, only their SQLSTATE.

        The message of a violated constraint, without its detail, has only names. Callers of endpoints that write need it.
        """
        reported = self._gateway.internal_errors.reported(translated(error), request.path)
        if reported.sqlstate.startswith("23") and request.method not in ("GET", "HEAD"):
            return of(reported.sqlstate, reported.message)
        if reported.sqlstate.startswith(("22", "23", "P0")):
            return of(reported.sqlstate, "the query of the endpoint failed", hint="Its owner sees the error in SQL.")
        return of(reported.sqlstate, reported.message, hint=reported.hint)

    # --- one request

    async def _answer(self, request: Request, peer: Peer, handled: Handled) -> Response:
        if request.method == "OPTIONS":
            return Response(204, fields=((b"Allow", ", ".join(METHODS).encode()),))
        if request.method not in METHODS:
            raise _not_allowed(request.method, METHODS)
        catalog = self._gateway.serving.progress.catalog
        role, _ = role_of(request, peer, catalog, self._gateway.secret, self._tokens)
        handled.role = role
        self._rates.take(role, asyncio.get_running_loop().time())
        REQUESTER.set(Requester(role.id, role.superuser))
        TASK_BUDGET.set(self._gateway.budget_of(role.id, role.superuser))
        if request.path == openapi.PATH:
            return _conditional(request, openapi.document(await self._callable(role, catalog)))
        endpoint, path = self._route(request, catalog)
        handled.endpoint = endpoint
        bound = await self._endpoints.get(endpoint)
        if isinstance(bound, BoundWrite):
            return await self._write(request, bound, path, handled)
        query = authorize(bound.query.prepared, role, self._gateway.serving.progress.catalog)
        try:
            fields = query_fields(request.query)
            values = parameters.values(endpoint, path, fields, {}, () if bound.single else PAGING)
            rows = range_of(bound, request, fields)
        except TailgateError as error:
            raise HttpError(400, error) from error
        if wants_events(request):
            return await self._follow(request, peer, bound, query, values, rows)
        page = await self._page(bound, query, values, rows)
        handled.rows = len(page.rows)
        return _response(bound, request, page, rows)

    def _route(self, request: Request, catalog: Catalog) -> tuple[Endpoint, dict[str, str]]:
        """Returns the endpoint of a path and its parameters in the path. Raises an HttpError with 400, 404 or 405."""
        if self._routes[0] is not catalog:
            self._routes = (catalog, Routes(catalog.each(Endpoint)))
        routes = self._routes[1]
        try:
            route = routes.find("GET" if request.method == "HEAD" else request.method, request.path)
            others = () if route is not None else routes.methods(request.path)
        except TailgateError as error:
            raise HttpError(400, error) from error
        if route is not None:
            return route
        if others:
            raise _not_allowed(request.method, (*others, *("HEAD",) * ("GET" in others), "OPTIONS"))
        raise HttpError(404, UndefinedObject("there is no endpoint with this path"))

    async def _callable(self, role: Role, catalog: Catalog) -> list[BoundEndpoint | BoundWrite]:
        """Returns the endpoints that a role may call, without those whose query cannot be evaluated now."""
        endpoints = []
        for endpoint in catalog.each(Endpoint):
            with contextlib.suppress(TailgateError):
                authorize(Call(endpoint), role, catalog)
                bound = await self._endpoints.get(endpoint)
                authorize(bound if isinstance(bound, BoundWrite) else bound.query.prepared, role, catalog)
                endpoints.append(bound)
        return endpoints

    # --- writes

    async def _write(self, request: Request, bound: BoundWrite, path: Mapping[str, str], handled: Handled) -> Response:
        """Executes a statement that writes. Of requests with one Idempotency-Key, only the first is executed."""
        role = handled.role
        assert role is not None
        check_site(request, self._origins)
        authorize(bound, role, self._gateway.serving.progress.catalog)
        if request.body and request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != JSON:
            raise HttpError(415, FeatureNotSupported("a body must have the Content-Type application/json"))
        key = key_of(request, bound.endpoint, role)
        workers, long = self._gateway.serving.workers, len(request.body) > LONG_BODY_BYTES
        try:
            fields = query_fields(request.query)
            values = await workers.run_bounded(parameters.with_body, bound.endpoint, path, fields, request.body, long=long)
        except TailgateError as error:
            raise HttpError(status_of(error, writes=True) if error.sqlstate.startswith("5") else 400, error) from error
        try:
            answer = await asyncio.wait_for(self.writer.run(bound, role.id, values, key), REQUEST_S_MAX)
        except asyncio.TimeoutError:
            hint = "The rows may have been written. With an Idempotency-Key the request can be sent again."
            raise QueryCanceled("canceling the request due to its timeout", hint=hint) from None
        except NoData as error:
            raise HttpError(409 if isinstance(bound.plan, InsertPlan) else 404, error) from error
        handled.rows = answer.rows
        header = [(b"Tailgate-Time", b"%d" % self._gateway.serving.progress.time), (b"Cache-Control", b"no-store"), (b"Vary", VARY)]
        if answer.replayed:
            header.append((b"Idempotency-Replayed", b"true"))
        return Response(answer.status, answer.body, tuple(header))

    async def _page(self, bound: BoundEndpoint, query: Authorized[Prepared], values: list[object], rows: Range) -> Page:
        page = self._reader.page_in_memory(bound, query, values, rows)
        if page is not None:
            return page
        try:
            return await asyncio.wait_for(self._reader.page(bound, query, values, rows), REQUEST_S_MAX)
        except asyncio.TimeoutError:
            raise QueryCanceled("canceling the request due to its timeout") from None
        except (Gone, InvalidParameterValue) as error:
            if rows.at is None:
                raise
            raise HttpError(400, error) from error

    # --- streams

    async def _follow(
        self, request: Request, peer: Peer, bound: BoundEndpoint, query: Authorized[Prepared], values: list[object], rows: Range
    ) -> Response:
        """Returns the events of an object, from its present state or from the time in Last-Event-ID."""
        if not bound.query.single or query.plan.volatile or not query.plan.items:
            hint = "Endpoints can be followed if they read a relation, return one object by a key, and do not use the current time."
            raise HttpError(406, FeatureNotSupported("this endpoint cannot be followed", hint=hint))
        target = target_of(bound, values)
        try:
            self.streams.check(REQUESTER.get())
            if target is None:
                self._gateway.serving.followers.check_quota()
        except TailgateError as error:
            raise HttpError(429, error) from error
        start: Page | int
        sent = request.headers.get(b"last-event-id")
        if sent:
            try:
                start = integer(sent.decode("latin-1"), "Last-Event-ID", 0, 2**63 - 1)
                await self._reader.check_time(query, start)
            except TailgateError as error:
                raise HttpError(410 if isinstance(error, Gone) else 400, error) from error
            if not await self._is_unchanged(bound, start):  # the client has an object of another form
                start = await self._page(bound, query, values, rows)
        else:
            start = await self._page(bound, query, values, rows)
            if not start.rows:
                raise HttpError(404, NoData("no row has this key"), (b"Tailgate-Time", b"%d" % start.time))
        check = self._checked_again(request, peer, bound)
        after = start.time if isinstance(start, Page) else start
        if target is not None:
            changes = self.rows.follow(target, after, check)
        else:
            changes = of_query(self._gateway.serving, bound, query, values, after, check)
        events = object_events(changes, start, check)
        fields = ((b"Cache-Control", b"no-store"), (b"Vary", VARY))
        return Response(200, fields=fields, type=EVENTS, stream=self._until_end(request, events))

    async def _is_unchanged(self, bound: BoundEndpoint, since: int) -> bool:
        """Returns whether an endpoint returned the same objects at a time."""
        serving, lake = self._gateway.serving, self._gateway.lake
        n = await serving.followers.entry_at(since)
        if serving.progress.known[1] <= n:
            return True
        try:
            return form_of(bound.endpoint.id, await asyncio.to_thread(lake.catalog_at, n)) == bound.form
        except Gone:
            return False

    async def _until_end(self, request: Request, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Yields the events, and if an error ends them, this as the last."""
        requester = REQUESTER.get()
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(contextlib.aclosing(events))
            try:
                self.streams.check(requester)  # other streams may have begun since the request was checked
                self.streams.opened(requester)
                stack.callback(self.streams.closed, requester)
                async for part in events:
                    yield part
            except HttpError as error:
                yield end(error.error)
            except Exception as error:  # noqa: BLE001  # reported as an internal error
                yield end(self._told(error, request))

    def _checked_again(self, request: Request, peer: Peer, bound: BoundEndpoint) -> Callable[[], float]:
        """Returns the function that a stream calls again and again, at the latest after the seconds that it has returned.

        It raises an error if, in a newer catalog, the caller may not read or the endpoint returns other objects.
        """
        progress, gateway = self._gateway.serving.progress, self._gateway
        checked: Catalog | None = None
        end_ms = 0.0

        def check() -> float:
            nonlocal checked, end_ms
            catalog = progress.catalog
            if catalog is not checked or now_ms() >= end_ms:
                role, end_ms = role_of(request, peer, catalog, gateway.secret, self._tokens)
                if form_of(bound.endpoint.id, catalog) != bound.form:
                    raise HttpError(404, ObjectNotInPrerequisiteState("the endpoint, or a view below it, was changed or dropped"))
                authorize(bound.query.prepared, role, catalog)
                checked = catalog
            return min(HEARTBEAT_S, (end_ms - now_ms()) / 1000)

        return check

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
            methods = ", ".join(m for m in METHODS if m != "OPTIONS").encode()
            fields += [(b"Access-Control-Allow-Methods", methods), (b"Access-Control-Allow-Headers", ALLOWED)]
        return tuple(fields)


def _not_allowed(method: str, methods: Sequence[str]) -> HttpError:
    """Returns the error for a method that the path does not have."""
    return HttpError(405, FeatureNotSupported(f"method {method} is not supported"), (b"Allow", ", ".join(methods).encode()))


def _response(bound: BoundEndpoint, request: Request, page: Page, rows: Range) -> Response:
    """Returns the response with the rows of a page: one object, or an array."""
    time = (b"Tailgate-Time", b"%d" % page.time)
    if bound.query.single and not page.rows:
        return error_response(404, NoData("no row has this key"), (time,))
    body = page.rows[0] if bound.query.single else b"[" + b",".join(page.rows) + b"]"
    fields = [time] if not page.more else [time, (b"Link", _next(request, page.time, rows))]
    return _conditional(request, body, *fields)


def _conditional(request: Request, body: bytes, *others: tuple[bytes, bytes]) -> Response:
    """Returns a response with the ETag of its body: 304 if the client has this body, and compressed if it accepts that."""
    etag = b'W/"' + hashlib.blake2b(body, digest_size=ETAG_BYTES).hexdigest().encode() + b'"'
    fields = [(b"ETag", etag), *others, (b"Cache-Control", b"private, no-cache"), (b"Vary", VARY)]
    if _matches(request.headers.get(b"if-none-match"), etag):
        return Response(304, fields=tuple(fields))
    if len(body) >= GZIP_BYTES_MIN and _accepts_gzip(request.headers.get(b"accept-encoding", b"")):
        body = gzip.compress(body, GZIP_LEVEL)
        fields.append((b"Content-Encoding", b"gzip"))
    return Response(200, body, tuple(fields))


def _next(request: Request, time: int, rows: Range) -> bytes:
    """Returns the Link to the next page."""
    others = [f for f in request.query.split("&") if f and not f.startswith("cursor=")]
    cursor = cursor_at(time, rows.offset + rows.limit).decode()
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
