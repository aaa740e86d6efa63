"""The functions of ksqlDB as data."""

from tailgate.sql.ksqldb.functions.catalogue import AGGREGATE_NAMES, FAMILIES, LAMBDA_NAMES, ROWS, TABLE_NAMES, find, refused, variants
from tailgate.sql.ksqldb.functions.entry import Function

__all__ = ["AGGREGATE_NAMES", "FAMILIES", "LAMBDA_NAMES", "ROWS", "TABLE_NAMES", "Function", "find", "refused", "variants"]
