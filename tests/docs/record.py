"""`python -m tests.docs.record PAGE.md …`: writes the current output into pages of docs and examples.

It prints where PostgreSQL's output differs. Review the diff before the commit: a page must say what
is correct, which may not be what happened.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from testing.postgres import Postgres
from tests.docs.oracle import differences
from tests.docs.pages import Example, Part, parts, recorded, written
from tests.docs.system import System
from tests.docs.test_pages import EXAMPLES

SLOW_S = 1.0  # slower statements are reported


def record(system: System, page: Path) -> list[Part]:
    page_parts: list[Part] = []
    terminal = system.terminal()
    for part in list(parts(page.read_text())):
        began = time.monotonic()
        printed = system.run(terminal, part, page.parent)
        if (took := time.monotonic() - began) > SLOW_S and isinstance(part, Example):
            print(f"{page.name}, line {part.line}: {took:.1f} s", file=sys.stderr, flush=True)
        page_parts.append(recorded(part, printed) if isinstance(part, Example) else part)
    terminal.close()
    system.clear()
    page.write_text(written(page_parts))
    return page_parts


def main(pages: list[Path]) -> None:
    server = Postgres()
    server.start()
    try:
        with tempfile.TemporaryDirectory(prefix="tailgate-docs-") as folder, System(Path(folder)) as system:
            for page in pages:
                if page.resolve() in EXAMPLES:
                    record(system, page)
                    continue
                for difference in differences(server.dsn, record(system, page)):
                    print(f"{page.name}, {difference}\n")
    finally:
        server.stop()


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
