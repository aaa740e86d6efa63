"""The gateways of this machine that serve the lake, and the secret that they share.

    gateways/<port>.json         a gateway's port on loopback, its token, and its addresses for clients
    gateways/secret              32 bytes, written by the first gateway; source of the salts for roles that do not exist

The owner writes a .json file and removes it when it ends (`store.announcements`).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from tailgate.lake.folder import Lake
from tailgate.lake.store import announcements, documents

FOLDER = "gateways"
SECRET_BYTES = 32
_SECRET = f"{FOLDER}/secret"

log = logging.getLogger("tailgate.lake")


@dataclass(frozen=True, slots=True)
class Peer:
    """A gateway. `pid`: its process. `port`: on loopback. `name`: of its announcement. `listens`: addresses and ports for clients."""

    pid: int
    port: int
    token: str
    name: str
    listens: frozenset[tuple[str, int]] = frozenset()


def announce(lake: Lake, name: str, port: int, token: str, listens: Iterable[tuple[str, int]] = ()) -> str:
    """Announces a gateway. Returns the name for `withdraw` at its end. `name` distinguishes gateways of one process."""
    place = f"{FOLDER}/{name}{announcements.SUFFIX}"
    content = {**announcements.of_this_process(), "port": port, "token": token, "listens": sorted(listens)}
    documents.write(lake.store, place, content)
    return place


def withdraw(lake: Lake, name: str) -> None:
    """Ends the announcement of a gateway."""
    lake.store.discard([name])


def secret(lake: Lake) -> bytes:
    """Returns the secret of the lake's gateways. If the lake is not writable, returns one for this process alone."""
    try:
        if not lake.store.exists(_SECRET):
            lake.store.create(_SECRET, [secrets.token_bytes(SECRET_BYTES)])
        return bytes(lake.store.get(_SECRET))
    except OSError as error:
        log.warning("the secret of the lake's gateways cannot be kept: %s", error)
        return secrets.token_bytes(SECRET_BYTES)


def announced(lake: Lake, but: str | None = None) -> list[Peer]:
    """Returns all running gateways of this machine, except the one announced under the name `but`."""
    gateways: list[Peer] = []
    for name, announcement in announcements.running(lake.store, FOLDER):
        if name == but:
            continue
        listens = frozenset((host, port) for host, port in announcement.get("listens", ()))
        gateways.append(Peer(announcement["pid"], announcement["port"], announcement["token"], name, listens))
    return gateways
