"""`tailgate verify` accepts a lake that is complete, also after random histories, and finds each kind of damage."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tailgate.cli import main
from tailgate.lake.folder import Lake
from tailgate.lake.readers.verification import findings
from tailgate.lake.tables import delta
from tailgate.lake.tables.stored_relations import COUNT, table_name
from tailgate.lake.writer.log_writer import open_epoch
from tailgate.lake.writer.rounds import Follower
from tests.lake.life import BAG, KEYED, STEPS, Life, short_history
from tests.lake.relations import History, add, changes, table_path


def problems(lake: Lake) -> list[str]:
    return [f"{f.checked}: {f.problem}" for f in findings(Lake(lake.path)) if f.problem is not None]


@pytest.fixture
def written(lake: Lake) -> Lake:
    """Returns a lake with two relations, three rounds, and an entry after the last one."""
    writer = open_epoch(lake)
    history = History()
    add(writer, KEYED, BAG)
    follower = Follower(lake, writer.epoch)
    for n in range(3):
        history.append(writer, {r.id: changes(r, [([n, "x"], 1)]) for r in (KEYED, BAG)})
        follower.round()
    history.append(writer, {KEYED.id: changes(KEYED, [([0, "x"], -1), ([0, "y"], 1)])})
    writer.close()
    return lake


def test_a_complete_lake(written: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    assert problems(written) == []
    assert main(["verify", "--data", str(written.path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "problems: 0"


def test_random_histories(lake: Lake, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    short_history(monkeypatch)
    chance = random.Random(seed)
    life = Life(lake.path, seed)
    for _ in range(60):
        life.step(chance.choice(STEPS))
    assert problems(lake) == []


def test_a_missing_entry(written: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    newest = written.log.newest()
    assert newest is not None
    path = written.path / "log" / str(newest.n)
    path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
    assert "cannot be read" in problems(written)[0]
    assert main(["verify", "--data", str(written.path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] != "problems: 0"


def test_a_missing_file_of_a_table(written: Lake) -> None:
    for path in table_path(written, BAG.id).glob("*.parquet"):
        path.unlink()
    assert problems(written) == [problem for problem in problems(written) if problem.startswith("the table of r16385: a file that the log")]
    assert len(problems(written)) == 1


def test_a_table_with_another_row(written: Lake) -> None:
    """Replaces the newest version of a table by one with a further row, as a wrong merge would."""
    path = table_path(written, BAG.id)
    newest = max(delta.commits(delta.log_files(written.store, table_name(BAG.id))))
    (path / "_delta_log" / f"{newest:020}.json").unlink()
    write_deltalake(str(path), pa.table({"a": pa.array([9], pa.int64()), "b": ["z"], COUNT: pa.array([1], pa.int64())}), mode="append")
    assert any("rows differ between the table at version" in problem for problem in problems(written))


def test_changes_that_no_state_allows(written: Lake) -> None:
    """A row is removed twice, and a key is added twice."""
    writer = open_epoch(written)
    writer.append(((BAG.id, changes(BAG, [([1, "x"], -2)])), (KEYED.id, changes(KEYED, [([1, "q"], 1)]))))
    writer.close()
    first, second = problems(written)
    assert "r16384: 1 keys occur more than once" in first
    assert "r16385: 1 rows are removed more often than they were added" in second
