"""Who serves this lake: gateways/<process id>.json names a gateway's address on loopback and the token that it asks for.

Written by its owner and removed at its end. A file whose process is gone is removed by whoever finds it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lake import files

if TYPE_CHECKING:
    from lake.folder import Lake

FOLDER = "gateways"


@dataclass(frozen=True, slots=True)
class Peer:
    """`pid`: of its process. `port`: of loopback."""

    pid: int
    port: int
    token: str
    path: Path


def announce(lake: Lake, name: str, port: int, token: str) -> Path:
    """The file to remove at the end; `name` tells gateways of one process apart."""
    folder = lake.path / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{name}.json"
    files.replace(path, json.dumps({"pid": os.getpid(), "port": port, "token": token}).encode())
    return path


def announced(lake: Lake, but: Path | None = None) -> list[Peer]:
    """All of this machine that live, but one."""
    found: list[Peer] = []
    for path in sorted((lake.path / FOLDER).glob("*.json")):
        if path == but:
            continue
        try:
            said = json.loads(path.read_bytes())
            os.kill(said["pid"], 0)
        except FileNotFoundError:
            continue
        except ProcessLookupError:
            path.unlink(missing_ok=True)
            continue
        except PermissionError:
            pass  # it lives, as another user
        found.append(Peer(said["pid"], said["port"], said["token"], path))
    return found
