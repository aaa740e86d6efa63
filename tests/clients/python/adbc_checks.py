"""Checks pandas with SQLAlchemy, and ADBC: tables in and out as data frames and Arrow."""

from decimal import Decimal

import adbc_driver_postgresql.dbapi as adbc
import pandas as pd
import pyarrow as pa
import sqlalchemy as sa
from tap import DATABASE, HOST, PORT, USER, check, done, raises

engine = sa.create_engine(f"postgresql+psycopg://{USER}@{HOST}:{PORT}/{DATABASE}")
connection = adbc.connect(f"postgresql://{USER}@{HOST}:{PORT}/{DATABASE}", autocommit=True)


def table(query, **options):
    with connection.cursor() as cursor:
        cursor.execute(query, **options)
        return cursor.fetch_arrow_table()


with check("pandas: a query"):
    frame = pd.read_sql("SELECT id, customer, amount, placed, paid FROM orders ORDER BY id", engine)
    assert frame.shape == (1000, 5)
    assert str(frame.dtypes["placed"]).startswith("datetime64")
    assert (str(frame.dtypes["id"]), str(frame.dtypes["paid"])) == ("int64", "bool")
with check("pandas: values, an index, dates"):
    frame = pd.read_sql_query(
        sa.text("SELECT * FROM orders WHERE id <= :n"), engine, params={"n": 5}, index_col="id", parse_dates=["placed"]
    )
    assert list(frame.index) == [1, 2, 3, 4, 5]
with check("pandas: a table, by reflection"):
    assert len(pd.read_sql_table("orders", engine, columns=["id", "customer"])) == 1000
    assert list(pd.read_sql_table("per_customer", engine).columns) == ["customer", "orders", "amount"]
    assert len(pd.read_sql_table("notes", engine, schema="annex")) == 0
with check("pandas: in pieces"), engine.connect().execution_options(stream_results=True) as streaming:
    assert [len(part) for part in pd.read_sql("SELECT id FROM orders", streaming, chunksize=300)] == [300, 300, 300, 100]
with check("pandas: every type"):
    frame = pd.read_sql("SELECT * FROM kinds ORDER BY id", engine)
    assert frame.shape == (4, 21)
    assert frame["a_numeric"][0] == Decimal("123456789.125")
with check("pandas: to_sql into a table that is there"):
    frame = pd.DataFrame({"client": ["pandas"] * 3, "n": [1, 2, 3], "note": ["a", None, "c"]})
    frame.to_sql("written", engine, if_exists="append", index=False, method="multi")
    actual = pd.read_sql("SELECT note FROM written WHERE client = 'pandas' ORDER BY n", engine)["note"]
    assert actual.dropna().tolist() == ["a", "c"]
    with engine.begin() as writing:
        assert writing.execute(sa.text("DELETE FROM written WHERE client = 'pandas'")).rowcount == 3
with check("pandas: to_sql makes a table, replaces and drops it"):
    making = sa.create_engine(engine.url, isolation_level="AUTOCOMMIT")
    frame = pd.DataFrame({"n": [1, 2], "at": pd.to_datetime(["2026-01-01", "2026-01-02"]), "x": [0.5, None], "t": ["a", "b"]})
    frame.to_sql("pandas_made", making, index=False)
    frame.to_sql("pandas_made", making, index=False, if_exists="replace")
    assert pd.read_sql("SELECT * FROM pandas_made ORDER BY n", making)["t"].tolist() == ["a", "b"]
    with making.connect() as writing:
        writing.execute(sa.text("DROP TABLE pandas_made"))
with check("pandas over ADBC"):
    assert pd.read_sql("SELECT count(*) AS n FROM orders", connection)["n"][0] == 1000
with check("ADBC: types become Arrow's"):
    actual = table("SELECT id, customer, placed, paid FROM orders ORDER BY id")
    assert actual.num_rows == 1000
    assert actual.schema.types == [pa.int64(), pa.string(), pa.timestamp("us", "UTC"), pa.bool_()]
with check("ADBC: every type"):
    actual = table("SELECT * FROM kinds ORDER BY id")
    assert actual.num_rows == 4
    assert actual["a_text"].to_pylist()[3] == 'two\nlines\t"quoted" \\ € 😀'
    assert actual["a_numeric"].to_pylist()[0] == "123456789.125"
    assert actual["integers"].to_pylist() == [[1, None, -3], [], None, [2147483647]]
    assert actual["a_bytea"].to_pylist() == [b"\x00\xffa", b"", None, b"\\"]
with check("ADBC: values of parameters"):
    assert table("SELECT id FROM orders WHERE id = $1", parameters=(5,)).to_pydict() == {"id": [5]}
with check("ADBC: a batch of parameters"):
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO written VALUES ($1, $2, $3)", [("adbc", n, str(n)) for n in range(1, 4)])
    assert table("SELECT n FROM written WHERE client = 'adbc' ORDER BY n")["n"].to_pylist() == [1, 2, 3]
    table("DELETE FROM written WHERE client = 'adbc'")
with check("ADBC: ingest by COPY into a table that is there"):
    data = pa.table({"client": ["adbc"] * 100, "n": pa.array(range(100), pa.int32()), "note": [None, "x"] * 50})
    with connection.cursor() as cursor:
        assert cursor.adbc_ingest("written", data, mode="append") == 100
    assert table("SELECT count(*) AS n FROM written WHERE client = 'adbc' AND note IS NULL")["n"].to_pylist() == [50]
    table("DELETE FROM written WHERE client = 'adbc'")
with check("ADBC: ingest into a new table"), connection.cursor() as cursor:
    assert cursor.adbc_ingest("adbc_made", pa.table({"a": [1, 2], "b": ["x", None]}), mode="create") == 2
    cursor.execute("DROP TABLE adbc_made")
with check("ADBC: objects of the catalog"):
    (catalog,) = connection.adbc_get_objects(depth="all", catalog_filter=DATABASE, db_schema_filter="public").read_all().to_pylist()
    (schema,) = catalog["catalog_db_schemas"]
    names = {t["table_name"]: t for t in schema["db_schema_tables"]}
    assert {"kinds", "orders", "written", "large_orders", "per_customer"} <= set(names), set(names)
    columns = sorted(names["written"]["table_columns"], key=lambda column: column["ordinal_position"])
    assert [c["column_name"] for c in columns] == ["client", "n", "note"]
    assert names["orders"]["table_constraints"][0]["constraint_type"] == "PRIMARY KEY"
with check("ADBC: schema of a table, kinds of tables, information"):
    assert connection.adbc_get_table_schema("orders").names == ["id", "customer", "amount", "placed", "paid"]
    assert "view" in connection.adbc_get_table_types()
    assert connection.adbc_get_info()["vendor_name"] == "PostgreSQL"
with check("ADBC: errors carry their SQLSTATE"):
    error = raises(adbc.ProgrammingError, table, "SELECT nosuch FROM orders")
    assert error.sqlstate == "42703"
with check("ADBC: a transaction"), adbc.connect(f"postgresql://{USER}@{HOST}:{PORT}/{DATABASE}") as other, other.cursor() as cursor:
    cursor.execute("INSERT INTO written VALUES ('adbc', 1, 'gone')")
    other.rollback()
    cursor.execute("SELECT count(*) FROM written WHERE client = 'adbc'")
    assert cursor.fetchone() == (0,)
with check("ADBC: the same as PostgreSQL's COPY, in pieces"), connection.cursor() as cursor:
    cursor.execute("SELECT * FROM orders")
    assert sum(batch.num_rows for batch in cursor.fetch_record_batch()) == 1000
connection.close()
done()
