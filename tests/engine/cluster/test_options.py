"""The options for a Spark cluster that are refused, before anything starts."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from tailgate.engine import command
from tailgate.engine.runtime.spark.cluster import cluster
from tailgate.engine.runtime.spark.jvm import COMPILER
from tailgate.lake.errors import FeatureNotSupported, InvalidParameterValue, TailgateError

MASTER = "spark://127.0.0.1:7077"
RESERVED = frozenset({"spark.sql.ansi.enabled"})


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.touch(0o600)
    file.write_text("open sesame\n")
    return file


def settings(secret: Path, **conf: str) -> dict[str, str]:
    """Returns the settings of Spark for some options, in which `__` is a dot."""
    options = [(name.replace("__", "."), value) for name, value in conf.items()]
    chosen = cluster(MASTER, "10.0.0.1", [("spark.authenticate.secret.file", str(secret)), *options])
    assert chosen is not None
    return chosen.settings(RESERVED)


def test_the_settings_of_a_cluster(secret: Path) -> None:
    """Executors connect to the engine's address, with the secret and encrypted; the engine's jars are on their class path."""
    all = settings(secret, spark__executor__memory="2g", spark__network__timeout="60s")
    assert all["spark.driver.host"] == all["spark.driver.bindAddress"] == "10.0.0.1"
    assert all["spark.authenticate.secret"] == "open sesame"
    assert "spark.authenticate.secret.file" not in all
    assert (all["spark.authenticate"], all["spark.network.crypto.enabled"]) == ("true", "true")
    assert all["spark.network.crypto.saslFallback"] == "false"
    assert (all["spark.executor.memory"], all["spark.network.timeout"]) == ("2g", "60s")
    assert "tailgate.jar" in all["spark.executor.extraClassPath"]
    assert set(COMPILER) < set(all["spark.executor.defaultJavaOptions"].split()), "as the engine's own JVM"


def test_jars_in_another_folder(secret: Path) -> None:
    """The archive of classes fits the engine's own class path only."""
    all = settings(secret, spark__executor__extraClassPath="/opt/tailgate/*")
    assert all["spark.executor.extraClassPath"] == "/opt/tailgate/*"
    assert "SharedArchiveFile" not in all["spark.executor.defaultJavaOptions"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("spark.authenticate.secret", "spark.authenticate.secret cannot be an option, which other users of the machine can read"),
        ("spark.ssl.keyPassword", "spark.ssl.keyPassword cannot be an option, which other users of the machine can read"),
        ("spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.secret.key cannot be an option, which other users of the machine can read"),
        ("spark.master", 'the setting "spark.master" of Spark cannot be changed: the engine sets it'),
        ("spark.remote", 'the setting "spark.remote" of Spark cannot be changed: the engine sets it'),
        ("spark.authenticate", 'the setting "spark.authenticate" of Spark cannot be changed: the engine sets it'),
        ("spark.network.crypto.enabled", 'the setting "spark.network.crypto.enabled" of Spark cannot be changed: the engine sets it'),
        ("spark.plugins", 'the setting "spark.plugins" of Spark cannot be changed: the engine sets it'),
        ("spark.sql.ansi.enabled", 'the setting "spark.sql.ansi.enabled" of Spark cannot be changed: the engine sets it'),
        ("spark.driver.host", 'the setting "spark.driver.host" of Spark cannot be changed: the engine sets it'),
    ],
)
def test_settings_that_are_refused(secret: Path, name: str, message: str) -> None:
    with pytest.raises(InvalidParameterValue) as refused:
        settings(secret, **{name: "x"})
    assert refused.value.message == message


def test_secrets_that_are_refused(secret: Path) -> None:
    chosen = cluster(MASTER, "127.0.0.1", [])
    assert chosen is not None
    with pytest.raises(InvalidParameterValue, match="a Spark master needs a secret"):
        chosen.settings(RESERVED)
    secret.chmod(0o644)
    with pytest.raises(InvalidParameterValue, match="can be read by other users"):
        settings(secret)
    secret.chmod(0o600)
    secret.write_text("x" * 4097)
    with pytest.raises(InvalidParameterValue, match="is longer than 4096 bytes"):
        settings(secret)
    secret.write_text("")
    with pytest.raises(InvalidParameterValue, match="is empty"):
        settings(secret)
    with pytest.raises(InvalidParameterValue, match="cannot be read from"):
        settings(secret.parent / "none")


def test_a_supervisor_refuses_them_before_it_starts_an_engine(secret: Path) -> None:
    """The engine's log would have the message, and the arguments of its process a secret."""

    def check(*conf: str, data: Path | str | None = None, work_dir: Path | None = None) -> None:
        command.check_cluster(Namespace(master=MASTER, driver_host="127.0.0.1", spark_conf=list(conf), data=data, work_dir=work_dir))

    file = f"spark.authenticate.secret.file={secret}"
    check(file)
    check(file, data=secret.parent)
    with pytest.raises(InvalidParameterValue, match="cannot be an option"):
        check(file, "spark.ssl.keyPassword=x")
    with pytest.raises(InvalidParameterValue, match="a Spark master needs a secret"):
        check()
    check(file, data="s3://bucket/lake", work_dir=secret.parent)
    with pytest.raises(InvalidParameterValue, match="needs a working folder for a lake in s3://bucket/lake"):
        check(file, data="s3://bucket/lake")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_addresses_that_are_refused(host: str) -> None:
    with pytest.raises(InvalidParameterValue) as refused:
        cluster(MASTER, host, [])
    assert refused.value.message == f'executors cannot connect to the address "{host}"'
    assert refused.value.hint == "Set --driver-host to the address of this machine that the workers of the cluster reach."


@pytest.mark.parametrize(
    ("master", "error"),
    [
        ("k8s://https://127.0.0.1:6443", FeatureNotSupported),
        ("yarn", FeatureNotSupported),
        ("local[2]", FeatureNotSupported),
        ("http://127.0.0.1", InvalidParameterValue),
        (None, InvalidParameterValue),
    ],
)
def test_masters_that_are_refused(master: str | None, error: type[TailgateError]) -> None:
    with pytest.raises(error):
        cluster(master, "127.0.0.1", [("spark.executor.memory", "1g")])
    assert cluster(None, "127.0.0.1", []) is None
