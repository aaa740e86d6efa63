"""The structure of the SQL front end: no cycle of folders."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tailgate import sql
from tests.test_cycles import imports

ROOT = Path(sql.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def test_no_cycle_of_folders() -> None:
    """The modules of `sql` itself do not count: some are used by all folders, others use all.

    A folder whose table of contents imports the folders in it (`compute`, `statements`) counts as one with them.
    """
    folders: dict[Path, set[Path]] = {}
    modules = {".".join(["tailgate", "sql", *path.relative_to(ROOT).with_suffix("").parts]): path for path in FILES}
    for module, below in imports("sql").items():
        if module in modules:
            folder = _folder(modules[module])
            folders.setdefault(folder, set()).update({_folder(modules[m]) for m in below if m in modules} - {folder})
    del folders[ROOT]
    try:
        TopologicalSorter({folder: below - {ROOT} for folder, below in folders.items()}).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(str(folder.relative_to(ROOT)) for folder in error.args[1])) from None


def _folder(path: Path) -> Path:
    first = path.relative_to(ROOT).parts[0]
    return ROOT / first if first in ("compute", "statements") else path.parent
