"""Types the commands and statements of docs/object-store.md, in order, and runs its program."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tailgate.embedded.children import free_port
from tailgate.lake.store.bucket import BucketStore
from testing.engine_process import until
from tests.docs.pages import DOCS, Example, parts, same
from tests.docs.test_quickstart import PORT, ROOT, Program, Session, commands, terminal

PAGE = DOCS / "object-store.md"
LOCATION = "s3://bucket/shop"
PROGRAM = re.compile(r"```python\n(.*?)```", re.DOTALL)
PROGRAM_S = 60.0


@pytest.mark.spark
def test_a_reader_who_types_the_page(tmp_path: Path, bucket: BucketStore) -> None:
    port = str(free_port())
    text = PAGE.read_text().replace(PORT, port).replace(LOCATION, bucket.location(""))
    up: Program | None = None
    session: Session | None = None
    try:
        for typed in commands(list(parts(text))):
            if isinstance(typed, Example):
                assert session is not None
                printed = session.type(typed.statement, typed.data)
                assert same(typed.output, printed, typed.ordered), f"{PAGE}:{typed.line}: {typed.statement}\n" + "\n".join(printed)
                continue
            assert isinstance(typed, tuple)
            words = shlex.split(typed[0])
            if words[0] == "psql":
                session = terminal(words, tmp_path)
            else:
                up = Program([str(ROOT / ".venv/bin" / words[0]), *words[1:], "--listen", f"127.0.0.1:{port}"], tmp_path)
                assert [up.line() for _ in typed[1]] == list(typed[1])
        (program,) = PROGRAM.findall(text)
        until(lambda: _output(program) == "[('bob', 2), ('ann', 6)]\n")
    finally:
        for each in (session, up):
            if each is not None:
                each.close()


def _output(program: str) -> str:
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PROGRAM_S, check=False)
    return result.stdout + result.stderr
