"""The gateways that serve the lake, and the secret that they share.

    gateways/<number>.json       a gateway's address, token and certificate (`host.process_tls`), and its addresses for clients
    gateways/secret              32 bytes, written by the first gateway; source of the salts for roles that do not exist

A gateway writes its file and removes it when it ends. One that has crashed is forgotten by the next process of its machine that looks
(`store.announcements`). Gateways that other machines reach also renew their files. They remove each other's, if one is not renewed.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import time
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tailgate.lake.folder import Lake
from tailgate.lake.host import process_tls
from tailgate.lake.host.process_tls import joined, split
from tailgate.lake.host.processes import Machine
from tailgate.lake.store import announcements, documents
from tailgate.lake.store.documents import Document

FOLDER = "gateways"
NUMBERS = 1 << 15  # of gateways
RENEW_S = 30.0  # between two renewals of an announcement that other machines read
EXPIRED_S = 120.0  # without a renewal, until the announcement of a gateway on another machine is removed
SECRET_BYTES = 32
ANSWER_BYTES_MAX = 32 << 20  # of a gateway: the lags of some ten thousand relations, the rows of a sink
_SECRET = f"{FOLDER}/secret"

log = logging.getLogger("tailgate.lake")


@dataclass(frozen=True, slots=True)
class Peer:
    """A gateway. `pid`, `machine`: its process. `address`: for requests of gateways. `name`: of its announcement.

    `number`: the high half of its sessions' process ids. `listens`: addresses and ports for clients.
    `certificate`: of its `address`; None if it is reached from its own machine only.
    """

    pid: int
    machine: Machine
    number: int
    address: str
    token: str
    name: str
    listens: frozenset[tuple[str, int]] = frozenset()
    certificate: str | None = None

    @property
    def is_here(self) -> bool:
        """Returns whether it runs on this machine."""
        return self.machine.is_here

    @property
    def is_reached(self) -> bool:
        """Returns whether a process of this machine can send it requests."""
        return self.is_here or self.certificate is not None

    @property
    def process(self) -> str:
        """Returns its process id, with the machine if that is another one."""
        return str(self.pid) if self.is_here else f"{self.pid} on {self.machine.host}"


class Announcement:
    """The announcement of a gateway: where the others reach it. `number`: one that no other announced gateway has."""

    def __init__(
        self, lake: Lake, address: str, token: str, listens: Iterable[tuple[str, int]] = (), certificate: str | None = None, number: int = 0
    ) -> None:
        """Announces a gateway. `number`: the preferred one."""
        self._lake = lake
        self._content: Document = {
            **announcements.of_this_process(),
            "address": address,
            "port": split(address)[1],  # for earlier versions, which know gateways on loopback only
            "token": token,
            "listens": sorted(listens),
            "certificate": certificate,
        }
        self.number = number or random_number()
        self._write()
        self._renewals: dict[str, tuple[Hashable, float]] = {}  # of others: the last one, and when it was first seen

    def _write(self) -> None:
        """Writes the announcement, under another number if a gateway has this one."""
        while not documents.replace(self._lake.store, self.name, {**self._content, "number": self.number}, None):
            self.number = random_number()

    @property
    def name(self) -> str:
        return f"{FOLDER}/{self.number}{announcements.SUFFIX}"

    def renew(self) -> None:
        """Renews the announcement, and removes those of gateways on other machines that have not been renewed for EXPIRED_S."""
        if not documents.renew(self._lake.store, self.name, lambda document: document["token"] == self._content["token"]):
            self._write()  # this process was suspended, and another gateway has removed it
        renewals, now = {}, time.monotonic()
        for peer in announced(self._lake, self.name):
            renewed = None if peer.is_here else documents.renewed(self._lake.store, peer.name)
            if renewed is None:
                continue
            last, since = self._renewals.get(peer.name, (None, now))
            if last != renewed[1]:
                since = now
            elif now - since > EXPIRED_S:
                self._lake.store.discard([peer.name])
            renewals[peer.name] = renewed[1], since
        self._renewals = renewals

    def withdraw(self) -> None:
        """Ends the announcement."""
        self._lake.store.discard([self.name])


def random_number() -> int:
    """Returns a number for a gateway."""
    return 1 + secrets.randbelow(NUMBERS - 1)


def secret(lake: Lake) -> bytes:
    """Returns the secret of the lake's gateways. If the lake is not writable, returns one for this process alone."""
    try:
        if not lake.store.exists(_SECRET):
            lake.store.create(_SECRET, [secrets.token_bytes(SECRET_BYTES)])
        return bytes(lake.store.get(_SECRET))
    except OSError as error:
        log.warning("the secret of the lake's gateways cannot be kept: %s", error)
        return secrets.token_bytes(SECRET_BYTES)


def listed(lake: Lake) -> list[Peer]:
    """Returns the running gateways of this machine, and the announced ones of other machines, which may have ended."""
    return [_peer(name, content) for name, content in announcements.running(lake.store, FOLDER, elsewhere=True)]


def announced(lake: Lake, but: str | None = None) -> list[Peer]:
    """Returns the running gateways of this machine, and those of other machines that can be reached, except the one with the name `but`.

    Gateways of other machines may have ended.
    """
    return [peer for peer in listed(lake) if peer.is_reached and peer.name != but]


def request_line(token: str, request: Mapping[str, Any]) -> bytes:
    """Returns a request to the gateway with the token, which comes first: the gateway reads it before the rest."""
    return json.dumps({"token": token, **request}).encode() + b"\n"


def token_part(token: str) -> bytes:
    """Returns the beginning of every request to the gateway with the token."""
    return json.dumps({"token": token}).encode().removesuffix(b"}")


def ask(peer: Peer, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any] | None:
    """Returns the answer of a gateway to a request, or None if it gives none in time."""
    with contextlib.suppress(OSError, ValueError), process_tls.connect(peer.address, peer.certificate, timeout_s) as connection:
        connection.sendall(request_line(peer.token, request))
        with connection.makefile("rb") as stream:
            answer = json.loads(stream.readline(ANSWER_BYTES_MAX))
            return answer if isinstance(answer, dict) else None
    return None


def of_this_machine(lake: Lake) -> list[Peer]:
    """Returns the running gateways of this machine."""
    return [_peer(name, content) for name, content in announcements.running(lake.store, FOLDER)]


def _peer(name: str, content: Document) -> Peer:
    """Returns the gateway of an announcement. Earlier versions announce the port on loopback only."""
    address = content.get("address") or joined("127.0.0.1", content["port"])
    listens = frozenset((host, port) for host, port in content.get("listens", ()))
    number = content.get("number", content["pid"] % NUMBERS)
    machine = announcements.machine_of(content)
    return Peer(content["pid"], machine, number, address, content["token"], name, listens, content.get("certificate"))
