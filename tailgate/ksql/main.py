"""The command line of `ksql`."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from contextlib import suppress
from pathlib import Path

from tailgate.ksql.api import Server, ServerError
from tailgate.ksql.session import Session
from tailgate.ksql.texts import statements

URL = "http://localhost:8088"
HISTORY = Path("~/.ksql_history").expanduser()
HISTORY_LINES = 1000
ENDS = ("exit", "quit")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command. Returns 0, or 1 after an error of -e, -f or standard input."""
    options = parser().parse_args(arguments)
    try:
        password = os.environ.get("KSQL_PASSWORD") if options.user else None
        if options.user and password is None and sys.stdin.isatty():
            password = getpass.getpass()
        server = Server(options.url, options.user, password)
        session = Session(server)
        if options.execute is not None:
            rest = session.run_text(options.execute)
            if rest:
                session.run(f"{rest};")
        elif options.file is not None:
            session.run_file(options.file)
        elif sys.stdin.isatty():
            info = server.get("/info")["KsqlServerInfo"]
            print(f"ksqlDB {info['version']} at {server.url}. End statements with a semicolon; exit ends.")
            _converse(session)
        else:
            session.run_text(sys.stdin.read() + "\n;")
    except ServerError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(prog="ksql", description="A client of ksqlDB's HTTP API.")
    parser.add_argument("url", nargs="?", default=URL, metavar="URL", help=f"the server ({URL})")
    parser.add_argument("-e", "--execute", metavar="STATEMENTS", help="run these statements and exit")
    parser.add_argument("-f", "--file", type=Path, metavar="FILE", help="run the statements of a file and exit")
    parser.add_argument("-u", "--user", metavar="ROLE", help="sign in with a password, from KSQL_PASSWORD or typed")
    return parser


def _converse(session: Session) -> None:
    """Reads lines with editing and a history, and runs each whole statement. Errors are printed."""
    with suppress(ImportError, OSError):
        import readline

        readline.set_history_length(HISTORY_LINES)
        readline.read_history_file(HISTORY)
    text = ""
    while True:
        try:
            line = input("> " if text else "ksql> ")
        except EOFError:
            break
        except KeyboardInterrupt:
            text = ""
            print()
            continue
        if not text and line.strip().rstrip(";").lower() in ENDS:
            break
        text = _run(session, f"{text}{line}\n")
    with suppress(ImportError, OSError):
        import readline

        readline.write_history_file(HISTORY)


def _run(session: Session, text: str) -> str:
    """Runs the whole statements of a text. Returns the rest, which is empty after an error."""
    whole, rest = statements(text)
    for statement in whole:
        try:
            session.run(statement)
        except ServerError as error:
            print(error)
            return ""
    return f"{rest}\n" if rest else ""


if __name__ == "__main__":
    sys.exit(main())
