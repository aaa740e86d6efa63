"""The engine's JVM: its module options, failed starts, and JAVA_HOME."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tailgate.engine.runtime.spark.jvm import MODULES, Jvm, JvmFailed


@pytest.mark.spark
def test_java_options_are_those_of_sparks_launcher(session: Any) -> None:
    options = session._jvm.org.apache.spark.launcher.JavaModuleOptions
    assert tuple(options.defaultModuleOptions().split()) == MODULES


def test_a_jvm_that_cannot_start_raises_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILGATE_JAVA_OPTIONS", "-Xmx1k")
    jvm = Jvm(tmp_path)
    with pytest.raises(JvmFailed, match="ended with 1"):
        jvm.attach()
    jvm.end()


def test_java_home_selects_the_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        Jvm(tmp_path / "scratch")
