"""Replaces a Java class of the engine in a running JVM, to test the effect of a defect."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testing.engine_process import EngineProcess

JAVA = Path(__file__).parents[3] / "tailgate" / "engine" / "java"
SOURCES = JAVA / "src" / "main" / "java" / "tailgate"


@contextmanager
def mutated(engine: EngineProcess, folder: Path, name: str, old: str, new: str) -> Iterator[None]:
    """Replaces `old` by `new` in the class `name`, until the block or the JVM ends.

    The class must keep its fields and method signatures.
    """
    (source,) = SOURCES.rglob(f"{name}.java")
    text = source.read_text()
    assert text.count(old) == 1, f"{name} has {text.count(old)} times: {old}"
    pid = engine.jvm
    _replace(pid, folder, name, text.replace(old, new))
    try:
        yield
    finally:
        if Path(f"/proc/{pid}").exists() and engine.jvm == pid:
            _replace(pid, folder, name, text)


def _replace(pid: int, folder: Path, name: str, text: str) -> None:
    agent = folder / "agent.jar"
    if not agent.exists():
        manifest = folder / "manifest"
        manifest.write_text("Agent-Class: tailgate.Mutant\nCan-Redefine-Classes: true\n")
        classes = JAVA / "target" / "test-classes"
        subprocess.run(["jar", "cfm", agent, manifest, "-C", classes, "tailgate/Mutant.class"], check=True)
    argument = folder / f"{name}.replacement"
    argument.write_text(f"{name}.java\n{text}")
    process = subprocess.run(["jcmd", str(pid), "JVMTI.agent_load", agent, str(argument)], check=True, capture_output=True, text=True)
    assert "return code: 0" in process.stdout, process.stdout
