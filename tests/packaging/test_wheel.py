"""Tests the wheel's contents, and runs it in an empty virtual environment with a Java runtime instead of a JDK."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tailgate.embedded.children import free_port

ROOT = Path(__file__).parents[2]
# Modules of a JDK (after "jdk.") that a runtime lacks.
TOOLS = tuple("compiler hotspot.agent internal jartool javadoc jcmd jconsole jdeps jdi jlink jpackage jshell jstatd".split())
INSTALL_S = 600  # about 450 MB are downloaded
DEMO_S = 300


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Builds the wheel from a copy of the tracked files and from the jars of `make setup`."""
    subprocess.run(["make", "wheel"], cwd=ROOT, check=True, capture_output=True)
    (built,) = (ROOT / "dist").glob("tailgate-*.whl")
    return built


@pytest.mark.long
def test_it_installs_one_import_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"tailgate"}
    unwanted = [name for name in names if name.endswith((".java", ".jsa", ".class", "pom.xml")) or "/target/" in name or "/tests/" in name]
    assert not unwanted


@pytest.mark.long
def test_it_has_all_modules_and_jars(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
    tracked = subprocess.run(["git", "ls-files", "tailgate"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    needed = {name for name in tracked if name.endswith((".py", ".json", ".sql", ".zip", ".properties")) and "/java/" not in name}
    jars = {str(jar.relative_to(ROOT)) for jar in (ROOT / "tailgate" / "jars").rglob("*.jar")}
    assert {"tailgate/jars/tailgate.jar"} < jars
    assert not (needed | jars) - names


@pytest.mark.long
def test_the_demo_runs_from_it(wheel: Path, tmp_path: Path) -> None:
    """The demo uses neither this clone's environment, nor its jars, nor Maven, nor a JDK."""
    runtime, environment = tmp_path / "java", tmp_path / "venv"
    listed = subprocess.run(["java", "--list-modules"], check=True, capture_output=True, text=True).stdout.split()
    modules = [name.split("@")[0] for name in listed]
    runtime_modules = [name for name in modules if not name.removeprefix("jdk.").startswith(TOOLS)]
    subprocess.run(["jlink", "--add-modules", ",".join(runtime_modules), "--output", runtime], check=True, capture_output=True)
    subprocess.run([runtime / "bin" / "java", "-Xshare:dump"], check=True, capture_output=True)  # as packages of runtimes have it
    assert not (runtime / "bin" / "javac").exists()
    assert not (runtime / "bin" / "jcmd").exists()
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run([environment / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True, timeout=INSTALL_S)

    inherited = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    clean = {**inherited, "PATH": f"{environment}/bin:{runtime}/bin:/usr/bin:/bin", "JAVA_HOME": str(runtime)}
    folder = tmp_path / "empty"
    folder.mkdir()
    python = environment / "bin" / "python"
    module_file = subprocess.run(
        [python, "-c", "import tailgate; print(tailgate.__file__)"], cwd=folder, env=clean, capture_output=True, text=True
    )
    assert Path(module_file.stdout.strip()).is_relative_to(environment)

    words = [environment / "bin" / "tailgate", "demo", "--listen", f"127.0.0.1:{free_port()}", "--for", "15", "--check"]
    demo = subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, timeout=DEMO_S)
    assert demo.returncode == 0, demo.stdout + demo.stderr

    for module, name in (("tailgate.engine.runtime.classes", "classes.jsa"), ("tailgate.embedded.kafka_classes", "kafka.jsa")):
        made = subprocess.run([python, "-m", module], cwd=folder, env=clean, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        (archive,) = environment.rglob(f"tailgate/jars/{name}")
        assert archive.stat().st_size > 10 << 20
