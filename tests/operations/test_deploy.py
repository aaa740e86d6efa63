"""The files of deploy/: their metrics exist, and their command lines are those of the program."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tailgate import cli
from tailgate.lake.store.bucket import BucketStore
from tailgate.operations.definitions import ENGINE, GATEWAY, SINKS, UP, WATCH, Metric
from tailgate.operations.settings import configuration

DEPLOY = Path(__file__).parents[2] / "deploy"
METRICS = {metric.name: metric for metric in (*ENGINE, *GATEWAY, *SINKS, *UP, *WATCH)}
OF_PROMETHEUS = {"job", "instance", "le"}  # labels that Prometheus adds
COMMAND = re.compile(r"^ExecStart=/opt/tailgate/bin/tailgate (.*)$", re.MULTILINE)


def panels() -> list[dict[str, str]]:
    """Returns the queries of the dashboard's panels."""
    dashboard = json.loads((DEPLOY / "grafana" / "tailgate.json").read_text())
    return [target for panel in dashboard["panels"] for target in panel["targets"]]


def rules() -> list[tuple[str, str]]:
    """Returns the expressions of the alerting rules, each with its annotations."""
    text = (DEPLOY / "prometheus" / "rules.yml").read_text()
    return re.findall(r"expr: (.*)\n(?:.*\n)*?\s+annotations: (.*)", text)


def metric(name: str) -> Metric | None:
    """Returns the metric of a series: a histogram has several."""
    exact = METRICS.get(name)
    stem = re.fullmatch(r"(.*)_(?:bucket|sum|count)", name)
    if exact is None and stem is not None and (histogram := METRICS.get(stem[1])) is not None and histogram.kind == "histogram":
        return histogram
    return exact


@pytest.mark.parametrize(
    ("expression", "text"), [*((target["expr"], target["legendFormat"]) for target in panels()), *rules()], ids=lambda value: value[:40]
)
def test_metrics_and_labels_exist(expression: str, text: str) -> None:
    names = re.findall(r"\btailgate_\w+", expression)
    metrics = [metric(name) for name in names]
    assert None not in metrics, names
    labels = OF_PROMETHEUS.union(*(each.labels for each in metrics if each is not None))
    used = {word.strip() for group in re.findall(r"by \(([^)]*)\)", expression) for word in group.split(",")}
    used |= set(re.findall(r"[{,]\s*(\w+)\s*(?:=|!=|=~|!~)\"", expression))
    used |= set(re.findall(r"{{\s*(?:\$labels\.)?(\w+)\s*}}", text))
    assert used <= labels
    rated = [each for name, each in zip(names, metrics, strict=True) if each and re.search(rf"(?:rate|increase)\({name}", expression)]
    assert all(each.kind != "gauge" for each in rated)


def test_there_are_rules_and_panels() -> None:
    assert len(rules()) == (DEPLOY / "prometheus" / "rules.yml").read_text().count("- alert:") >= 10
    assert len(panels()) >= 20


@pytest.mark.parametrize("path", sorted((DEPLOY / "systemd").iterdir()), ids=lambda path: path.name)
def test_units_have_valid_command_lines(path: Path) -> None:
    (line,) = COMMAND.findall(path.read_text())
    options = cli.parser().parse_args(shlex.split(line.replace("%i", "6875")))
    scraped = (DEPLOY / "prometheus" / "prometheus.yml").read_text()
    assert f'"{options.metrics}"' in scraped


@pytest.mark.parametrize("name", ["tailgate.yml", "machines.yml"])
def test_containers_have_valid_command_lines_and_settings(name: str, bucket: BucketStore, tmp_path: Path) -> None:
    text = (DEPLOY / "kubernetes" / name).read_text().replace("$(POD_IP)", "10.0.0.1").replace("s3://bucket/shop", bucket.location(""))
    lines = [json.loads(line) for line in re.findall(r"^ +args: (\[.*\])$", text, re.MULTILINE)]
    assert [line[0] for line in lines] == ["engine", "gateway", "sinks", "watch"]
    (settings,) = re.findall(r"tailgate\.toml: \|\n((?:(?:    .*)?\n)+)---", text)
    (tmp_path / "tailgate.toml").write_text(re.sub(r"^    ", "", settings, flags=re.MULTILINE))
    for line in lines:
        options = configuration.parse(cli.parser(), line, {"TAILGATE_CONFIG": str(tmp_path / "tailgate.toml")})
        assert options.log == "json"
        addresses = [options.metrics, getattr(options, "control_listen", None)]
        assert all(f"containerPort: {address.rpartition(':')[2]}" in text for address in addresses if address is not None)
