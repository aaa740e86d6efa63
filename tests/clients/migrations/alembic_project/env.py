"""Alembic's environment: the connection and the models come from the program that runs the migrations."""

from __future__ import annotations

from typing import Any

from alembic import context

attributes = context.config.attributes
metadata = attributes["metadata"]


def included(object: Any, name: str | None, type: str, reflected: bool, other: Any) -> bool:
    return type != "table" or name in metadata.tables


context.configure(
    connection=attributes["connection"],
    target_metadata=metadata,
    compare_type=True,
    compare_server_default=True,
    include_object=included,
)
with context.begin_transaction():
    context.run_migrations()
