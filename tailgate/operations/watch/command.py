"""The command `tailgate watch`: its options, also those that `tailgate up` has and passes on."""

from __future__ import annotations

import argparse
from pathlib import Path

from tailgate.operations.settings.quantities import InvalidValue
from tailgate.operations.watch.payloads import FORMATS


def add_options(command: argparse.ArgumentParser) -> None:
    """Adds the options for the targets of alerts."""
    command.add_argument("--webhook", action="append", default=[], type=_url, metavar="URL", help="where alerts are sent, with POST")
    command.add_argument("--webhook-format", choices=FORMATS, default="plain", help="the form of alerts: plain, or Alertmanager's (plain)")
    command.add_argument("--alert-commands", action="store_true", help="NOTIFY COMMAND may execute programs below --secrets-dir")
    command.add_argument("--webhook-secret-file", type=Path, metavar="FILE", help="the key with which requests to webhooks are signed")


def _url(text: str) -> str:
    """Returns the URL. Raises InvalidValue if it is not one of HTTP."""
    if not text.startswith(("http://", "https://")):
        raise InvalidValue(f"{text} is not a URL of http or https")
    return text


def arguments(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns these options as arguments for a child process."""
    words = tuple(word for url in options.webhook for word in ("--webhook", url))
    words += () if options.webhook_format is None else ("--webhook-format", options.webhook_format)
    words += ("--alert-commands",) * bool(options.alert_commands)
    file = options.webhook_secret_file
    return words if file is None else (*words, "--webhook-secret-file", str(file.resolve()))


def watch(options: argparse.Namespace) -> int:
    """Runs the command."""
    from tailgate.lake.catalog.secrets import Vault
    from tailgate.operations.endpoint import address
    from tailgate.operations.watch.main import Options, run

    metrics = None if options.metrics is None else address(options.metrics)
    vault = Vault(options.secret_key_file, options.secrets_dir)
    return run(
        Options(
            options.data,
            options.work_dir,
            tuple(options.webhook),
            options.webhook_format,
            options.webhook_secret_file,
            metrics,
            vault,
            options.alert_commands,
            options.settings,
        )
    )
