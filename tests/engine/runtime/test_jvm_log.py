"""The log of the engine's JVM as JSON: one object per event, with the fields of the log of a process, and without texts of exceptions."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from tailgate import cli
from tailgate.engine.runtime.spark import jvm
from tailgate.lake.host import java
from tailgate.operations import logs
from tailgate.operations.settings import configuration
from tailgate.operations.settings.configuration import Value
from tailgate.operations.settings.process import ProcessSettings

PROGRAM = """
public class Events {
  public static void main(String[] arguments) {
    var log = org.slf4j.LoggerFactory.getLogger("org.apache.spark.Part");
    log.warn("below the level");
    log.error("two \\"lines\\"\\nof text", new IllegalStateException("row 42"));
    log.error("alone");
  }
}
"""
JAVA_S = 60.0


def output(form: str, folder: Path) -> str:
    """Returns the output of a program with the JVM's configuration for this form of the log."""
    program = folder / "Events.java"
    program.write_text(PROGRAM)
    classes = f"{Path(pyspark.__file__).parent}/jars/*"
    command = [java.program(), *jvm.logging_options(form), "-cp", classes, str(program)]
    return subprocess.run(command, capture_output=True, text=True, timeout=JAVA_S, check=True).stderr


def test_events_are_json(tmp_path: Path) -> None:
    text = output("json", tmp_path)
    first, second = (json.loads(line) for line in text.splitlines())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first.pop("time"))
    frames: list[dict[str, Any]] = first.pop("frames")
    assert frames[0] == {"class": "Events", "method": "main", "line": 6}
    common = {"level": "error", "process": "engine", "pid": os.getpid(), "logger": "org.apache.spark.Part"}
    assert first == {**common, "message": 'two "lines"\nof text', "error": "java.lang.IllegalStateException"}
    assert second.items() >= {**common, "message": "alone"}.items()
    assert second.keys() == {*common, "time", "message"}
    assert "row 42" not in text


def test_events_are_text(tmp_path: Path) -> None:
    text = output("text", tmp_path)
    assert 'ERROR Part: two "lines"\nof text\njava.lang.IllegalStateException: row 42' in text


def test_an_option_of_the_environment_takes_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one of a JVM's options with the same name counts."""
    option = "-Dlog4j2.configurationFile=other.properties"
    monkeypatch.setenv("TAILGATE_JAVA_OPTIONS", option)
    assert [word for word in jvm._options(tmp_path, jvm.Limits(), "json") if "log4j2.configurationFile" in word][-1] == option


@pytest.mark.spark
def test_the_form_changes(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGHUP changes the form in the running JVM, from the start of Spark on: also while the engine stands by."""
    from tailgate.engine.runtime import main

    form = ""
    settings = ProcessSettings(
        "engine", [Value("log", form, "")], lambda: [Value("log", form, "")], {c.name: c for c in configuration.commands(cli.parser())}
    )
    monkeypatch.setattr(main.spark, "start", lambda *_: session)
    main._spark(main.Options("", settings=settings), SimpleNamespace(scratch=Path()))  # type: ignore[arg-type]  # of a session that runs
    manager = session._jvm.org.apache.logging.log4j.LogManager
    for form in logs.FORMS:
        settings.reload()
        assert manager.getContext(False).getConfiguration().getConfigurationSource().getLocation() == str(jvm.LOGGING[form])
