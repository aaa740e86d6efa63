"""Commands for operators: the status of a lake's processes, its log, and the settings of a command."""

from __future__ import annotations

import argparse
import json
import os
import sys

from tailgate.lake.catalog.secrets import Vault
from tailgate.lake.folder import Lake
from tailgate.lake.readers.verification import findings
from tailgate.operations import doctor, status
from tailgate.operations.log_entries import entry, newest
from tailgate.operations.settings import configuration


def config(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Prints the settings of a command line, and where each comes from."""
    for name, nearest in configuration.unknown(os.environ, parser):
        print(f'tailgate: {name} is not a setting. Perhaps you meant "{nearest}".', file=sys.stderr)
    words = options.words or ["up"]
    if options.config is not None:
        words = [*words, "--config", str(options.config)]
    for value in configuration.parse(parser, words, os.environ).values:
        if options.json:
            print(json.dumps({"name": value.name, "value": value.shown, "origin": value.origin}))
        else:
            print(f"{value.name:<18} {'' if value.shown is None else value.shown!s:<32} {value.origin}")
    return 0


def print_status(options: argparse.Namespace) -> int:
    """Prints the status of a lake's processes. Returns 1 if something is broken."""
    report = status.report(Lake.open(options.data, options.work_dir))
    for line in [json.dumps(report)] if options.json else status.text(report):
        print(line)
    return 1 if report["problems"] else 0


def check_environment(options: argparse.Namespace) -> int:
    """Prints the findings of `tailgate doctor`. Returns 1 if one is a problem."""
    problems = 0
    of_lake = options.data, options.listen, options.kafka, options.schema_registry
    environment = doctor.Environment(*of_lake, options.tls_cert, options.work_dir, Vault(options.secret_key_file, options.secrets_dir))
    for finding in doctor.findings(environment):
        problems += not finding.ok
        if options.json:
            print(json.dumps({"check": finding.check, "ok": finding.ok, "result": finding.result, "hint": finding.hint}))
        else:
            print(f"{finding.check}: {'ok' if finding.ok else 'PROBLEM'}: {finding.result}")
            if finding.hint is not None:
                print(f"HINT:  {finding.hint}")
    return 1 if problems else 0


def verify(options: argparse.Namespace) -> int:
    """Prints the findings of `tailgate verify`. Returns 1 if one is a problem."""
    problems = 0
    for finding in findings(Lake.open(options.data, options.work_dir)):
        print(f"{finding.checked}: {finding.problem or 'ok'}", flush=True)
        problems += finding.problem is not None
    print(f"problems: {problems}")
    return 1 if problems else 0


def log_ls(options: argparse.Namespace) -> int:
    """Prints the newest entries of the log, one a line."""
    for line in newest(Lake.open(options.data, options.work_dir), options.count):
        text = "{n:>8}  {time}  {kind:<7}  epoch {epoch}  relations {relations}  rows {rows}".format(**line)
        print(json.dumps(line) if options.json else text)
    return 0


def log_show(options: argparse.Namespace) -> int:
    """Prints one entry of the log."""
    fields = entry(Lake.open(options.data, options.work_dir), options.n)
    if options.json:
        print(json.dumps(fields))
    else:
        for name, value in fields.items():
            print(f"{name + ':':<15} {json.dumps(value) if isinstance(value, dict) else value}")
    return 0
