"""Maintenance of the Delta tables between rounds: Delta checkpoints, removal of old versions, and compaction.

    after each round, the table with most commits since its maintenance, if these are 16 or more,
    and the next table in turn; a later engine continues there
       commits since Delta's checkpoint ≥ 50  ──► a new Delta checkpoint     (opening a table reads the commits after it)
       small files ≥ 16                       ──► one file (of a large table: `large.fold`)
       files that no kept version uses        ──► removed five minutes after maintenance, by any engine, first saw them unused
       Delta's log before the oldest version  ──► removed in the same way
    in each sweep: tables of dropped relations ──► removed in the same way, when no checkpoint names them

The kept versions are those that tables/checkpoints names, and the newest. Delta's VACUUM and log
clean-up go by age alone, and asking delta-rs to keep a version costs 50 ms each (measured), so this
module does both by name.

An engine that was paused and replaced may later remove files that it chose before. This is harmless.
A file is chosen only if a commit in the table's log removed it, or if it is a leftover from before
this engine's first commit to the table. After that commit, earlier engines cannot commit their
leftovers. No later version needs either kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from tailgate.lake.folder import Lake
from tailgate.lake.tables import checkpoints, delta
from tailgate.lake.tables.checkpoints import Checkpoint
from tailgate.lake.tables.merging import FILE_BYTES
from tailgate.lake.tables.stored_relations import FOLDER, relations, table_name
from tailgate.lake.writer import open_tables, sweep_state

COMMITS_MAX = 50  # commits without a Delta checkpoint; a merge takes 9 ms after 10 commits and 33 ms after 100 (measured)
COMMITS_DUE = 16  # commits after which a table is maintained before its turn, so that its unneeded files do not wait for all other tables
SMALL_BYTES = FILE_BYTES // 4
SMALL_FILES = 16
SUFFIXES = (".parquet", ".bin")  # of data files, and of files with deletion vectors
GRACE_S = 300.0  # from when no kept version uses a file until it is removed: a reader may still have it open


@dataclass(slots=True)
class Files:
    """The data files of a table, and the files with their deletion vectors.

    - `version`: the last version whose commit was read.
    - `by_version`: the files of each kept version, and of `version`.
    - `removed`: files that no version after `version` uses, until they are removed from the store.
    """

    version: int
    by_version: dict[int, frozenset[delta.LogicalFile]]
    removed: set[str]


class Tender:
    """The maintenance by one engine: the files of each table, beside what every engine continues (`SweepState`)."""

    def __init__(self, lake: Lake, epoch: int) -> None:
        self.lake = lake
        self.epoch = epoch
        self._tables = open_tables.of(lake, epoch)
        self._files: dict[str, Files] = {}
        self._state = sweep_state.of(lake)

    def tend(self) -> None:
        """Maintains the next table and the busiest one, of those in the newest checkpoint."""
        lists = checkpoints.listed(self.lake)
        if not lists:
            return
        names = [*sorted(str(id) for id in lists[-1].versions), checkpoints.NAME]
        self._files = {name: files for name, files in self._files.items() if name in set(names)}
        self._state.table = next((n for n in names if n > self._state.table), names[0])
        for name in dict.fromkeys([self._state.table, *self._busiest(lists[-1])]):
            try:
                self.tend_one(name, lists)
            except BaseException:
                self._tables.close_one(table_name(name))
                raise

    def _busiest(self, newest: Checkpoint) -> list[str]:
        """Returns the table with most commits since its maintenance if these are COMMITS_DUE or more, as a list of at most one name."""
        versions = {str(id): version for id, version in newest.versions.items()}
        maintained = self._state.maintained = {n: v for n, v in self._state.maintained.items() if n in versions or n == checkpoints.NAME}
        commits = {n: version - maintained.get(n, 0) for n, version in versions.items()}
        return [n for n in sorted(commits, key=commits.__getitem__)[-1:] if commits[n] >= COMMITS_DUE]

    def tend_one(self, name: str, lists: list[Checkpoint]) -> None:
        """Maintains one table: compacts files, writes a Delta checkpoint, removes old files and logs."""
        path = table_name(name)
        table = self._tables.get(path)
        if (large := self._tables.open_large(path)) is not None:
            large.fold(delta.transactions(self.epoch))
        elif name != checkpoints.NAME and not delta.has_vectors(table):
            compact(table, self.epoch)
        log = delta.log_files(self.lake.store, path)
        if table.version() - max(delta.delta_checkpoints(log), default=-1) >= COMMITS_MAX:
            delta.committing(table, table.create_checkpoint)
            log = delta.log_files(self.lake.store, path)
        listed = set() if name == checkpoints.NAME else {c.versions[int(name)] for c in lists if int(name) in c.versions}
        versions = listed | {table.version()}
        self._vacuum(name, path, table, versions)
        if listed or name == checkpoints.NAME:  # the commits of a table name its files, which are not durable before it is listed
            self._clean_log(path, log, min(versions))
        self._state.maintained[name] = table.version()

    def _vacuum(self, name: str, path: str, table: DeltaTable, versions: set[int]) -> None:
        """Removes data files that no kept version uses."""
        if name in self._files:
            files = self._files[name]
            self._follow(files, path, table.version(), versions)
        elif self._tables.is_written(path):
            names = [*self.lake.store.names(path), *(f"{delta.ROWS}/{file}" for file in self.lake.store.names(f"{path}/{delta.ROWS}"))]
            existing = {file for file in names if file.endswith(SUFFIXES)}
            files = self._files[name] = Files(table.version(), {}, existing)
        else:
            return
        files.by_version = {v: files.by_version[v] if v in files.by_version else self._files_at(path, table, v) for v in versions}
        needed = delta.file_names_of(frozenset[delta.LogicalFile]().union(*files.by_version.values()))
        unneeded = [f"{path}/{file}" for file in files.removed - needed]
        folders = (path, f"{path}/{delta.ROWS}")
        due = [file for folder in folders for file in self._due(folder, (n for n in unneeded if n.rpartition("/")[0] == folder))]
        self.lake.store.discard(due)
        files.removed -= {file.removeprefix(f"{path}/") for file in due}

    def _follow(self, files: Files, path: str, upto: int, versions: set[int]) -> None:
        """Adds the commits up to a version to the files of a table. A commit is read once; it takes a request in a bucket."""
        current = files.by_version[files.version]
        for version in range(files.version + 1, upto + 1):
            added, removed = delta.changed_files(self.lake.store, path, version)
            current = current - removed | added
            files.removed |= delta.file_names_of(removed)
            if version in versions:
                files.by_version[version] = current
        files.version = upto

    def _files_at(self, path: str, table: DeltaTable, version: int) -> frozenset[delta.LogicalFile]:
        at = table if version == table.version() else delta.table(self.lake.store, path, version)
        return delta.files_at(self.lake.store, path, at)

    def _clean_log(self, path: str, files: list[str], oldest: int) -> None:
        """Removes from Delta's log what no version from `oldest` on needs: all before the newest checkpoint at or before `oldest`."""
        store, log = self.lake.store, f"{path}/{delta.LOG}"
        begin = max((v for v in delta.delta_checkpoints(files) if v <= oldest), default=0)
        due = self._due(log, (file for version, file in delta.versioned(files) if version < begin))
        if due:
            store.sync([log, *(file for version, file in delta.versioned(files) if version == begin)])
        store.discard(due)

    def _due(self, folder: str, unneeded: Iterable[str]) -> list[str]:
        """Returns those of a folder's unneeded objects that have been unneeded for GRACE_S seconds."""
        return self._state.due(self.lake, folder, unneeded, 1000 * GRACE_S)


def remove_dropped(lake: Lake) -> None:
    """Removes the tables of dropped relations when no checkpoint names them."""
    names = lake.store.names(FOLDER)  # before the catalog is read, so that it has their relations
    referenced = set(relations(lake.catalog())).union(*(c.versions for c in checkpoints.listed(lake)))
    dropped = (table_name(name) for name in names if name.isdecimal() and int(name) not in referenced)
    state = sweep_state.of(lake)
    for table in state.due(lake, FOLDER, dropped, 1000 * GRACE_S):
        lake.store.discard_folder(table)
        state.forget(table)


def tend(lake: Lake, epoch: int) -> None:
    """Maintains one table. The next call continues with the next one."""
    tender = lake.cache.get(__name__)
    if tender is None or tender.epoch != epoch:
        tender = lake.cache[__name__] = Tender(lake, epoch)
    tender.tend()


def compact(table: DeltaTable, epoch: int) -> None:
    """Merges many small files into one. The rows stay the same, so the relation's transaction version does not change."""
    sizes = table.get_add_actions()["size_bytes"].to_pylist()
    if sum(size < SMALL_BYTES for size in sizes) >= SMALL_FILES:
        commit, hooks = delta.commit(epoch), delta.NO_HOOKS
        optimize, properties = table.optimize, delta.writer_properties(pa.schema(table.schema().to_arrow()))
        delta.committing(
            table,
            lambda: optimize.compact(
                target_size=FILE_BYTES, writer_properties=properties, commit_properties=commit, post_commithook_properties=hooks
            ),
        )
