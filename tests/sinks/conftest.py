"""A Spark session for the tests that read a sink's messages back."""

from tests.engine.conftest import cores, session

__all__ = ["cores", "session"]
