"""The program of Java, and the options for archives of classes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tailgate.lake.host import java


def test_an_archive_that_was_not_written_is_not_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "classes.jsa"
    assert java.archive_options(file) == []
    java.do_without(file, "Kafka", "no space")
    assert capsys.readouterr().out == "setup: no space; Kafka starts without an archive of classes\n"
    assert file.exists()  # `make setup` takes it for done
    assert java.archive_options(file) == []
    subprocess.run([java.program(), f"-XX:ArchiveClassesAtExit={file}", *java.QUIET, "-version"], check=True, capture_output=True)
    assert java.archive_options(file) == [f"-XX:SharedArchiveFile={file}", *java.QUIET]
    subprocess.run([java.program(), *java.archive_options(file), "-Xshare:on", "-version"], check=True, capture_output=True)


def test_java_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="java is not on PATH and JAVA_HOME is not set: Java 17 or newer is needed"):
        java.program()
