"""Records PostgreSQL 15's system catalog into tailgate/gateway/catalog.

It writes the columns of all relations, and the rows of those that are the same in every database.

python -m tests.gateway.catalog.record [DSN]

The DSN is that of an empty database of a new cluster. Without it, a cluster is started.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import psycopg
import pyarrow as pa

HERE = Path(__file__).parents[3] / "tailgate" / "gateway" / "catalog" / "relations"

COLUMNS = """
SELECT n.nspname, c.relname, a.attname, coalesce(b.typname, t.typname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON t.typtype = 'd' AND b.oid = t.typbasetype
WHERE n.nspname IN ('pg_catalog', 'information_schema') AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY 1, 2, a.attnum
"""
# Large and of no use to clients, or specific to this cluster.
WITHOUT_ROWS = {
    "pg_amop", "pg_amproc", "pg_authid", "pg_db_role_setting", "pg_depend", "pg_init_privs", "pg_largeobject",
    "pg_rewrite", "pg_shdepend", "pg_statistic", "pg_subscription", "pg_ts_config_map",
}  # fmt: skip
# Settings of an unconfigured server, without this cluster's folders and ports.
SETTINGS = """
SELECT name, coalesce(boot_val, '') AS setting, unit, category, short_desc, extra_desc, context, vartype, 'default' AS source,
min_val, max_val, enumvals, boot_val, boot_val AS reset_val, false AS pending_restart FROM pg_settings
"""
EXTRA = {"pg_settings": SETTINGS, "pg_keywords": "SELECT * FROM pg_get_keywords()", "pg_roles": "SELECT * FROM pg_roles"}
# Expressions as text from pg_get_expr; their node trees are not recorded.
SHOWN = {("pg_proc", "proargdefaults"): "pg_get_expr(proargdefaults, 0)"}
DROPPED = {"pg_proc": {"prosrc", "probin", "prosqlbody"}, "pg_settings": {"sourcefile", "sourceline"}}

STORED = {
    "bool": pa.bool_(), "int2": pa.int16(), "int4": pa.int32(), "int8": pa.int64(), "float4": pa.float32(), "float8": pa.float64(),
    "oid": pa.uint32(), "regproc": pa.uint32(), "regtype": pa.uint32(), "xid": pa.uint32(), "_oid": pa.list_(pa.uint32()),
    "oidvector": pa.list_(pa.uint32()), "int2vector": pa.list_(pa.int16()), "_int2": pa.list_(pa.int16()), "_text": pa.list_(pa.string()),
    "_char": pa.list_(pa.string()), "_name": pa.list_(pa.string()), "_aclitem": pa.list_(pa.string()), "_float4": pa.list_(pa.float32()),
}  # fmt: skip
CAST = {"oidvector": "oid[]", "int2vector": "int2[]", "_aclitem": "text[]", "_char": "text[]", "_name": "text[]"}
NUMBERS = {"regproc": "oid", "regtype": "oid", "xid": "text"}


def main(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        relations: dict[str, dict[str, str]] = {}
        for schema, relation, column, type in connection.execute(COLUMNS):
            relations.setdefault(f"{schema}.{relation}", {})[column] = type
        relations["pg_catalog.pg_keywords"] = {
            "word": "text",
            "catcode": "char",
            "barelabel": "bool",
            "catdesc": "text",
            "baredesc": "text",
        }
        lines = [f" {json.dumps(name)}: {json.dumps(columns)}" for name, columns in relations.items()]
        (HERE / "relations.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
        tables = [r for (r,) in connection.execute("SELECT relname FROM pg_class WHERE relnamespace = 11 AND relkind = 'r' ORDER BY 1")]
        with zipfile.ZipFile(HERE / "postgres15.zip", "w") as out:
            for name in [*(t for t in tables if t not in WITHOUT_ROWS), *EXTRA]:
                table = rows(connection, name, relations[f"pg_catalog.{name}"])
                if table.num_rows:
                    sink = pa.BufferOutputStream()
                    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
                        writer.write_table(table)
                    out.writestr(zipfile.ZipInfo(f"{name}.arrow", (1980, 1, 1, 0, 0, 0)), bytes(sink.getvalue()))


def rows(connection: psycopg.Connection[tuple[object, ...]], name: str, columns: dict[str, str]) -> pa.Table:
    kept_types = {c: t for c, t in columns.items() if c not in DROPPED.get(name, set())}
    parts = [
        SHOWN.get((name, c)) or (f'"{c}"::{(CAST | NUMBERS)[t]}' if t in CAST | NUMBERS else f'"{c}"' if t in STORED else f'"{c}"::text')
        for c, t in kept_types.items()
    ]
    source = EXTRA.get(name, f"SELECT * FROM pg_catalog.{name}")
    got = connection.execute(f"SELECT {', '.join(parts)} FROM ({source}) AS r ORDER BY 1, 2").fetchall()  # type: ignore[arg-type]
    by_column = list(zip(*got, strict=True)) or [()] * len(kept_types)
    arrays = []
    for values, type in zip(by_column, kept_types.values(), strict=True):
        numbers = [int(v) if type == "xid" and v is not None else v for v in values]  # type: ignore[call-overload]
        arrays.append(pa.array(numbers, STORED.get(type, pa.string())))
    return pa.table(dict(zip(kept_types, arrays, strict=True)))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        from testing.postgres import Postgres

        server = Postgres()
        try:
            server.start()
            main(server.dsn)
        finally:
            server.stop()
