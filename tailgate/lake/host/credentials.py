"""The credentials of buckets in files: `bucket/AWS_ACCESS_KEY_ID` and so on below --secrets-dir, each with the value of this variable.

They take precedence over the variables of the environment. They are read again every minute, so a key can be replaced while processes run.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from tailgate.lake.errors import InvalidParameterValue

if TYPE_CHECKING:
    from obstore.store import S3Credential

FOLDER = "bucket"
KEY, SECRET, TOKEN = NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
VALID_S = 60.0  # since the files were read

_folder: Path | None = None


def use(secrets_dir: Path | None) -> None:
    """Sets the folder of this process, with the files or without any. Raises 22023 if it has some of them only."""
    global _folder
    folder = None if secrets_dir is None else secrets_dir.resolve() / FOLDER
    _folder = folder if folder is not None and folder.is_dir() else None
    read()


def read() -> dict[str, str]:
    """Returns the values by the names of their variables; empty without files."""
    if _folder is None:
        return {}
    try:
        values = {name: (_folder / name).read_text().strip() for name in NAMES if name != TOKEN or (_folder / name).exists()}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidParameterValue(
            f'the credentials in folder "{FOLDER}" of --secrets-dir cannot be read: {reason}',
            hint=f"It needs the files {KEY} and {SECRET}.",
        ) from None
    return values


def current() -> S3Credential:
    """Returns the credentials for the client of a bucket, which asks again after VALID_S."""
    values = read()
    return {
        "access_key_id": values[KEY],
        "secret_access_key": values[SECRET],
        "token": values.get(TOKEN),
        "expires_at": datetime.now(timezone.utc) + timedelta(seconds=VALID_S),
    }
