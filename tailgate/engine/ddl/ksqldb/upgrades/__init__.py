"""CREATE OR REPLACE of streams and tables, and ALTER … ADD COLUMN."""

from tailgate.engine.ddl.ksqldb.upgrades.declared import upgraded, with_columns
from tailgate.engine.ddl.ksqldb.upgrades.derived import filled_again, upgraded_view

__all__ = ["filled_again", "upgraded", "upgraded_view", "with_columns"]
