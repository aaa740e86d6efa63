"""Confidential properties of connectors. Results and errors never show their values."""

from __future__ import annotations

import re
from collections.abc import Mapping

CONFIDENTIAL = re.compile(
    r"password|passwd|passphrase|secret|token|credential|jaas|private|access\.key|api\.?key|user\.info", re.IGNORECASE
)
IN_URL = re.compile(r"(?<=://)[^/@\s]+(?=@)")
MASK = "********"
SHORT = 3  # a shorter value is not looked for in a text, in which it would be found by chance


def shown(config: Mapping[str, str], definitions: Mapping[str, str]) -> dict[str, str]:
    """Returns properties without confidential values. `definitions`: the types of the plugin's properties.

    >>> shown({"tasks.max": "1", "database.password": "x", "url": "http://ann:x@host"}, {})
    {'tasks.max': '1', 'database.password': '********', 'url': 'http://********@host'}
    """
    return {name: MASK if _is_confidential(name, definitions) else IN_URL.sub(MASK, value) for name, value in config.items()}


def masked(text: str, config: Mapping[str, str], definitions: Mapping[str, str]) -> str:
    """Returns a text with a mask in the place of each confidential value of these properties."""
    values = {value for name, value in config.items() if _is_confidential(name, definitions)}
    values |= {match[0] for value in config.values() for match in IN_URL.finditer(value)}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= SHORT:
            text = text.replace(value, MASK)
    return text


def _is_confidential(name: str, definitions: Mapping[str, str]) -> bool:
    return CONFIDENTIAL.search(name) is not None or definitions.get(name) == "PASSWORD"
