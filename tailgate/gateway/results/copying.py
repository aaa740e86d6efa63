"""The options of COPY, and the result of COPY … TO STDOUT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tailgate.gateway.encode.copying import CopyEncoder, CopyOptions
from tailgate.gateway.results.rows import Rows
from tailgate.lake import errors as e
from tailgate.sql import statements as s

_BOOLEANS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


@dataclass(slots=True)
class CopyOut:
    """The result of COPY … TO STDOUT: its rows, and the encoder for its format."""

    encoder: CopyEncoder
    rows: Rows


Result = Rows | str | CopyOut  # of a statement: its rows, its command tag, or COPY data


def copy_options(statement: s.CopyTo | s.CopyFrom) -> CopyOptions:
    """Checks the options of COPY and adds the defaults. Raises 42601, 0A000 or 22023 for an invalid option."""
    csv = statement.format == "csv"
    words: dict[str, Any] = {"format": statement.format, "delimiter": b"," if csv else b"\t", "null": b"" if csv else b"\\N"}
    for name, value in statement.options:
        if name == "format":
            continue
        if statement.format == "binary" and name in ("delimiter", "null", "header"):
            raise e.SyntaxError_(f"cannot specify {name.upper()} in BINARY mode")
        if not csv and name in ("quote", "escape", "force_quote"):
            raise e.FeatureNotSupported(f"COPY {name.replace('_', ' ')} available only in CSV mode")
        match name:
            case "delimiter" | "null" | "quote" | "escape":
                words[name] = str(value).encode()
            case "header":
                header = True if value is None or value == "" else _BOOLEANS.get(str(value).lower())
                if header is None:
                    raise e.SyntaxError_('header requires a Boolean value or "match"')
                words[name] = header
            case "force_quote":
                words[name] = None if value == "*" else frozenset(map(str, value if isinstance(value, tuple) else (value,)))
            case "encoding":
                if str(value).lower().replace("-", "") not in ("utf8", "unicode"):
                    raise e.InvalidParameterValue('argument to option "encoding" must be a valid encoding name')
            case _:
                raise e.SyntaxError_(f'option "{name}" not recognized')
    if csv and "quote" in words and "escape" not in words:
        words["escape"] = words["quote"]
    return CopyOptions(**words)
