"""Tests the options for Kafka Connect, and the settings of the embedded worker."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tailgate.embedded.connect import JSON, Connect
from tailgate.embedded.connect_options import ConnectOptions, add_options, checked
from tailgate.formats.converters import APICURIO_AVRO, CONFLUENT_AVRO
from tailgate.lake.errors import InvalidParameterValue


def options(*words: str) -> ConnectOptions:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka")
    add_options(parser)
    return checked(parser.parse_args(words))


def test_options(tmp_path: Path) -> None:
    words = ("--kafka", "embedded", "--connect", "embedded", "--connect-plugins", str(tmp_path), "--connect-set", "a.b=c=d")
    assert options(*words) == ConnectOptions(tmp_path, {"a.b": "c=d"})
    assert options() == options("--connect", "http://host:8083") == ConnectOptions()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--connect", "embedded"), "--connect embedded needs --kafka"),
        (("--connect", "http://host:8083", "--connect-set", "a=b"), "need --connect embedded"),
        (("--kafka", "k", "--connect", "embedded", "--connect-set", "guarded"), "is not NAME=VALUE"),
        (("--kafka", "k", "--connect", "embedded", "--connect-plugins", "/no/such"), "is not a folder"),
    ],
)
def test_options_that_do_not_fit_together(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidParameterValue, match=message):
        options(*words)


def test_converters_of_the_worker(tmp_path: Path) -> None:
    assert Connect(tmp_path / "a", "k:1", "", ConnectOptions()).settings()["value.converter"] == JSON
    assert Connect(tmp_path / "b", "k:1", "http://r", ConnectOptions()).settings()["key.converter"] == APICURIO_AVRO
    own_settings = {"key.converter": "Own", "value.converter": CONFLUENT_AVRO, "value.converter.schema.registry.url": "http://s"}
    settings = Connect(tmp_path / "c", "k:1", "http://r", ConnectOptions(settings=own_settings)).settings()
    assert (settings["key.converter"], settings["value.converter"]) == ("Own", APICURIO_AVRO)
    assert settings["value.converter.apicurio.registry.url"] == "http://s/apis/registry/v2"


def test_the_worker_listens_on_loopback_and_has_the_plugins(tmp_path: Path) -> None:
    own_settings = {"listeners": "http://0.0.0.0:8083", "bootstrap.servers": "other:9092", "plugin.path": "/usr/share/plugins"}
    server = Connect(tmp_path, "k:1", "", ConnectOptions(settings=own_settings))
    settings = server.settings()
    assert settings["listeners"] == server.url
    assert settings["bootstrap.servers"] == "other:9092"
    assert settings["plugin.path"] == f"{tmp_path}/plugins,/usr/share/plugins"
    assert Connect(tmp_path, "k:1", "", ConnectOptions()).port == server.port
