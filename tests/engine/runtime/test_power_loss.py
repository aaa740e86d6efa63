"""Power is lost while an engine runs: it continues from the part of Spark's state that was synced.

For files of the lake, see tests/lake/test_power_loss.py.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from tailgate.lake.folder import Lake
from testing.engine_process import EngineProcess, rows
from tests.engine.runtime.inside import write_body

IMAGES = 4  # per folder: the first loses everything that may be lost, the others a random part
WRITES = 12
COMMITTED_S = 60.0
REBUILT = "state that the log names is missing or damaged"  # a message in the engine's log


def durable(state: Path, trace: Path) -> set[Path]:
    """Returns the files below `state` whose content and name were synced.

    Temporary files, .name.….tmp, are renamed when they are complete.
    """
    synced: dict[str, set[Path]] = {"content": set(), "name": set()}
    for line in trace.read_text().splitlines():
        what, _, text = line.partition(" ")
        path = Path(text)
        final = path.with_name(path.name[1:].split(".tmp")[0].rsplit(".", 1)[0]) if path.name.startswith(".") else path
        synced[what].add(final)
    return {f for f in state.rglob("*") if f.is_file() and f in synced["content"] and f in synced["name"]}


def lose(copied: Path, original: Path, durable_files: set[Path], chance: random.Random | None) -> int:
    """Removes the files that may be lost from a copy of the folder. Returns their number.

    With `chance`, each file is lost, truncated or kept at random.
    """
    lost = 0
    for file in (copied / "state").rglob("*"):
        if file.is_file() and original / file.relative_to(copied) not in durable_files:
            lost += 1
            what = "all" if chance is None else chance.choice(["all", "part", "none"])
            if what == "all":
                file.unlink()
            elif what == "part":
                with open(file, "r+b") as opened:
                    opened.truncate(chance.randrange(file.stat().st_size + 1))  # type: ignore[union-attr]
    return lost


def insert(engine: EngineProcess, key: int) -> None:
    """Writes a row and returns when it is committed."""
    lake = Lake(engine.data)
    body = write_body(lake.catalog().relation("t"), [(key, key % 3)])
    number = engine._request("/write", body)["number"]
    deadline = time.monotonic() + COMMITTED_S
    while (newest := lake.log.newest()) is None or newest.inbox < number:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def check(data: Path, keys: range) -> None:
    lake = Lake(data)
    assert rows(lake, "t") == Counter((k, k % 3) for k in keys)
    assert rows(lake, "v") == Counter(dict.fromkeys(Counter(k % 3 for k in keys).items(), 1))


@pytest.mark.long
def test_state_survives_a_loss_of_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    trace, data = tmp_path / "synced", tmp_path / "lake" / "data"
    data.parent.mkdir()
    monkeypatch.setenv("TAILGATE_JAVA_OPTIONS", f"-XX:TieredStopAtLevel=1 -Dtailgate.traced={trace}")
    engine = EngineProcess(data)
    engine.start()
    engine.execute("CREATE TABLE t (k int8 PRIMARY KEY, v int8)")
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT v, count(*) AS n FROM t GROUP BY v")
    for key in range(WRITES):
        insert(engine, key)
    engine.kill(jvm=True)
    durable_files = durable(data / "state", trace)
    assert durable_files
    for number in range(IMAGES):
        image = tmp_path / str(number) / "data"
        shutil.copytree(data, image)
        lost = lose(image, data, durable_files, random.Random(seed + number) if number else None)
        print(f"{len(durable_files)} files of the state are durable, {lost} may be lost")
        after = EngineProcess(image)
        after.start()
        check(image, range(WRITES))
        for key in range(WRITES, 2 * WRITES):
            insert(after, key)
        check(image, range(2 * WRITES))
        assert after.stop() == 0
        assert REBUILT not in (image.parent / "engine.log").read_text()
