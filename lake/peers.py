"""Who serves this lake, and the secret that they share.

    gateways/<port>.json         a gateway's port on loopback, the token that it asks for, where clients connect to it
    gateways/secret              32 bytes, made by the first gateway: salts of roles that do not exist are derived from it

A .json file is written by its owner and removed at its end. One whose process is gone is removed by the next gateway that finds it.
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
from typing import TYPE_CHECKING

from lake import files
from lake.processes import Process

if TYPE_CHECKING:
    from lake.folder import Lake

FOLDER = "gateways"
SECRET_BYTES = 32

log = logging.getLogger("tailgate.lake")


@dataclass(frozen=True, slots=True)
class Peer:
    """`pid`: of its process. `port`: of loopback. `listens`: addresses and ports for clients."""

    pid: int
    port: int
    token: str
    path: Path
    listens: frozenset[tuple[str, int]] = frozenset()


def announce(lake: Lake, name: str, port: int, token: str, listens: Iterable[tuple[str, int]] = ()) -> Path:
    """The file to remove at the end; `name` tells gateways of one process apart."""
    folder = lake.path / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{name}.json"
    said = {**asdict(Process.of(os.getpid())), "host": socket.gethostname(), "port": port, "token": token, "listens": sorted(listens)}
    files.replace(path, json.dumps(said).encode())
    return path


def secret(lake: Lake) -> bytes:
    """Returns the secret of the lake's gateways; where the folder cannot be written, one for this process alone."""
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
    """All of this machine that live, but one."""
    found: list[Peer] = []
    here = socket.gethostname()
    for path in sorted((lake.path / FOLDER).glob("*.json")):
        if path == but:
            continue
        try:
            said = json.loads(path.read_bytes())
        except FileNotFoundError:
            continue
        if said.get("host", here) != here:
            continue
        if not Process(said["pid"], said.get("started", 0), said.get("boot", "")).lives():
            path.unlink(missing_ok=True)
            continue
        listens = frozenset((host, port) for host, port in said.get("listens", ()))
        found.append(Peer(said["pid"], said["port"], said["token"], path, listens))
    return found
