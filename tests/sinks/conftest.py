"""A Spark session for the tests that read a sink's messages back."""

from tests.engine.ddl.conftest import session

__all__ = ["session"]
