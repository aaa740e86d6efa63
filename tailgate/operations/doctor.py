"""Checks of the environment in which Tailgate's processes run, for `tailgate doctor`. Each problem has a hint."""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from cryptography import x509

from tailgate.lake import clients, peers
from tailgate.lake.catalog.secrets import Vault
from tailgate.lake.errors import TailgateError
from tailgate.lake.folder import WORK_DIR, Lake
from tailgate.lake.host import java, ports
from tailgate.lake.store import StoreUnavailable, locations
from tailgate.operations import sign_in
from tailgate.operations.data_folder import Location
from tailgate.operations.settings import addresses as address_types
from tailgate.operations.watch.checks import CLOCK_AHEAD_MAX_MS, DISK_FREE_MIN

JAVA_MIN = 17
JAVA_S = 30.0
FILES_MIN = 4_096  # open files of a process: RocksDB, connections
CONNECT_S = 3.0
CERTIFICATE_DAYS_MIN = 30
EMBEDDED = "embedded"
EXACT = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?==([\w.]+)$")  # a requirement of one version
Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Environment:
    """The settings that the checks need: the lake and its folder on this machine, addresses, and the certificate."""

    data: Location
    listen: str
    kafka: str | None = None
    registry: str | None = None
    certificate: Path | None = None
    work_dir: Path | None = None
    vault: Vault = field(default_factory=Vault)

    @property
    def folder(self) -> Path:
        """Returns the folder of this machine that the processes write."""
        return self.data if isinstance(self.data, Path) else self.work_dir or WORK_DIR


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. `hint`: what to do if there is a problem, else None."""

    check: str
    result: str
    hint: str | None = None

    @property
    def ok(self) -> bool:
        return self.hint is None


def findings(environment: Environment) -> Iterator[Finding]:
    """Yields the result of each check."""
    yield _java()
    yield _versions()
    yield _files()
    yield from _folder(environment.folder)
    store = None if isinstance(environment.data, Path) else _store(environment.data)
    if store is not None:
        yield store
    if store is None or store.ok:
        yield from _clock(environment.data)
    yield _port(environment)
    for what, address in sorted(_addresses(environment)):
        yield _reachable(what, address)
    for server in sorted(_of_lake(environment.data, lambda lake: list(sign_in.servers(lake.catalog()))), key=repr):
        yield _signed_in(server, environment.vault)
    if environment.certificate is not None:
        yield _certificate(environment.certificate)


def _java() -> Finding:
    program = java.found()
    hint = f"Install Java {JAVA_MIN} or newer, and set JAVA_HOME or PATH."
    if program is None:
        return Finding("java", "java is not on PATH and JAVA_HOME is not set", hint)
    try:
        output = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=JAVA_S, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        return Finding("java", f"{program} does not run: {type(error).__name__}", hint)
    match = re.search(r'version "(\d+)', output)
    version = int(match[1]) if match else 0
    return Finding("java", f"{program}, version {version}", None if version >= JAVA_MIN else hint)


def _versions() -> Finding:
    """Compares installed packages with the versions that Tailgate was tested with, where it requires exactly one."""
    required = [match for text in metadata.requires("tailgate") or () if "extra ==" not in text and (match := EXACT.match(text))]
    others = []
    for name, version in (match.groups() for match in required):
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed = "missing"
        if installed != version:
            others.append(f"{name} is {installed} instead of {version}")
    hint = "Install Tailgate again in an empty environment: pip install tailgate." if others else None
    return Finding("versions", "; ".join(others) or f"{len(required)} packages have the required versions", hint)


def _store(location: str) -> Finding:
    """Checks that a bucket can be reached and written, and that it obeys conditions."""
    try:
        locations.opened(location)
    except (TailgateError, StoreUnavailable) as error:
        return Finding(
            "object store", f"{location}: {error}", "Check the bucket, the endpoint and the credentials: AWS_ENDPOINT_URL, AWS_…"
        )
    return Finding("object store", f"{location} can be written and obeys conditions")


def _clock(data: Location) -> Iterator[Finding]:
    """Compares the clock with the newest entry of the log: a clock that was set back is behind it."""
    newest = Lake(data).log.newest() if Lake.exists(data) else None
    if newest is not None:
        ahead_s = (newest.time - time.time_ns() // 1_000_000) / 1000
        hint = None if ahead_s * 1000 <= CLOCK_AHEAD_MAX_MS else "Correct the clock, for example with NTP: it was set back."
        yield Finding("clock", f"the log is {max(0.0, ahead_s):.0f} s ahead of the clock", hint)


def _files() -> Finding:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = soft == resource.RLIM_INFINITY or soft >= FILES_MIN
    return Finding(
        "open files", f"at most {soft} per process", None if enough else f"Raise the limit to {FILES_MIN}: ulimit -n {FILES_MIN}."
    )


def _folder(data: Path) -> Iterator[Finding]:
    folder = data if data.exists() else next(parent for parent in data.resolve().parents if parent.exists())
    disk = shutil.disk_usage(folder)
    hint = None if disk.free / disk.total >= DISK_FREE_MIN else "Free space, or choose another --data: ticks fail when the disk is full."
    yield Finding("disk", f"{disk.free / disk.total:.0%} free", hint)
    writable = os.access(folder, os.W_OK | os.X_OK)
    hint = None if writable else "Choose another --data, or run as the owner of the folder."
    yield Finding("data folder", f"{data} is {'' if writable else 'not '}writable", hint)
    if data.exists():
        mode = stat.S_IMODE(data.stat().st_mode)
        hint = None if not mode & 0o077 else f"Other users can open it: chmod 700 {data}."
        yield Finding("permissions", f"{data} has mode {mode:04o}", hint)


def _port(environment: Environment) -> Finding:
    """Checks that nothing else listens at the address. Gateways of the same lake may share it."""
    host, _, port = environment.listen.rpartition(":")
    processes = [
        process for process in ports.holders(int(port)) if process.data is None or _resolved(process.data) != _resolved(environment.data)
    ]
    if any(int(port) == listen[1] for peer in _gateways(environment.data) for listen in peer.listens):
        processes = []
    if processes:
        return Finding(
            "port", f"port {port} is in use by {' and '.join(map(str, processes))}", "End this process, or choose another --listen."
        )
    return Finding("port", f"port {port} of {host} is free, or a gateway of this data folder has it")


def _resolved(data: Location) -> Location:
    return data.resolve() if isinstance(data, Path) else data.rstrip("/")


def _gateways(data: Location) -> list[peers.Peer]:
    return _of_lake(data, peers.of_this_machine)


def _addresses(environment: Environment) -> set[tuple[str, str]]:
    """Returns each broker and registry of the settings and of the lake's items, with the word for it."""
    addresses = {(sign_in.BROKER, broker) for broker in _split(environment.kafka)}
    if environment.registry not in (None, EMBEDDED):
        addresses.add((sign_in.REGISTRY, environment.registry or ""))
    for server in _of_lake(environment.data, lambda lake: list(sign_in.servers(lake.catalog()))):
        addresses |= {(server.kind, address) for address in (_split(server.address) if server.kind == sign_in.BROKER else [server.address])}
    return addresses


def _split(brokers: str | None) -> list[str]:
    return [] if brokers in (None, EMBEDDED) else [broker.strip() for broker in str(brokers).split(",") if broker.strip()]


def _of_lake(data: Location, read: Callable[[Lake], list[Thing]]) -> list[Thing]:
    try:
        return read(Lake.open(data))
    except (TailgateError, StoreUnavailable):
        return []


def _signed_in(server: sign_in.Server, vault: Vault) -> Finding:
    """Checks a request with the credentials of an item."""
    shown = clients.shown_url(server.address) if server.kind == sign_in.REGISTRY else server.address
    try:
        reason = sign_in.failure(server.kind, server.address, vault.opened(server.access))
    except TailgateError as error:
        return Finding(f"{server.kind} sign-in", f"{shown}: {error.message}", error.hint or "Check the settings of the connection.")
    if reason is not None:
        return Finding(f"{server.kind} sign-in", f"{shown}: {reason}", "Check the user, the password and the certificates.")
    return Finding(f"{server.kind} sign-in", f"{shown} answers with the credentials of its items")


def _reachable(what: str, address: str) -> Finding:
    url = urlsplit(address if "://" in address else f"//{address}")
    host, port = url.hostname or "", url.port or {"https": 443, "http": 80}.get(url.scheme, 9092)
    shown = f"{host}:{port}"  # without the password of a URL
    try:
        socket.create_connection((host, port), CONNECT_S).close()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Finding(what, f"{shown} cannot be reached: {reason}", "Check the address, the network, and whether it runs.")
    return Finding(what, f"{shown} accepts connections")


def _certificate(path: Path) -> Finding:
    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError) as error:
        return Finding("certificate", f"{path} cannot be read: {type(error).__name__}", "Give a file in PEM.")
    days = (certificate.not_valid_after_utc - datetime.now(timezone.utc)).days
    return Finding("certificate", f"{path} is valid for {days} days", None if days >= CERTIFICATE_DAYS_MIN else "Renew the certificate.")


def add_doctor_options(command: argparse.ArgumentParser, listen: str) -> None:
    """Adds the options of `tailgate doctor`, except --data. `listen`: the default address of a gateway."""
    command.add_argument(
        "--listen",
        type=address_types.address,
        default=listen,
        metavar="HOST:PORT",
        help=f"where PostgreSQL clients will connect ({listen})",
    )
    command.add_argument("--kafka", metavar="ADDRESS", help="brokers to check, besides those of sources, sinks and connections")
    command.add_argument("--schema-registry", metavar="URL", help="a schema registry to check, besides theirs")
    command.add_argument("--secret-key-file", type=Path, metavar="FILE", help="the key of secrets, to sign in with them")
    command.add_argument("--tls-cert", type=Path, metavar="FILE", help="the certificate to check (PEM)")
    command.add_argument("--json", action="store_true", help="a JSON object per finding")
