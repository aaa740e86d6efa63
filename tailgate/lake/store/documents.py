"""Small objects that contain one JSON object each."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeAlias

from tailgate.lake.store.interface import Store

Document: TypeAlias = dict[str, Any]


def read(store: Store, name: str) -> Document | None:
    """Returns a document, or None if it does not exist."""
    try:
        return _decoded(bytes(store.get(name)))
    except FileNotFoundError:
        return None


def read_version(store: Store, name: str) -> tuple[Document | None, str | None]:
    """Returns a document and its version, for `replace`. Both are None if it does not exist."""
    try:
        content, version = store.get_version(name)
    except FileNotFoundError:
        return None, None
    return _decoded(content), version


def write(store: Store, name: str, document: Mapping[str, Any]) -> None:
    """Creates or replaces a document that has one writer."""
    store.put(name, _encoded(document))


def replace(store: Store, name: str, document: Mapping[str, Any], version: str | None) -> bool:
    """Replaces a document, or creates it if `version` is None. Returns False if another process was faster."""
    return store.replace(name, _encoded(document), version)


def renew(store: Store, name: str, holds: Callable[[Document], bool]) -> bool:
    """Renews a lease on a document if `holds` is true of it. Returns whether it is."""
    return store.renew(name, lambda content: holds(_decoded(content)))


def renewed(store: Store, name: str) -> tuple[Document, Hashable] | None:
    """Returns a document with a lease, and a value that differs after each renewal; None if the document does not exist."""
    try:
        content, renewal = store.renewed(name)
    except FileNotFoundError:
        return None
    return _decoded(content), renewal


def update(store: Store, name: str, change: Callable[[Document | None], Mapping[str, Any] | None]) -> None:
    """Replaces a document by what `change` makes of it, which is None if it stays. Repeats this if another process was faster."""
    replaced = False
    while not replaced:
        before, version = read_version(store, name)
        after = change(before)
        replaced = after is None or replace(store, name, after, version)


def _decoded(content: bytes) -> Document:
    document: Document = json.loads(content)
    return document


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document).encode() + b"\n"
