"""The lists of the files of state that engines have uploaded into a bucket (ADR 0025).

    state/uploaded/<n>      {"folder": …, "state": ids of entry n, "files": names}

The entries after n name it, and the entries themselves have the changes since then.
"""

from __future__ import annotations

from typing import Any

from tailgate.lake.log.entry import Header
from tailgate.lake.log.state_files import STATE
from tailgate.lake.store import Store, documents

UPLOADED = "uploaded"  # in `Header.extra`: the newest entry whose state has been uploaded
LISTS = f"{STATE}/{UPLOADED}"


def name_of(n: int) -> str:
    """Returns the name of the list of entry n."""
    return f"{LISTS}/{n}"


def read(store: Store, header: Header) -> dict[str, Any] | None:
    """Returns the list that an entry names, or None."""
    uploaded = header.extra.get(UPLOADED)
    return None if uploaded is None else documents.read(store, name_of(uploaded))
