"""The tests that SQLAlchemy has for every dialect (`sqlalchemy.testing.suite`)."""

from sqlalchemy.testing.suite import *  # noqa: F403
