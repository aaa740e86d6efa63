"""Arrow columns to what clients read, and what clients bind to values.

    pa.Table ──► columns (a whole column at a time)      ──┐
             └─► text | binary (a value at a time)       ──┴─► fields ──► rows: DataRow | CopyData
    Bind's bytes ──► parameters ──► Python values in stored form

The value-at-a-time functions say what is right; the column-at-a-time ones are the same, faster, for results of more than a few
rows, and a test holds the two to the same bytes. What the bytes depend on besides the value is a `style.Style`.

Source: PostgreSQL 15, the output and send functions of src/backend/utils/adt; a real server is asked in the tests.
"""
