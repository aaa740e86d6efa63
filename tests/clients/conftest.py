"""The folder sqlalchemy has a suite that tests/clients/run.py runs with its own configuration."""

collect_ignore = ["sqlalchemy"]
