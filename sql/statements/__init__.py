"""Statements: text to frozen values."""

from sql.statements.values import *  # noqa: F403
