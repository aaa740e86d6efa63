"""The HTTP service: endpoints of the catalog as resources, answered from the same mirrors, indexes and lanes as SQL.

bytes ──► connection (httptools) ──► Request ──► callers: the role ──► routes: endpoint and parameters
│
bytes ◄── Response: ETag, gzip ◄── json_rows ◄── rows ◄── reading: index, or DuckDB at one time
"""
