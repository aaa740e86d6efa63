"""Tests the settings of commands: flags, variables of the environment, the configuration file, defaults."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tailgate import cli
from tailgate.engine import command as engine
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue
from tailgate.lake.store.bucket import BucketStore
from tailgate.operations import data_folder
from tailgate.operations.settings import configuration
from tailgate.operations.settings.configuration import Value
from tailgate.operations.watch import command as watch

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
FILE = """log = "json"
listen = "127.0.0.1:1"

[gateway]
listen = "127.0.0.1:2"
http-origin = ["https://a.example", "https://b.example"]
insecure = true
http-rate = 10
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values(words: str, **environment: str) -> dict[str, Value]:
    options = configuration.parse(cli.parser(), words.split(), environment)
    for value in options.values:
        assert getattr(options, value.name.replace("-", "_")) == value.value
    return {value.name: value for value in options.values}


def test_flags_come_before_variables_the_file_and_defaults(folder: Path) -> None:
    default = values("gateway")["listen"]
    assert (default.value, default.origin) == (cli.LISTEN, "default")
    (folder / "tailgate.toml").write_text(FILE)
    assert values("up")["listen"] == Value("listen", "127.0.0.1:1", "tailgate.toml:2")
    assert values("gateway")["listen"] == Value("listen", "127.0.0.1:2", "tailgate.toml:5")
    variables = {"TAILGATE_LISTEN": "127.0.0.1:3"}
    assert values("gateway", **variables)["listen"] == Value("listen", "127.0.0.1:3", "TAILGATE_LISTEN")
    assert values("gateway --listen 127.0.0.1:4", **variables)["listen"] == Value("listen", "127.0.0.1:4", "flag")


@pytest.mark.parametrize("command", ["up", "demo", "engine", "gateway", "sinks", "watch", "status", "doctor", "verify", "bundle --to b"])
def test_a_lake_in_a_bucket(command: str, bucket: BucketStore) -> None:
    """The file of ALTER SYSTEM is read from the bucket."""
    location = bucket.location("")
    options = configuration.parse(cli.parser(), [*command.split(), "--data", f"{location}/"], {})
    assert (options.data, options.work_dir) == (location, None)
    bucket.put("tailgate.auto.toml", b"[up]\nhistory = 5\n[engine]\nhistory = 5\n")
    if command in ("up", "engine"):
        history = values(f"{command} --data {location}")["history"]
        assert (history.value, history.origin.partition(":")[0]) == (5, "tailgate.auto.toml")


def test_an_engine_on_a_cluster_needs_a_working_folder_for_a_bucket(tmp_path: Path) -> None:
    data = "s3://bucket/lake"
    with pytest.raises(InvalidParameterValue, match=f"an engine on a cluster needs a working folder for a lake in {data}"):
        data_folder.shared(argparse.Namespace(data=data, work_dir=None))
    assert data_folder.shared(argparse.Namespace(data=data, work_dir=Path("work"))) == (data, Path("work").resolve())


def test_other_object_stores_are_refused() -> None:
    with pytest.raises(FeatureNotSupported, match=r'a lake in "gs://bucket/lake" is not supported'):
        values("up --data gs://bucket/lake")


def test_values_have_the_types_of_their_options(folder: Path) -> None:
    (folder / "tailgate.toml").write_text(FILE)
    gateway = values("gateway", TAILGATE_DATA="lake", TAILGATE_HTTP_RATE="2.5")
    assert gateway["http-origin"].value == ["https://a.example", "https://b.example"]
    assert gateway["insecure"].value is True
    assert gateway["http-rate"].value == 2.5
    assert gateway["data"].value == Path("lake")
    assert values("gateway", TAILGATE_INSECURE="off")["insecure"].value is False
    assert values("gateway --http-origin https://c.example")["http-origin"].value == ["https://c.example"]
    assert values("gateway", TAILGATE_HTTP_ORIGIN="https://d.example, https://e.example")["http-origin"].value[1] == "https://e.example"


def test_a_file_can_be_named(folder: Path) -> None:
    path = folder / "other.toml"
    path.write_text('log = "json"')
    assert values(f"sinks --config {path}")["log"].origin == f"{path}:1"
    assert values("sinks", TAILGATE_CONFIG=str(path))["log"].origin == f"{path}:1"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('data = "x"\nlistn = "1"', 'tailgate.toml:2: unrecognized configuration parameter "listn"', 'Perhaps you meant "listen".'),
        ("[gateway]\n\nparallelism = 2", 'tailgate.toml:3: "parallelism" is not a setting of tailgate gateway', None),
        ("[gatewy]\n", 'tailgate.toml:1: there is no command "gatewy"', 'Perhaps you meant "gateway".'),
        ("tls_cert = 1", 'tailgate.toml:1: unrecognized configuration parameter "tls_cert"', 'Perhaps you meant "tls-cert".'),
        ("[engine]\ntake-over = true", 'tailgate.toml:2: "take-over" is not a setting of tailgate engine', None),
        ('[gateway]\nlog = "xml"', 'tailgate.toml:2: invalid value for log: "xml"', "Available values: text, json."),
        ('[gateway]\nhttp-rate = "fast"', 'tailgate.toml:2: invalid value for http-rate: "fast"', None),
        ("[gateway]\ninsecure = 3", "tailgate.toml:2: insecure requires true or false", None),
        ("[gateway]\nlisten = [1]", "tailgate.toml:2: listen requires a text or a number", None),
    ],
)
def test_errors_have_a_position(folder: Path, text: str, message: str, hint: str | None) -> None:
    (folder / "tailgate.toml").write_text(text)
    with pytest.raises(InvalidParameterValue) as error:
        values("gateway")
    assert error.value.message == message
    if hint is not None:
        assert error.value.hint == hint


def test_errors_of_syntax_and_of_variables(folder: Path) -> None:
    with pytest.raises(InvalidParameterValue, match='TAILGATE_HTTP_RATE: invalid value for http-rate: "fast"'):
        values("gateway", TAILGATE_HTTP_RATE="fast")
    with pytest.raises(InvalidParameterValue, match=r"configuration file missing\.toml cannot be read: No such file"):
        values("gateway --config missing.toml")
    (folder / "tailgate.toml").write_text("a = 1\nb = = 2")
    with pytest.raises(InvalidParameterValue, match=r"tailgate.toml: .*line 2, column 5"):
        values("gateway")


def test_config_prints_origins_and_masks_passwords(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tailgate.toml").write_text('[up]\nschema-registry = "http://ann:word@registry:8081"')
    assert cli.main(["config", "--json", "up", "--gateways", "2"]) == 0
    rows = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert rows["gateways"] == {"name": "gateways", "value": 2, "origin": "flag"}
    assert rows["schema-registry"]["value"] == "http://ann:********@registry:8081"
    assert cli.main(["config"]) == 0
    text = capsys.readouterr().out
    assert "tailgate.toml:2" in text and "word" not in text


def test_a_command_reports_an_unknown_key(folder: Path) -> None:
    (folder / "tailgate.toml").write_text("listn = 1")
    process = subprocess.run(
        [sys.executable, "-m", "tailgate", "verify"], capture_output=True, text=True, timeout=60, check=False, env=ENVIRONMENT
    )
    assert process.returncode == 2
    assert process.stderr == (
        'tailgate: tailgate.toml:1: unrecognized configuration parameter "listn"\nHINT:  Perhaps you meant "listen".\n'
    )


def test_a_variable_that_looks_like_a_setting_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILGATE_LISTN", "x")
    assert cli.main(["config"]) == 0
    assert capsys.readouterr().err == 'tailgate: TAILGATE_LISTN is not a setting. Perhaps you meant "TAILGATE_LISTEN".\n'


def test_commands_run_with_the_settings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "tailgate.toml").write_text('[ls]\ndata = "nowhere"')
    assert cli.main(["log", "ls"]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_child_processes_read_for_themselves_what_up_has_from_elsewhere(folder: Path) -> None:
    (folder / "tailgate.toml").write_text('http-log = true\nset = ["work_mem=1MB"]\n[up]\nheap = "3GB"\n')
    options = configuration.parse(cli.parser(), ["up", "--webhook", "http://a", "--set", "jit=off"], {"TAILGATE_HTTP_RATE": "3"})
    passed = configuration.for_children(options)
    assert cli._listening(passed) == ("--set", "jit=off")
    assert engine.arguments(passed) == ("--heap", "3072")
    assert watch.arguments(passed) == ("--webhook", "http://a")
    assert passed.log is None
    gateway = values("gateway --set jit=off", TAILGATE_SET="work_mem=2MB")["set"]
    assert (gateway.value, gateway.origin) == (["work_mem=1MB", "work_mem=2MB", "jit=off"], "flag, TAILGATE_SET, tailgate.toml:2")
