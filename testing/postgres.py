"""A PostgreSQL 15 server for tests, from the jar that `make setup` fetches.

    .jars/postgres/*.jar ── *.txz inside ──► .jars/postgres/server/ (once) ──► a cluster in a temporary
                                                                               folder, per session

The server refuses to run as root. In that case another user that every machine has runs it, with its
programs and data in a temporary folder that this user can read.
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

from tailgate.embedded.children import Child, free_port

JARS = Path(__file__).parent.parent / ".jars" / "postgres"
SERVED_BY = ("postgres", "nobody")  # users that run the server if we are root; the first existing one
READY = "database system is ready to accept connections"
INITDB_TIMEOUT = timedelta(seconds=60)  # 1 s measured
READY_TIMEOUT = timedelta(seconds=30)  # 0.2 s measured
STOP_GRACE = timedelta(seconds=1)  # it waits for open connections, and its data is discarded anyway


class Postgres:
    """A server on 127.0.0.1 with the superuser `postgres`, who needs no password.

    `stop` removes its data. `programs` is the folder of another server's programs, instead of the
    jar's.
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
        """Returns the server's process; only valid after `start`."""
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
        result = subprocess.run(
            self._as_user(initdb), cwd=self._folder, capture_output=True, text=True, timeout=INITDB_TIMEOUT.total_seconds(), check=False
        )
        if result.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{result.stdout}{result.stderr}")
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
    """Returns the command as run by that user.

    It execs without changing the environment, so signals arrive.
    """
    # setpriv is part of util-linux and Debian's base
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", *command]


def other_user(*preferred: str) -> pwd.struct_passwd:
    """Returns the user that runs a server which refuses to run as root."""
    for name in (*preferred, *SERVED_BY):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError(f"a database server refuses to run as root, and none of the users {', '.join(SERVED_BY)} is there")


def _unpack(folder: Path) -> Path:
    """Returns the folder of the server's programs. Unpacks them below `folder` the first time."""
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
        fresh.rename(folder)  # atomic, because another session may do the same
    except OSError:
        shutil.rmtree(fresh)
    return programs


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    extract: Callable[..., None] = archive.extractall
    if hasattr(tarfile, "data_filter"):
        extract(folder, filter="tar")
    else:  # before Python 3.10.12
        extract(folder)
