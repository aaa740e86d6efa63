"""Makes an earlier entry the newest one of an image of a lake, in a folder.

    log, segments      entries up to n; those of its segment become objects of log/
    tables             back to the newest checkpoint up to n; the list of checkpoints has no later ones
    readers            sinks and subscriptions that have read more continue after n
    inbox              empty: writes without a tick up to n are not part of the lake at n

The state stays as it is. If it has no versions of entry n any more, an engine restores it.
"""

from __future__ import annotations

from tailgate.lake.errors import InvalidParameterValue
from tailgate.lake.folder import Lake
from tailgate.lake.log.log import name
from tailgate.lake.readers import holds
from tailgate.lake.tables import checkpoints, rollback

INBOX = "inbox"


def cut(image: Lake, n: int, epoch: int) -> None:
    """Cuts an image without entries after n, except in segments. `epoch`: of entry n. Raises 22023 if the tables are not readable at n."""
    _split_segment(image, n)
    _roll_tables_back(image, n, epoch)
    header = image.log.header(n)
    for reader in holds.readers(image):
        content = holds.read(image, reader) or {}
        limits = {"n": n, "time": header.time, "since": header.time}
        content |= {key: min(content[key], limit) for key, limit in limits.items() if key in content}
        holds.write(image, reader, content)
    for inbox_epoch in image.store.numbers(INBOX):
        image.store.discard_folder(f"{INBOX}/{inbox_epoch}")


def _split_segment(image: Lake, n: int) -> None:
    """Moves the entries up to n of its segment to log/, where the newest entry must be."""
    segment = next((segment for segment in image.log.segments.ranges() if segment.has(n)), None)
    if segment is not None:
        for number in range(segment.first, n + 1):
            content = image.log.segments.find(number)
            assert content is not None
            image.store.put(name(number), content.to_pybytes())
        image.store.discard([segment.name])


def _roll_tables_back(image: Lake, n: int, epoch: int) -> None:
    opened = checkpoints.opened(image.store)
    all = checkpoints.decoded(opened) if opened is not None else []
    readable = [checkpoint for checkpoint in all if checkpoint.n <= n]
    if all and not readable and image.log.first() > 1:
        raise InvalidParameterValue(f"entry {n} is older than the history of the lake", hint="RETAIN HISTORY FOR keeps a longer one.")
    image.store.discard_folder(checkpoints.TABLE)
    if readable:
        checkpoints.write(image, checkpoints.create(image), readable, epoch)
    rollback.roll_back(image.store)
