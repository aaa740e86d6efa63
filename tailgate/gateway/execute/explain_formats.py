"""The formats of EXPLAIN's result that are documents: JSON, XML and YAML.

Source: PostgreSQL 15, src/backend/commands/explain.c (ExplainOpenGroup, ExplainProperty).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

from typing_extensions import assert_never

from tailgate.sql.statements.queries import ExplainFormat

NAMESPACE = "http://www.postgresql.org/2009/explain"


def document(query: Mapping[str, object], format: ExplainFormat) -> str:
    """Returns the document of a query: its plan and the times of the whole."""
    match format:
        case "text" | "json":
            return json.dumps([query], indent=2, ensure_ascii=False)
        case "xml":
            return "\n".join([f'<explain xmlns="{NAMESPACE}">', "  <Query>", *_xml(query, "    "), "  </Query>", "</explain>"])
        case "yaml":
            first, *others = _yaml(query, "  ")
            return "\n".join([f"- {first.strip(' ')} " if first.endswith(": ") else f"- {first.lstrip()}", *others])
        case _:
            assert_never(format)


def _xml(node: Mapping[str, object], indent: str) -> Iterator[str]:
    for name, value in node.items():
        tag = re.sub(r"[^A-Za-z0-9_.-]", "-", name)
        if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
            yield f"{indent}<{tag}>"
            if isinstance(value, Mapping):
                yield from _xml(value, indent + "  ")
            for item in () if isinstance(value, Mapping) else value:
                yield from _xml({tag.removesuffix("s"): item}, indent + "  ")
            yield f"{indent}</{tag}>"
        else:
            yield f"{indent}<{tag}>{escape(_scalar(value))}</{tag}>"


def _yaml(node: Mapping[str, object], indent: str) -> Iterator[str]:
    for name, value in node.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}: "
            yield from _yaml(value, indent + "  ")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield f"{indent}{name}: "
            for item in value:
                first, *others = _yaml(item, indent + "    ")
                yield f"{indent}  - {first.lstrip()}"
                yield from others
        else:
            yield f"{indent}{name}: {json.dumps(value, ensure_ascii=False) if isinstance(value, str) else _scalar(value)}"


def _scalar(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
