"""The output of a run of random requests: a folder that stays if the run fails or is killed.

requests.jsonl, requests.jsonl.1     the newest requests, each with its number, its answer and the seconds until then
log.txt, log.txt.1                   the log of gateway, API and engine
failure.txt                          the error, and the stacks of all threads when it was raised
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import shutil
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

from tests.gateway.ksqldb.random_requests import Request

FOLDER = Path(os.environ.get("TAILGATE_FUZZ_OUTPUT", Path(tempfile.gettempdir()) / "tailgate-random-requests"))
FILE_BYTES = 8 << 20  # of the newest requests, and of the log; as much again is in the file before
ANSWER_BYTES = 2_000  # of an answer that are kept


class RunOutput:
    """The output of one run, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._requests = _file(folder / "requests.jsonl", "%(message)s")
        self._log = _file(folder / "log.txt", "%(asctime)s %(levelname)s %(threadName)s %(name)s %(message)s")

    def add(self, number: int, sent: Request, status: int, answer: bytes, seconds: float) -> None:
        """Keeps a request with its answer."""
        line = {"number": number, "method": sent.method, "path": sent.path, "headers": sent.headers, "body": sent.body.decode("latin-1")}
        line |= {"status": status, "answer": answer[:ANSWER_BYTES].decode("latin-1"), "seconds": round(seconds, 3)}
        self._requests.emit(logging.makeLogRecord({"msg": json.dumps(line)}))

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keeps the log within the block. Removes the folder at its end, or prints its name if it ends with an error."""
        root = logging.getLogger()
        root.addHandler(self._log)
        try:
            yield
        except BaseException as error:
            with (self.folder / "failure.txt").open("w") as file:
                traceback.print_exception(error, file=file)
                file.flush()
                faulthandler.dump_traceback(file)
            print(f"the requests, their answers and the log are in {self.folder}", flush=True)
            raise
        else:
            shutil.rmtree(self.folder)
        finally:
            root.removeHandler(self._log)
            self._log.close()
            self._requests.close()


def _file(path: Path, form: str) -> RotatingFileHandler:
    handler = RotatingFileHandler(path, maxBytes=FILE_BYTES, backupCount=1, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter(form))
    return handler
