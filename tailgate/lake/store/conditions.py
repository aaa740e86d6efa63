"""A check that a store obeys the conditions of requests. One that ignores them would permit two engines."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tailgate.lake.errors import ObjectNotInPrerequisiteState
from tailgate.lake.store.interface import Store

AT_ONCE = 32  # requests; a store that ignores conditions, or checks them too early, lets several of them succeed


def check(store: Store) -> None:
    """Creates one name, and replaces one version, many times at once. Raises 55000 unless one of them succeeds."""
    name = f"fencing/conditions/{uuid.uuid4().hex}"
    try:
        _check(store, "If-None-Match", lambda i: store.create(name, [b"%d" % i]))
        _, version = store.get_version(name)
        _check(store, "If-Match", lambda i: store.replace(name, b"replaced by %d" % i, version))
    finally:
        store.discard([name])


def _check(store: Store, condition: str, request: Callable[[int], bool]) -> None:
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="conditions") as threads:
        succeeded = sum(threads.map(request, range(AT_ONCE)))
    if succeeded != 1:
        raise ObjectNotInPrerequisiteState(
            f"the object store of {store.location('')} ignores the condition {condition} of PUT requests",
            detail=f"Of {AT_ONCE} requests at once of which one can succeed, {succeeded} succeeded.",
            hint="Use a store with conditional writes, as Amazon S3 has. Without them, two engines could write one lake.",
        )
