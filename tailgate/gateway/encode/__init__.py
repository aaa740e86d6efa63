"""Encodes Arrow columns as what clients read.

    pa.Table ──► columns (a whole column at a time)      ──┐
             └─► values  (a value at a time)             ──┴─► fields ──► rows: DataRow | CopyData

Package `values` writes single values. The functions of `columns` give the same bytes for results of
more than a few rows, faster; a test compares the two.

Source: PostgreSQL 15, the output and send functions of src/backend/utils/adt; tests compare with a real server.
"""
