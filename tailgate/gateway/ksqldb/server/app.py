"""The endpoints of the HTTP API, as a Starlette application.

POST /ksql  /ksql/terminate  /query  /query-stream  /close-query  /inserts-stream
GET  /info  /healthcheck  /status[/…]  /clusterStatus  /is_valid_property/…  /v1/metadata[/id]       / redirects to /info
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tailgate.gateway.asgi.access import Access
from tailgate.gateway.asgi.bodies import body, parts, was_read
from tailgate.gateway.asgi.refusals import CHALLENGE, UNAUTHORIZED, Refused
from tailgate.gateway.asgi.responses import Failure, Streamed
from tailgate.gateway.asgi.sessions import Caller, Sessions
from tailgate.gateway.ksqldb.server import inserts
from tailgate.gateway.ksqldb.server.http import errors, limits, media
from tailgate.gateway.ksqldb.server.http.errors import ApiError, Document
from tailgate.gateway.ksqldb.server.http.forms import form_of
from tailgate.gateway.ksqldb.server.http.requests import parsed, statement_request
from tailgate.gateway.ksqldb.server.queries import Queries
from tailgate.gateway.ksqldb.server.statements import Statements
from tailgate.gateway.ksqldb.server.terminating import terminate
from tailgate.gateway.server.rates import Rate
from tailgate.sql.ksqldb.declared.refusals import is_property

VERSION = "0.29.0"  # of ksqlDB's API; clients compare it with their own
CLUSTER, SERVICE = "tailgate", "default_"
SCOPE: Document = {"path": [], "clusters": {"kafka-cluster": CLUSTER, "ksql-cluster": SERVICE}}

log = logging.getLogger("tailgate.ksqldb")
Endpoint = Callable[[Request], Awaitable[Response]]


class Api:
    """The endpoints. `access` determines the user of a request."""

    def __init__(self, sessions: Sessions, access: Access) -> None:
        self._sessions, self._access = sessions, access
        self.queries = Queries(sessions)
        self._statements = Statements(sessions)
        self._running = self._inserting = 0
        self._rate = Rate()

    def app(self) -> ASGIApp:
        """Returns the application."""
        get, post = ["GET"], ["POST"]
        routes = [  # matched one after the other: the most frequent ones first
            Route("/query", self._guarded(self._query), methods=post),
            Route("/query-stream", self._guarded(self._query_stream), methods=post),
            Route("/ksql", self._guarded(self._run), methods=post),
            Route("/ksql/terminate", self._guarded(self._terminate), methods=post),
            Route("/close-query", self._guarded(self._close_query), methods=post),
            Route("/inserts-stream", self._guarded(self._inserts), methods=post),
            Route("/", self._guarded(_redirected), methods=get),
            *(Route(path, self._guarded(endpoint), methods=get) for path, endpoint in self._documents().items()),
            Route("/ws/query", self._guarded(_web_socket), methods=get),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: _http_failed})

    def _documents(self) -> dict[str, Endpoint]:
        return {
            "/info": self._info,
            "/healthcheck": self._healthcheck,
            "/status": self._status,
            "/status/{type}/{name}/{action}": self._status,
            "/clusterStatus": self._cluster,
            "/is_valid_property/{name}": self._is_valid,
            "/v1/metadata": self._metadata,
            "/v1/metadata/id": self._metadata,
        }

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        """Returns an endpoint with limits of running requests and of their rate, whose errors are documents."""

        async def guarded(request: Request) -> Response:
            if self._running >= limits.REQUESTS_MAX:
                return _failed(request, ApiError(errors.TOO_MANY, f"The server runs at most {limits.REQUESTS_MAX} requests"))
            if not self._rate.admits(time.monotonic(), limits.RATE_MAX):
                return _failed(request, ApiError(errors.TOO_MANY, f"The server accepts at most {limits.RATE_MAX} requests per second"))
            self._running += 1
            try:
                return await endpoint(request)
            except ApiError as error:
                return _failed(request, error)
            except Refused as error:
                return _failed(request, errors.of_refusal(error))
            except psycopg.Error as error:
                return _failed(request, errors.of_sql(error))
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception:
                log.exception("%s %s", request.method, request.url.path)
                return _failed(request, ApiError(errors.SERVER_ERROR, "Internal server error"))
            finally:
                self._running -= 1

        return guarded

    # --- statements and queries

    async def _run(self, request: Request) -> Response:
        type, caller = self._entered(request, media.ENTITIES)
        statements = statement_request(await body(request), "ksql")
        return _document(await self._statements.run(caller, statements), type)

    async def _terminate(self, request: Request) -> Response:
        type, caller = self._entered(request, media.ENTITIES)
        return _document(await terminate(self._statements, caller, parsed(await body(request) or b"{}")), type)

    async def _query(self, request: Request) -> Response:
        return await self._queried(request, media.QUERY, "ksql", "sql", stream=False)

    async def _query_stream(self, request: Request) -> Response:
        return await self._queried(request, media.STREAM, "sql", "ksql", stream=True)

    async def _queried(self, request: Request, offered: tuple[str, ...], *names: str, stream: bool) -> Response:
        type, caller = self._entered(request, offered)
        query = statement_request(await body(request), *names)
        result = await self.queries.run(caller, query, form_of(type, stream=stream))
        return Response(result, media_type=type) if isinstance(result, bytes) else Streamed(result, type)

    async def _close_query(self, request: Request) -> Response:
        type, caller = self._entered(request, (*media.ENTITIES, media.DELIMITED))
        id = parsed(await body(request)).get("queryId")
        if not isinstance(id, str):
            raise ApiError(errors.BAD_REQUEST, 'Missing member "queryId" in the request body')
        await self.queries.close(caller, id)
        return Response(status_code=200, media_type=type)

    async def _inserts(self, request: Request) -> Response:
        type, caller = self._entered(request, media.ACKS)
        if self._inserting >= limits.STREAMS_MAX:
            raise ApiError(errors.TOO_MANY, f"The server runs at most {limits.STREAMS_MAX} streams of inserts")
        self._inserting += 1
        acks = inserts.acks(self._sessions, caller, parts(request, limits.INSERTS_S))
        try:
            await anext(acks)
        except BaseException:
            self._inserting -= 1
            raise
        return Streamed(self._acked(acks, type), type, duplex=True)

    async def _acked(self, acks: AsyncIterator[Document], type: str) -> AsyncGenerator[bytes, None]:
        """Returns the acks as lines, or as one array."""
        before, after, end = (b"", b"\n", b"") if type == media.DELIMITED else (b"[", b"", b"]\n")
        try:
            async for ack in acks:
                yield before + _encoded(ack) + after
                before = b"" if type == media.DELIMITED else b",\n"
        except (ApiError, Refused) as error:
            failure = error if isinstance(error, ApiError) else errors.of_refusal(error)
            yield before + _encoded(failure.document) + after
            before = b""
        except ClientDisconnect:
            return
        finally:
            self._inserting -= 1
        yield (before if before == b"[" else b"") + end

    def _entered(self, request: Request, offered: tuple[str, ...]) -> tuple[str, Caller]:
        """Returns the type of the response and the user of a request. Raises 401, 403, 406 or 415."""
        caller = self._access.caller(request)
        if request.method == "POST":
            media.check_request(request.headers.get("content-type"))
        return media.accepted(request.headers.get("accept"), offered), caller

    # --- documents about the server

    async def _info(self, request: Request) -> Response:
        type, _ = self._entered(request, media.ENTITIES)
        info = {"version": VERSION, "kafkaClusterId": CLUSTER, "ksqlServiceId": SERVICE, "serverStatus": "RUNNING"}
        return _document({"KsqlServerInfo": info}, type)

    async def _metadata(self, request: Request) -> Response:
        type, _ = self._entered(request, media.ENTITIES)
        cluster = {"id": "", "scope": SCOPE}
        return _document(cluster if request.url.path.endswith("/id") else {"version": VERSION, "clusterId": cluster}, type)

    async def _healthcheck(self, request: Request) -> Response:
        type, caller = self._entered(request, media.ENTITIES)
        details: Document = {"metastore": {"isHealthy": False}}
        try:
            async with self._sessions.session(caller) as session:
                await session.execute("SHOW STREAMS;")
                details["metastore"] = {"isHealthy": True}
                await session.execute("SHOW TOPICS;")
                details["kafka"] = {"isHealthy": True}
        except psycopg.errors.InsufficientPrivilege:  # only superusers may look into topics
            pass
        except (psycopg.Error, Refused) as error:
            if isinstance(error, Refused) and error.status == UNAUTHORIZED:
                raise
            if details["metastore"]["isHealthy"]:
                details["kafka"] = {"isHealthy": False}
        healthy = all(detail["isHealthy"] for detail in details.values())
        return _document({"isHealthy": healthy, "details": details}, type)

    async def _status(self, request: Request) -> Response:
        type, caller = self._entered(request, media.ENTITIES)
        if "type" not in request.path_params:
            return _document({"commandStatuses": self._statements.commands.all(caller.user)}, type)
        id = "{type}/{name}/{action}".format(**request.path_params)
        status = self._statements.commands.find(caller.user, id)
        if status is None:
            raise ApiError(errors.NOT_FOUND, "Command not found")
        return _document(status, type)

    async def _cluster(self, request: Request) -> Response:
        type, _ = self._entered(request, media.ENTITIES)
        now = round(time.time() * 1000)
        lags = {"stateStoreLags": {}, "updateTimeMs": 0}
        host = {"hostAlive": True, "lastStatusUpdateMs": now, "activeStandbyPerQuery": {}, "hostStoreLags": lags}
        return _document({"clusterStatus": {request.url.netloc: host}}, type)

    async def _is_valid(self, request: Request) -> Response:
        type, _ = self._entered(request, media.ENTITIES)
        name = request.path_params["name"]
        if not is_property(name):
            raise ApiError(
                errors.BAD_REQUEST,
                "One or more properties overrides set locally are prohibited by the KSQL server denylist "
                f"(use UNSET to reset their default value): [{name}]",
            )
        return _document(True, type)


async def _redirected(request: Request) -> Response:
    return RedirectResponse("/info", 307)


async def _web_socket(request: Request) -> Response:
    raise ApiError(errors.NOT_FOUND, "WebSockets are not supported: use POST /query-stream or /query")


async def _http_failed(request: Request, error: Exception) -> Response:
    """Returns the response for a path or method that does not exist."""
    assert isinstance(error, HTTPException)
    code = {404: errors.NOT_FOUND, 405: errors.METHOD_NOT_ALLOWED}.get(error.status_code, errors.BAD_REQUEST)
    failure = ApiError(code, f"HTTP {error.status_code} {error.detail}: {request.method} {request.url.path}")
    response = _failed(request, failure)
    response.headers.update(error.headers or {})
    return response


def _failed(request: Request, error: ApiError) -> Response:
    """Returns the response of an error."""
    kind = Response if was_read(request) else Failure
    response = kind(_encoded(error.document), error.status, media_type=media.JSON)
    if error.code == errors.UNAUTHORIZED:
        response.headers.update(CHALLENGE)
    return response


def _document(document: Any, type: str, status: int = 200) -> Response:
    return Response(_encoded(document), status, media_type=type)


def _encoded(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
