"""A real PostgreSQL 15 for tests, out of the jar that `make setup` brings.

    .jars/postgres/*.jar ── *.txz inside ──► .jars/postgres/server/ (once) ──► a cluster in a folder of its own, per session

The server refuses to run as root, so then it runs as another user that every machine has, with its programs and its data
below a folder in the system's temporary one, which that user may pass.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from embedded.children import Child, free_port

JARS = Path(__file__).parent.parent / ".jars" / "postgres"
SERVED_BY = ("postgres", "nobody")  # who runs it when we are root; the first that exists
READY = "database system is ready to accept connections"
INITDB_TIMEOUT = timedelta(seconds=60)  # 1 s measured
READY_TIMEOUT = timedelta(seconds=30)  # 0.2 s measured
STOP_GRACE = timedelta(seconds=1)  # it waits for connections that a test left open, and its data is thrown away anyway


class Postgres:
    """A server on 127.0.0.1 with one superuser `postgres` that needs no password; `start`, then `stop`, which removes it all.

    `programs`: the folder of another server's, instead of the jar's.
    """

    def __init__(self, settings: dict[str, str] | None = None, programs: Path | None = None) -> None:
        self.port = free_port()
        self._settings = settings or {}
        self._programs = programs
        self._folder = Path(tempfile.mkdtemp(prefix="tailgate-postgres-"))
        self._child: Child | None = None
        self._user = other_user() if os.geteuid() == 0 else None

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def child(self) -> Child:
        """The server's process; known after `start`."""
        assert self._child is not None
        return self._child

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def start(self) -> None:
        data = self._folder / "data"
        programs = self._programs or _unpack(self._folder / "server" if self._user else JARS / "server")
        if self._user:
            shutil.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
        self._folder.chmod(0o700)
        initdb = [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        made = subprocess.run(
            self._as_user(initdb), cwd=self._folder, capture_output=True, text=True, timeout=INITDB_TIMEOUT.total_seconds(), check=False
        )
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{made.stdout}{made.stderr}")
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "timezone": "UTC",
            **self._settings,
        }
        command = [str(programs / "postgres"), "-D", str(data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        self._child = Child("PostgreSQL", self._as_user(command), log=self._folder / "log", folder=self._folder, announces=READY)
        self._child.wait_ready(self._child.announced, READY_TIMEOUT)

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(STOP_GRACE)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _as_user(self, command: list[str]) -> list[str]:
        return command if self._user is None else as_user(self._user, command)


def as_user(user: pwd.struct_passwd, command: list[str]) -> list[str]:
    """The command, run by that user. It changes no environment and execs, so signals reach the command itself."""
    # util-linux and Debian's base have setpriv
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *command]


def other_user(*preferred: str) -> pwd.struct_passwd:
    """Who runs a database server that refuses to run as root."""
    for name in (*preferred, *SERVED_BY):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError(f"a database server refuses to run as root, and none of the users {', '.join(SERVED_BY)} is there")


def _unpack(folder: Path) -> Path:
    """The folder of the server's programs, unpacked below `folder` when they are not there yet."""
    programs = folder / "bin"
    if programs.is_dir():
        return programs
    jars = sorted(JARS.glob("embedded-postgres-binaries-*.jar"))
    if not jars:
        raise FileNotFoundError(f"no PostgreSQL in {JARS}: `make setup` brings it")
    fresh = Path(tempfile.mkdtemp(dir=folder.parent))
    with zipfile.ZipFile(jars[-1]) as jar:
        (inside,) = (name for name in jar.namelist() if name.endswith(".txz"))
        with jar.open(inside) as packed, tarfile.open(fileobj=packed, mode="r:xz") as archive:
            _extract(archive, fresh)
    fresh.chmod(0o755)
    try:
        fresh.rename(folder)  # whole or not at all: another session may be doing the same
    except OSError:
        shutil.rmtree(fresh)
    return programs


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    extract: Callable[..., None] = archive.extractall
    if hasattr(tarfile, "data_filter"):
        extract(folder, filter="tar")
    else:  # before Python 3.10.12
        extract(folder)
