"""The decoders of a source's key and value, from the formats in the source's options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tailgate.engine.plan.decoders import FormatSpec
from tailgate.engine.plan.sources.accessors import native
from tailgate.engine.plan.sources.spark_sql import name
from tailgate.lake.types import Field, field_from_json

Options = Mapping[str, Any]


def format_spec(format: Options | None) -> FormatSpec:
    """Returns the decoder of a format, `none` without one."""
    if format is None:
        return FormatSpec("none")
    match format["type"]:
        case "avro":
            access = json.dumps(format["access"], sort_keys=True) if "access" in format else ""
            return FormatSpec("avro", "", format["schema"], format.get("registry", ""), format.get("wire", True), access)
        case "csv":
            of = {"columns": len(format["names"]), "delimiter": format["delimiter"], "header": format["header"], "nulls": format["nulls"]}
            return FormatSpec("csv", schema=json.dumps(of))
        case "regex":
            return FormatSpec("regex", schema=format["pattern"])
        case "protobuf":
            return FormatSpec("protobuf", schema=format["schema"])
    return FormatSpec(format["type"])


def value_format_spec(options: Options) -> FormatSpec:
    """Returns the decoder of the value; it reads declared JSON columns directly if it can."""
    declared = declared_columns(options)
    if options["value_format"]["type"] == "json" and options["columns"] is not None and native(declared):
        return FormatSpec("json_columns", columns=_ddl(declared, " "))
    return format_spec(options["value_format"])


def declared_columns(options: Options) -> tuple[Field, ...]:
    return tuple(map(field_from_json, options["columns"] or ()))


def connect_json_spec(options: Options, columns: Sequence[Options], *, envelope: bool, before: bool) -> FormatSpec:
    """Returns the format of Debezium's JSON.

    The declared columns define the meaning of values if the message has no schema (tailgate/engine/java,
    ConnectColumn).
    """
    spec = {
        "columns": [_connect_column(c) for c in columns],
        "envelope": envelope,
        "before": before,
        "decimals": options.get("decimals", "precise"),
    }
    return FormatSpec("connect_json", schema=json.dumps(spec))


def _connect_column(column: Options) -> dict[str, Any]:
    """Returns a column for the decoder.

    `precision` has the declared digits of a time or the scale of a numeric; it is absent if none
    was declared.
    """
    field = field_from_json(dict(column))
    out: dict[str, Any] = {"name": field.name, "type": field.type.name, "spark": field.type.spark, "array": field.type.is_array}
    precision = field.type.modifiers[1] if field.type.name == "numeric" and field.type.modifiers else column.get("precision")
    return out if precision is None else {**out, "precision": precision}


def _ddl(columns: tuple[Field, ...], between: str) -> str:
    return ", ".join(f"{name(f.name)}{between}{f.type.spark}" for f in columns)
