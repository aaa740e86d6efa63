"""The gateways of this machine that serve the lake, and the secret that they share.

    gateways/<port>.json         a gateway's port on loopback, its token, and its addresses for clients
    gateways/secret              32 bytes, written by the first gateway; source of the salts for roles that do not exist

The owner writes a .json file and removes it when it ends. If the owner has crashed, the next gateway that finds it removes it.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tailgate.lake.folder import Lake
from tailgate.lake.host import files
from tailgate.lake.host.processes import Process

FOLDER = "gateways"
SECRET_BYTES = 32

log = logging.getLogger("tailgate.lake")


@dataclass(frozen=True, slots=True)
class Peer:
    """A gateway. `pid`: its process. `port`: on loopback. `listens`: addresses and ports for clients."""

    pid: int
    port: int
    token: str
    path: Path
    listens: frozenset[tuple[str, int]] = frozenset()


def announce(lake: Lake, name: str, port: int, token: str, listens: Iterable[tuple[str, int]] = ()) -> Path:
    """Announces a gateway and returns the file to remove at its end. `name` distinguishes gateways of one process."""
    folder = lake.path / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{name}.json"
    content = {**asdict(Process.of(os.getpid())), "host": socket.gethostname(), "port": port, "token": token, "listens": sorted(listens)}
    files.replace(path, json.dumps(content).encode())
    return path


def secret(lake: Lake) -> bytes:
    """Returns the secret of the lake's gateways. If the folder is not writable, returns one for this process alone."""
    folder = lake.path / FOLDER
    path = folder / "secret"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if not path.exists():
            files.create(path, [secrets.token_bytes(SECRET_BYTES)], folder / f".secret.{os.getpid()}.{secrets.token_hex(4)}")
        return path.read_bytes()
    except OSError as error:
        log.warning("the secret of the lake's gateways cannot be kept: %s", error)
        return secrets.token_bytes(SECRET_BYTES)


def announced(lake: Lake, but: Path | None = None) -> list[Peer]:
    """Returns all running gateways of this machine, except the one announced in `but`."""
    gateways: list[Peer] = []
    here = socket.gethostname()
    for path in sorted((lake.path / FOLDER).glob("*.json")):
        if path == but:
            continue
        try:
            announcement = json.loads(path.read_bytes())
        except FileNotFoundError:
            continue
        if announcement.get("host", here) != here:
            continue
        if not Process(announcement["pid"], announcement.get("started", 0), announcement.get("boot", "")).lives():
            path.unlink(missing_ok=True)
            continue
        listens = frozenset((host, port) for host, port in announcement.get("listens", ()))
        gateways.append(Peer(announcement["pid"], announcement["port"], announcement["token"], path, listens))
    return gateways
