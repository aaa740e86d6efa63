"""The command line, and the only module that may import every package. Each command imports its packages when it runs.

tailgate demo     Kafka, registry, engine, gateway, sinks, and the shop of tailgate/examples/shop, live
tailgate up       engine, gateway, sinks and watch over one data folder
tailgate engine | gateway | sinks | watch     one of these processes, over a shared lake
tailgate presto | ksqldb     Presto's HTTP protocol, or ksqlDB's HTTP API, in front of a gateway
tailgate status   the processes, their lag, and problems with hints
tailgate top      the status again and again
tailgate bundle   a file for a bug report, without data
tailgate doctor   checks of the environment: Java, ports, disk, brokers
tailgate config   the settings of a command, and where each comes from
tailgate log ls | show     entries of a lake's log, without rows
tailgate verify   checks of a lake: everything that the log names exists, and the tables equal the log
tailgate check    the views that an engine of this version fills again
tailgate backup | restore     copies of a lake in use
tailgate jars     the jars that the executors of a Spark cluster need
tailgate repartition     moves the state to another number of partitions
"""

from __future__ import annotations

import argparse
import atexit
import errno
import logging
import os
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tailgate.embedded import connect_options as connect
from tailgate.engine import command as engine_limits
from tailgate.gateway.console import command as console
from tailgate.gateway.http import command as http
from tailgate.gateway.ksqldb.server import command as ksqldb
from tailgate.operations import data_folder
from tailgate.operations.settings.addresses import PORT_MAX, address, reachable_address
from tailgate.operations.settings.quantities import Positive, Quantity

if TYPE_CHECKING:
    from tailgate.embedded.supervisor import Supervisor
    from tailgate.lake.errors import TailgateError
    from tailgate.operations.endpoint import Address
    from tailgate.operations.settings.process import ProcessSettings

LISTEN = "127.0.0.1:6875"
GATEWAYS_MAX = 64  # of `tailgate up`
# errors of files and addresses that a user has to mend
ENVIRONMENT = frozenset(
    {errno.ENOENT, errno.EEXIST, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EROFS, errno.EADDRINUSE, errno.EADDRNOTAVAIL}
)
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")


def main(arguments: list[str] | None = None) -> int:
    """Runs a command and returns its exit code: 0 after SIGTERM or Ctrl-C, 1 after a reported error, 2 for invalid arguments."""
    from tailgate.lake.errors import TailgateError
    from tailgate.operations import logs
    from tailgate.operations.otlp import active as otlp
    from tailgate.operations.settings import configuration, ksqldb_variables, process

    words = sys.argv[1:] if arguments is None else arguments
    try:
        if words[:1] == ["up"]:
            words = ksqldb_variables.applied(words, os.environ, _say)
        options = configuration.parse(parser(), words, os.environ)
    except TailgateError as e:
        return _report(e, 2)
    if options.config is not None:
        os.environ[configuration.variable("config")] = str(options.config.resolve())  # for child processes
    logs.configure(getattr(options, "log", "text"), options.command)
    if options.command in process.PROCESSES:
        options.settings = process_settings(options, words, os.environ)
    try:
        if getattr(options, "otlp", None) is not None:
            otlp.start(options.otlp, options.command)
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        if not _is_output_closed():
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the text in the buffer
        return 0
    except Exception as e:
        if isinstance(e, TailgateError):
            return _report(e, 1)
        reason = _reason(e)
        if reason is None:
            raise
        _say(reason)
        return 1


def _reason(error: Exception) -> str | None:
    """Returns the message of an error of the environment, or None for another one."""
    from tailgate.embedded.children import ChildFailed
    from tailgate.lake.store import StoreUnavailable

    is_missing = isinstance(error, FileNotFoundError) and error.errno is None  # Java or a jar is missing, and the message says so
    if is_missing or isinstance(error, (ChildFailed, StoreUnavailable)):
        return str(error)
    if isinstance(error, OSError) and error.errno in ENVIRONMENT:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return None


def process_settings(options: argparse.Namespace, arguments: list[str], environment: Mapping[str, str]) -> ProcessSettings:
    """Returns the settings of this process, which SIGHUP reads again."""
    from tailgate.operations import logs
    from tailgate.operations.settings import configuration
    from tailgate.operations.settings.process import ProcessSettings

    settings = ProcessSettings(
        options.command,
        options.values,
        lambda: configuration.parse(parser(), arguments, environment).values,
        options.commands,
    )
    settings.on_change("log", lambda form: logs.change(form, options.command))
    settings.listen()
    return settings


def _say(words: str) -> None:
    print(f"tailgate: {words}", file=sys.stderr, flush=True)


def _is_output_closed() -> bool:
    """Returns whether the reader of the output has ended, such as head."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)  # errors are always returned
    return bool(poll.poll(0))


def _report(error: TailgateError, code: int) -> int:
    print(f"tailgate: {error}", file=sys.stderr)
    for field, text in (("DETAIL", error.detail), ("HINT", error.hint)):
        if text:
            print(f"{field}:  {text}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """The parser of a command line. An error is one line with a hint: the usage of a command has up to thirty lines."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"tailgate: {message}\nHINT:  {self.prog} --help lists the options.\n")


class _WithoutPandas(MetaPathFinder):
    """Hides pandas, which pyarrow imports for its first array if it is installed: a tenth of the CPU of a start. Nothing here needs it."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def process() -> NoReturn:
    """Runs the command of this process, and ends the process with the command's exit code."""
    sys.meta_path.insert(0, _WithoutPandas())
    run_and_end(main)


def run_and_end(run: Callable[[], object]) -> NoReturn:
    """Calls a function, and ends the process with the exit code that it returns or raises, or 0.

    Threads of native libraries may still run: delta-rs writes a table, DuckDB runs a query. A normal
    exit destroys the memory that they use, and they crash (SIGSEGV). So the process ends at once after
    Python's own exit functions.
    """
    try:
        code = run()
    except SystemExit as exit:  # raised by argparse
        code = exit.code
    except BaseException:  # noqa: BLE001  # the traceback is for the log
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


def parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands."""
    from tailgate.lake.host.internal_errors import version
    from tailgate.operations import backups
    from tailgate.operations.doctor import add_doctor_options
    from tailgate.operations.support import bundle
    from tailgate.operations.support import top as live
    from tailgate.operations.watch import command as watching

    top = _Parser(prog="tailgate", description="A PostgreSQL endpoint for views that Spark keeps up to date.")
    top.add_argument("--version", action="version", version=f"tailgate {version()}", help="print the version")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    up = _command(commands, "up", "run an engine, gateways, sinks and the watch over one lake", _up)
    data_folder.add(up)
    _listen(up)
    up.add_argument("--kafka", metavar="ADDRESS|embedded", help="the Kafka of ksqlDB's statements, or 'embedded' to start one")
    up.add_argument("--schema-registry", metavar="URL|embedded", help="the schema registry of these statements, or 'embedded' to start one")
    connect.add_options(up)
    _secrets(up)
    up.add_argument(
        "--presto", type=Quantity(0, PORT_MAX), metavar="PORT", help="serve Presto's and Trino's HTTP protocol at this port of loopback"
    )
    up.add_argument("--stand-by", action="store_true", help="run a second engine and sinks process, which continue when the first ones end")
    up.add_argument(
        "--ksqldb", type=address, metavar="HOST:PORT", help="serve ksqlDB's HTTP API here (HTTPS with --tls-cert); its usual port is 8088"
    )
    _processing_log(up)
    up.add_argument("--gateways", type=Quantity(1, GATEWAYS_MAX), default=1, metavar="N", help="gateway processes that share the port (1)")
    _scratch(up)
    engine_limits.add_options(up)
    engine_limits.add_cluster_options(up)
    _memory(up)
    _parallelism(up)
    watching.add_options(up)
    _metrics(up, "metrics and health checks of the supervisor; the next ports: engine, sinks, gateways, watch, second engine and sinks")
    _control(up, "where other machines reach the engine; the next ports: gateways, second engine (loopback)")

    demo = _command(commands, "demo", "run the shop: Kafka, registry, load, views and a sink, live", _demo)
    data_folder.add_for_demo(demo)
    _listen(demo)
    _parallelism(demo)
    engine_limits.add_cluster_options(demo)
    demo.add_argument("--for", dest="seconds", type=Positive(), metavar="SECONDS", help="end after this time (Ctrl-C ends it)")
    demo.add_argument("--rate", type=Positive(), default=200.0, metavar="EVENTS_PER_SECOND", help="page views per second (200)")
    demo.add_argument("--check", action="store_true", help="at the end compare view and sink with a recompute of the topics")

    engine = _command(commands, "engine", "run an engine alone: one for each lake", _engine)
    data_folder.add(engine)
    _secrets(engine)
    _scratch(engine)
    _parallelism(engine)
    engine_limits.add_options(engine)
    engine_limits.add_cluster_options(engine)
    engine.add_argument("--kafka", metavar="ADDRESS", help="the Kafka of ksqlDB's statements, which do not name one")
    engine.add_argument("--schema-registry", metavar="URL", help="the schema registry of ksqlDB's statements")
    engine.add_argument("--connect", metavar="URL", help="the Kafka Connect of ksqlDB's statements")
    _processing_log(engine)
    _metrics(engine)
    _control(engine)
    begins = engine.add_mutually_exclusive_group()
    for name, text in (
        ("stand-by", "wait until the running engine ends or hangs, and continue in its place within seconds"),
        ("hand-over", "as --stand-by, and ask the running engine to stop when this one is ready"),
        ("take-over", "start although another engine seems to be alive, which stops at its next entry"),
    ):
        begins.add_argument(f"--{name}", action="store_true", help=text)

    moved = _command(commands, "repartition", "move the state to another number of partitions", engine_limits.repartition)
    data_folder.add(moved)
    _secrets(moved)
    _scratch(moved)
    engine_limits.add_repartition_options(moved)

    copied = _command(commands, "jars", "copy the jars that executors of a Spark cluster need", engine_limits.copy_jars)
    engine_limits.add_jars_options(copied)

    gateway = _command(commands, "gateway", "run a gateway alone: any number for each lake", _gateway)
    data_folder.add(gateway)
    _listen(gateway)
    _control(gateway)
    _memory(gateway)
    _metrics(gateway)

    presto = _command(commands, "presto", "serve Presto's HTTP protocol in front of a gateway, on loopback", _presto)
    presto.add_argument("--port", type=Quantity(0, PORT_MAX), default=8080, metavar="PORT", help="the port of loopback (8080)")
    presto.add_argument("--gateway", type=reachable_address, default=LISTEN, metavar="HOST:PORT", help=f"the gateway ({LISTEN})")

    ksqldb.add_options(_command(commands, "ksqldb", "serve ksqlDB's HTTP API in front of a gateway", ksqldb.run))

    sinks = _command(commands, "sinks", "run the sinks alone: one process for each lake", _sinks)
    data_folder.add(sinks)
    _secrets(sinks)
    _metrics(sinks)
    sinks.add_argument("--stand-by", action="store_true", help="wait until the running process ends or hangs, and continue in its place")

    watch = _command(commands, "watch", "find failures of the other processes, evaluate alerts, and send notifications", watching.watch)
    data_folder.add(watch)
    _secrets(watch)
    watching.add_options(watch)
    _metrics(watch)

    verify = _command(commands, "verify", "check that a lake is complete and that its tables equal its log", _operation("verify"))
    data_folder.add(verify)
    check = _command(commands, "check", "list the views that an engine of this version fills again when it starts", engine_limits.check)
    data_folder.add(check)
    backups.add_backup_options(_command(commands, "backup", "copy a lake, also while it is in use, into a folder", backups.backup))
    backups.add_restore_options(_command(commands, "restore", "create a lake from a backup", backups.restore))
    _log_commands(commands)
    status = _command(commands, "status", "print the processes, their lag, and problems with hints", _operation("print_status"))
    data_folder.add(status)
    status.add_argument("--json", action="store_true", help="one JSON object")
    live_view = _command(commands, "top", "print the status again and again, with rates", live.run)
    data_folder.add(live_view)
    live.add_options(live_view)
    report = _command(commands, "bundle", "collect what a bug report needs, without data", lambda options: bundle.run(options, parser()))
    data_folder.add(report)
    bundle.add_options(report)
    doctor = _command(commands, "doctor", "check Java, limits, disk, ports, brokers and certificates", _operation("check_environment"))
    data_folder.add(doctor)
    add_doctor_options(doctor, LISTEN)
    config = _command(commands, "config", "print the settings of a command, and where each comes from", _config)
    config.add_argument("--json", action="store_true", help="a JSON object per setting")
    config.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND …", help="the command, with its options (up)")
    return top


def _log_commands(commands: Any) -> None:
    """Adds `tailgate log ls` and `tailgate log show`."""
    log = commands.add_parser(
        "log", help="show entries of a lake's log, without rows", description="show entries of a lake's log, without rows"
    )
    words = log.add_subparsers(required=True, metavar="COMMAND")
    ls = _command(words, "ls", "list the newest entries, one per line", _operation("log_ls"))
    ls.add_argument("--count", type=Quantity(1, 10**9), default=20, metavar="N", help="number of entries (20)")
    show = _command(words, "show", "show one entry: offsets, changed relations, change of the catalog", _operation("log_show"))
    show.add_argument("n", type=Quantity(1, 2**63 - 1), help="number of the entry")
    for command in (ls, show):
        data_folder.add(command)
        command.add_argument("--json", action="store_true", help="a JSON object per entry")


def _command(commands: Any, name: str, help: str, run: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
    """Adds a command to `commands`, what add_subparsers returned: argparse has no public type for it."""
    command: argparse.ArgumentParser = commands.add_parser(name, help=help, description=help)
    command.set_defaults(run=run, command=name)
    command.add_argument("--config", type=Path, metavar="FILE", help="the configuration file (./tailgate.toml if it exists)")
    return command


def _processing_log(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--processing-log", action="store_true", help="create ksqlDB's stream KSQL_PROCESSING_LOG, and write failures of its queries there"
    )


def _check_processing_log(options: argparse.Namespace) -> None:
    """Raises 22023 if the processing log is requested without Kafka."""
    from tailgate.lake.errors import InvalidParameterValue

    if options.processing_log and not options.kafka:
        raise InvalidParameterValue("--processing-log needs --kafka")


def _secrets(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--secret-key-file", type=Path, metavar="FILE", help="the file with the key of secrets: 32 bytes in base64, mode 0600"
    )


def _path_options(options: argparse.Namespace, *names: str) -> tuple[str, ...]:
    """Returns file and folder options that are set, as arguments for a child process."""
    paths = {name: getattr(options, name.removeprefix("--").replace("-", "_")) for name in names}
    return tuple(word for name, path in paths.items() if path is not None for word in (name, str(path.resolve())))


def _listen(command: argparse.ArgumentParser) -> None:
    command.add_argument("--listen", type=address, default=LISTEN, metavar="HOST:PORT", help=f"where PostgreSQL clients connect ({LISTEN})")
    command.add_argument("--tls-cert", type=Path, metavar="FILE", help="the server's certificate (PEM), followed by its authorities'")
    command.add_argument("--tls-key", type=Path, metavar="FILE", help="its private key (PEM), with mode 0600")
    command.add_argument(
        "--tls-ca", type=Path, metavar="FILE", help="accept only clients with a certificate of one of these authorities (PEM)"
    )
    http.add_options(command)
    console.add_options(command)
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the initial value of a setting for all sessions, as for SET; may be repeated",
    )
    command.add_argument("--insecure", action="store_true", help="allow --listen beyond loopback without TLS and roles")


def _control(command: argparse.ArgumentParser, help: str = "where processes on other machines reach this one (loopback)") -> None:
    command.add_argument("--control-listen", type=reachable_address, metavar="HOST:PORT", help=help)


def _memory(command: argparse.ArgumentParser) -> None:
    command.add_argument("--memory", metavar="SIZE", help="all memory of a gateway, 1GB or more (half of the machine's, at most 8GB)")


def _scratch(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--scratch", type=Path, metavar="FOLDER", help="the folder for the engine's working files, on a local disk (scratch in --data)"
    )


def _parallelism(command: argparse.ArgumentParser) -> None:
    changed = "partitions of the state (1); `tailgate repartition` changes it"
    command.add_argument("--parallelism", type=engine_limits.PARTITIONS, default=1, metavar="N", help=changed)


def _metrics(command: argparse.ArgumentParser, help: str = "where Prometheus reads metrics, and health checks are answered") -> None:
    command.add_argument("--metrics", metavar="HOST:PORT", help=f"{help} (off; a port alone is one of loopback)")
    command.add_argument("--otlp", metavar="URL", help="the OpenTelemetry collector that gets metrics and traces of ticks (off)")
    command.add_argument("--log", choices=("text", "json"), default="text", help="the format of the log on standard error (text)")


def _metrics_address(options: argparse.Namespace) -> Address | None:
    """Returns the address of --metrics, or None. Raises 22023."""
    from tailgate.operations.endpoint import address

    return None if options.metrics is None else address(options.metrics)


def _check_listen(options: argparse.Namespace) -> None:
    """Raises 22023 for invalid combinations of --listen, --tls-… and --insecure, and the errors of SET for --set."""
    from tailgate.gateway.settings.settings import checked_defaults
    from tailgate.lake.errors import InvalidParameterValue

    checked_defaults(options.set)
    host = options.listen.rpartition(":")[0]
    if getattr(options, "memory", None) is not None:
        from tailgate.gateway.resources.memory import parsed

        try:
            parsed(options.memory)
        except ValueError as error:
            raise InvalidParameterValue(f"--memory {error}") from None
    if (options.tls_cert is None) != (options.tls_key is None) or (options.tls_ca is not None and options.tls_cert is None):
        raise InvalidParameterValue("--tls-cert and --tls-key belong together, and --tls-ca needs them")
    if host not in LOOPBACK and options.tls_cert is None and not options.insecure:
        raise InvalidParameterValue(
            f"--listen {options.listen} would let any machine in, without TLS or passwords",
            hint="Listen on 127.0.0.1, give --tls-cert and --tls-key, or --insecure where something else guards the port.",
        )


def _listening(options: argparse.Namespace) -> tuple[str, ...]:
    """Returns the options of listening, as arguments for child gateways."""
    words = _path_options(options, "--tls-cert", "--tls-key", "--tls-ca")
    if getattr(options, "memory", None) is not None:
        words += ("--memory", options.memory)
    words += (*http.arguments(options), *console.arguments(options), *(word for setting in options.set for word in ("--set", setting)))
    return (*words, "--insecure") if options.insecure else words


def _up(options: argparse.Namespace) -> int:
    from tailgate.embedded.supervisor import Plan, Supervisor
    from tailgate.operations.settings.configuration import for_children
    from tailgate.operations.watch import command as watching

    _check_listen(options)
    _check_processing_log(options)
    engine_limits.check_cluster(options)
    passed = for_children(options)
    plan = Plan(
        options.data,
        options.listen,
        options.kafka,
        options.schema_registry,
        options.gateways,
        options.parallelism,
        _listening(passed),
        _path_options(options, "--secret-key-file"),
        connect=options.connect,
        connect_options=connect.checked(options),
        presto=options.presto,
        ksqldb=options.ksqldb,
        ksqldb_options=ksqldb.checked_arguments(options),
        engine=(*_path_options(options, "--scratch"), *engine_limits.arguments(passed)),
        processing_log=options.processing_log,
        stand_by=options.stand_by,
        metrics=_metrics_address(options),
        log=passed.log,
        otlp=options.otlp,
        watch=watching.arguments(passed),
        work_dir=options.work_dir,
        secrets_dir=options.secrets_dir,
        control_listen=options.control_listen,
    )
    supervisor = Supervisor(plan, _say)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: _stop_early(supervisor))
    signal.signal(signal.SIGHUP, lambda *_: supervisor.pass_on(signal.SIGHUP))
    with supervisor:
        print(supervisor.ready_line, flush=True)
        supervisor.wait()
    return 0


def _stop_early(supervisor: Supervisor) -> None:
    """Stops the processes. Ends this one, too, while they are being started."""
    supervisor.stop()
    if not supervisor.started:
        raise KeyboardInterrupt


def _demo(options: argparse.Namespace) -> int:
    from tailgate.embedded.supervisor import Plan
    from tailgate.examples.shop.demo import run
    from tailgate.operations.settings.configuration import for_children

    _check_listen(options)
    engine_limits.check_cluster(options)
    passed = for_children(options)
    with tempfile.TemporaryDirectory(prefix="tailgate-demo-") as temporary:
        plan = Plan(
            options.data or Path(temporary),
            options.listen,
            "embedded",
            "embedded",
            parallelism=options.parallelism,
            listening=_listening(passed),
            engine=engine_limits.cluster_arguments(passed),
            work_dir=options.work_dir,
            secrets_dir=options.secrets_dir,
        )
        return run(plan, options.rate, options.seconds, options.check)


def _engine(options: argparse.Namespace) -> int:
    from tailgate.engine.runtime.spark.jvm import launched
    from tailgate.lake.host.scratch import ROOT

    _check_processing_log(options)
    at = _metrics_address(options)
    cluster = engine_limits.cluster(options)
    data, work_dir = (options.data, options.work_dir) if cluster is None else data_folder.shared(options)
    with launched(options.scratch or data_folder.local(options) / ROOT, engine_limits.limits(options), options.log) as jvm:
        from tailgate.engine.ddl.ksqldb import Endpoints
        from tailgate.engine.runtime.main import Begin, HeldHistory, Options, run
        from tailgate.lake.catalog.secrets import Vault

        vault = Vault(options.secret_key_file, options.secrets_dir)
        endpoints = Endpoints(options.kafka or "", options.schema_registry or "", options.connect or "")
        begin = Begin.of(options.take_over, options.hand_over, options.stand_by)
        held = HeldHistory(options.history, options.held_log)
        lake = data, work_dir, options.parallelism
        limits, control = (held, options.index_memory), options.control_listen
        return run(Options(*lake, begin, vault, endpoints, at, options.settings, *limits, cluster, control, options.processing_log), jvm)


def _gateway(options: argparse.Namespace) -> int:
    from tailgate.gateway.http.server import HttpOptions
    from tailgate.gateway.main import Options, run
    from tailgate.gateway.resources.memory import parsed
    from tailgate.gateway.security.tls import Files
    from tailgate.lake.host.process_tls import split

    _check_listen(options)
    tls = Files(options.tls_cert, options.tls_key, options.tls_ca) if options.tls_cert is not None else None
    memory = parsed(options.memory) if options.memory is not None else None
    http_options = None
    if options.http is not None:
        http_options = HttpOptions.at(options.http, options.http_origin, options.http_rate, options.http_streams, logs=options.http_log)
    at = _metrics_address(options)
    at_console = console.address_of(options)
    lake, address = (options.data, options.work_dir), split(options.listen)
    control, defaults = options.control_listen, tuple(options.set)
    return run(Options(*lake, *address, options.insecure, tls, http_options, memory, at, at_console, control, defaults, options.settings))


def _presto(options: argparse.Namespace) -> int:
    from tailgate.gateway.presto.main import Options, run

    return run(Options(options.port, options.gateway))


def _sinks(options: argparse.Namespace) -> int:
    from tailgate.lake.catalog.secrets import Vault
    from tailgate.sinks.main import run

    vault = Vault(options.secret_key_file, options.secrets_dir)
    return run(options.data, vault, _metrics_address(options), stand_by=options.stand_by, settings=options.settings)


def _config(options: argparse.Namespace) -> int:
    from tailgate.operations.commands import config

    return config(options, parser())


def _operation(name: str) -> Callable[[argparse.Namespace], int]:
    """Returns a function of operations.commands, which is imported when it runs."""

    def run(options: argparse.Namespace) -> int:
        from tailgate.operations import commands

        return int(getattr(commands, name)(options))

    return run
