"""The HTTP interface that gateways call: statements that change the catalog, news of entries, the state of the sources.

`lake.control` describes the protocol.

The notices of a running statement are interim answers: `102 Processing` with the header `Notice: {…}`.
A client that sends a byte before the answer, or closes the connection, cancels the statement. After
the byte, it gets the answer when the statement is undone.

On loopback, or at `--control-listen` with TLS. Every request carries the token of `engine.json`. Each
connection has a thread: gateways are few, and each holds the stream of entries (`entry_stream`) and
one long poll.
"""

from __future__ import annotations

import contextlib
import hmac
import io
import secrets
import socket
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from tailgate.lake import control as protocol
from tailgate.lake.catalog.resolution import Resolution
from tailgate.lake.host import process_tls
from tailgate.lake.host.http import BadRequest, body_length
from tailgate.lake.host.internal_errors import DEFECT, InternalErrors
from tailgate.lake.host.keepalive import keep_alive
from tailgate.lake.host.process_tls import Certificate
from tailgate.lake.host.readiness import readable
from tailgate.lake.host.server_thread import ServerThread
from tailgate.sql.lexer.literal_masking import mask_literals

STATEMENT_BYTES_MAX = 16 * 1024 * 1024  # of a statement, which is text
IDLE_S = 60.0  # of a connection that sends nothing; gateways connect again
CONNECTIONS_MAX = 2048  # at once, because each has a thread; further ones are closed
CONNECTIONS_WAITING_MAX = 1024  # not yet accepted; the kernel drops further ones, whose clients retry after a second
STATEMENTS = (protocol.STATEMENT, protocol.PUSH, protocol.PRINT)  # paths whose body is a statement
WRITE_BYTES_MAX = (1 << 30) + (1 << 20)  # of a write or a new table: `writes.TRANSACTION_BYTES_MAX`, and its head
ANSWERED_S = 2.0  # that an engine which ends waits for the answers to its statements; those after a crash need `jvm.ENDED_S`


class Client(Protocol):
    """The client of a statement, which waits for its answer."""

    @property
    def attempt(self) -> protocol.Attempt:
        """Returns the attempt of its statement."""

    def tell(self, notice: dict[str, Any]) -> None:
        """Sends a notice at once, in the header of an interim answer."""

    def gone(self) -> bool:
        """Returns whether the client has canceled the statement or has disconnected: its effects must be undone."""


class _Nobody:
    attempt = protocol.Attempt()

    def tell(self, notice: dict[str, Any]) -> None:
        return

    def gone(self) -> bool:
        return False


NOBODY: Client = _Nobody()  # of the engine's own statements


Held: TypeAlias = tuple[dict[str, Any], Callable[[], None]]  # an answer, and a function for the end of the connection


def _no_lines(request: protocol.StatementRequest) -> Generator[list[str]]:
    yield from ()


@dataclass(frozen=True)
class Answers:
    """The functions that answer requests; the control interface sends their results as JSON.

    `statement(sql, settings, resolution, client)`, `status(lags)`, `entries(connection)`, which answers until the client disconnects,
    `write(body, id, again)`, `recent(relations, timeout)`, `table(body, client)`, `sequence(body, client)`,
    `freshness(after, version)`, `hand_over()`, `plan(request)` for a statement in a transaction block, `block(body, client)`,
    `push(request, client)` and `lock(body, client)`, whose second result is called when the connection has ended, `print(request)`: the
    lines of records as they arrive, or none at times.
    """

    statement: Callable[[str, dict[str, str], Resolution, Client], dict[str, Any]]
    entries: Callable[[socket.socket], None]
    status: Callable[[bool], dict[str, Any]]
    write: Callable[[bytes, str, bool], dict[str, Any]]
    recent: Callable[[list[int], float], dict[str, Any]] = lambda relations, timeout: {}
    table: Callable[[bytes, Client], dict[str, Any]] = lambda body, client: {}
    sequence: Callable[[bytes, Client], dict[str, Any]] = lambda body, client: {}
    freshness: Callable[[int, int], dict[str, Any]] = lambda after, version: {}
    health: Callable[[], dict[str, Any]] = dict
    hand_over: Callable[[], None] = lambda: None
    plan: Callable[[protocol.StatementRequest], dict[str, Any]] = lambda request: {}
    block: Callable[[bytes, Client], dict[str, Any]] = lambda body, client: {}
    push: Callable[[protocol.StatementRequest, Client], Held] = lambda request, client: ({}, lambda: None)
    print: Callable[[protocol.StatementRequest], Generator[list[str]]] = _no_lines
    lock: Callable[[bytes, Client], Held] = lambda body, client: ({"granted": False}, lambda: None)


class _Unanswered:
    """The requests that have no answer yet. Thread safe."""

    def __init__(self) -> None:
        self._requests: set[object] = set()
        self._changed = threading.Condition()

    def add(self, request: object) -> None:
        with self._changed:
            self._requests.add(request)

    def discard(self, request: object) -> None:
        with self._changed:
            self._requests.discard(request)
            self._changed.notify_all()

    def wait(self, timeout: float) -> None:
        """Waits for those that are there at the call, at most `timeout` seconds."""
        with self._changed:
            requests = set(self._requests)
            self._changed.wait_for(lambda: requests.isdisjoint(self._requests), timeout)


class _Server(ThreadingHTTPServer):
    request_queue_size = CONNECTIONS_WAITING_MAX
    daemon_threads = True

    def __init__(self, answers: Answers, token: str, errors: InternalErrors, listen: str, certificate: Certificate | None) -> None:
        self.answers, self.token, self.errors, self._certificate = answers, token, errors, certificate
        self._places = threading.Semaphore(CONNECTIONS_MAX)
        self.unanswered = _Unanswered()
        address = process_tls.split(listen)
        self.address_family = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0][0]
        super().__init__(address, _Handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return self._places.acquire(blocking=False)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection, in its thread."""
        try:
            keep_alive(request)
            if self._certificate is None:
                super().finish_request(request, client_address)
                return
            request.settimeout(process_tls.HANDSHAKE_S)
            with contextlib.suppress(OSError), self._certificate.context.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, client_address)
        finally:
            self._places.release()


class _Handler(BaseHTTPRequestHandler):
    """One connection. It is also the client of the statement that runs on it."""

    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = IDLE_S
    rfile: io.BufferedReader
    _is_withdrawn = False
    _request: object = None  # the newest one of the connection

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if not self._allowed():
            return
        try:
            protocol.check_version(self.headers.get(protocol.VERSION_HEADER))
            if url.path == protocol.ENTRIES:
                self.close_connection = True
                self.server.answers.entries(self.connection)
            elif url.path == protocol.STATUS:
                status = self.server.answers.status(protocol.decode_status(url.query))
                self._answer(200, {**status, "internal_errors": self.server.errors.rows()})
            elif url.path == protocol.HEALTH:
                self._answer(200, self.server.answers.health())
            elif url.path == protocol.RECENT:
                self._answer(200, self.server.answers.recent(*protocol.decode_recent(url.query)))
            elif url.path == protocol.FRESHNESS:
                self._answer(200, self.server.answers.freshness(*protocol.decode_freshness(url.query)))
            else:
                self._answer(404, {"message": "no such path"})
        except Exception as e:  # noqa: BLE001  # counted and logged if it is internal
            self._failed(e)

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        try:
            length = body_length(self.headers, STATEMENT_BYTES_MAX if path in STATEMENTS else WRITE_BYTES_MAX)
        except BadRequest as e:
            self.close_connection = True
            self._answer(e.status, {"sqlstate": "54000" if e.status == 413 else "08P01", "message": e.message})
            return
        if not self._allowed():
            return
        body = self.rfile.read(length)
        self._is_withdrawn = self._sent_more()
        self._request = object()
        if path != protocol.LOCK:  # which may wait for other sessions as long as it likes
            self.server.unanswered.add(self._request)
        try:
            self._execute(path, body)
        finally:
            self.server.unanswered.discard(self._request)

    def _execute(self, path: str, body: bytes) -> None:
        """Executes a request and answers it."""
        answers = self.server.answers
        with_client = {protocol.TABLE: answers.table, protocol.SEQUENCE: answers.sequence, protocol.BLOCK: answers.block}
        if path not in (*STATEMENTS, protocol.WRITE, protocol.HAND_OVER, protocol.LOCK, *with_client):
            self._answer(404, {"message": "no such path"})
            return
        text = ""
        try:
            protocol.check_version(self.headers.get(protocol.VERSION_HEADER))
            if path == protocol.WRITE:
                self._answer(200, answers.write(body, self.attempt.id, self.attempt.again))
                return
            if path == protocol.HAND_OVER:
                answers.hand_over()
                self._answer(200, {})
                return
            if path in with_client:
                self._answer(200, with_client[path](body, self))
                return
            if path == protocol.LOCK:
                self._hold(answers.lock(body, self))
                return
            request = protocol.StatementRequest.decode(body)
            text = request.sql
            if path == protocol.PUSH:
                self._hold(answers.push(request, self))
            elif path == protocol.PRINT:
                self._print(request)
            elif request.block is not None:
                self._answer(200, answers.plan(request))
            else:
                self._answer(200, answers.statement(text, dict(request.settings), request.resolution, self))
        except Exception as e:  # noqa: BLE001  # counted and logged if it is internal
            self._failed(e, text)

    def _hold(self, held: Held) -> None:
        """Answers, and then waits until the client disconnects."""
        answer, end = held
        self.close_connection = True
        try:
            self._answer(200, answer)
            readable([self.connection])  # a client sends nothing after its request
        finally:
            end()

    def _print(self, request: protocol.StatementRequest) -> None:
        """Sends the lines of records as they arrive, until the client disconnects."""
        with contextlib.closing(self.server.answers.print(request)) as batches:
            self.close_connection = True
            self._answer(200, {})
            try:
                for lines in batches:
                    if lines:
                        self.wfile.write(protocol.encode_part(lines))
                        self.wfile.flush()
                    if self.gone():
                        return
                end = protocol.encode_part(())
            except OSError:
                return
            except Exception as e:  # noqa: BLE001  # as in `do_POST`
                end = protocol.encode_part(protocol.error_fields(self.server.errors.reported(e, request.sql)))
            with contextlib.suppress(OSError):
                self.wfile.write(end)

    def _failed(self, error: Exception, text: str = "") -> None:
        """Answers with an error; `text`: of the statement that ended in it."""
        e = self.server.errors.reported(error, text)
        self._answer(500 if e.sqlstate == DEFECT else 400, protocol.error_fields(e))

    @property
    def attempt(self) -> protocol.Attempt:
        return protocol.Attempt.of(dict(self.headers))

    def tell(self, notice: dict[str, Any]) -> None:
        try:
            self.wfile.write(b"HTTP/1.1 102 Processing\r\nNotice: " + protocol.encode(notice) + b"\r\n\r\n")
            self.wfile.flush()
        except OSError:
            self.close_connection = True

    def gone(self) -> bool:
        return self._is_withdrawn or bool(readable([self.connection], 0))

    def _sent_more(self) -> bool:
        """Returns whether a byte after the request has been read together with it."""
        self.connection.settimeout(0)
        try:
            return bool(self.rfile.peek(1))
        except OSError:  # of TLS, if there is none
            return False
        finally:
            self.connection.settimeout(IDLE_S)

    def _allowed(self) -> bool:
        header = self.headers.get("Authorization", "")
        if hmac.compare_digest(header.encode(), f"Bearer {self.server.token}".encode()):
            return True
        self.close_connection = True  # a body may be left unread
        self._answer(401, {"message": "no token, or that of another epoch"})
        return False

    def _answer(self, status: int, body: protocol.Answer) -> None:
        data = protocol.encode(body)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        try:
            self.wfile.write(data)
            self.wfile.flush()
        except OSError:
            self.close_connection = True  # the gateway went away while it waited
        finally:
            self.server.unanswered.discard(self._request)  # what follows, such as records of PRINT, may take as long as it likes

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Control:
    """The server. `crashed` returns whether the JVM has ended. `listen`: the address by which other machines reach it, with TLS.

    Raises 55006 if it cannot listen there.
    """

    def __init__(self, answers: Answers, crashed: Callable[[], bool] = lambda: False, listen: str | None = None) -> None:
        self.token = secrets.token_urlsafe(32)
        created = None if listen is None else process_tls.create()
        self.certificate = None if created is None else created.pem
        address = listen or process_tls.LOOPBACK
        try:
            server = _Server(answers, self.token, InternalErrors(mask_literals, crashed), address, created)
        except OSError as error:
            raise process_tls.cannot_listen(address, error) from error
        self.address = process_tls.joined(process_tls.split(address)[0], server.server_address[1])
        self._unanswered = server.unanswered
        self._thread = ServerThread(server, "control")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stops listening, and waits up to ANSWERED_S for the answers to statements and writes that were sent before."""
        self._thread.stop()
        self._unanswered.wait(ANSWERED_S)


def notice(message: str, sqlstate: str = "00000") -> dict[str, Any]:
    """Returns a notice, or a warning if its SQLSTATE is of class 01, as the control interface encodes it."""
    return {"severity": "WARNING" if sqlstate.startswith("01") else "NOTICE", "sqlstate": sqlstate, "message": message, "hint": None}
