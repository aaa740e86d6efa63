"""Checks SQLAlchemy 2 with psycopg2, psycopg 3, pg8000 and asyncpg: reflection, Core, ORM."""

import asyncio
from decimal import Decimal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from tap import DATABASE, HOST, PORT, TAILGATE, USER, check, done, raises, same_kinds


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True)
    customer: Mapped[str]
    amount: Mapped[Decimal]
    placed: Mapped[object] = mapped_column(sa.DateTime(timezone=True))
    paid: Mapped[bool]


class Written(Base):
    __tablename__ = "written"
    client: Mapped[str] = mapped_column(primary_key=True)
    n: Mapped[int] = mapped_column(primary_key=True)
    note: Mapped[str | None]


def url(driver):
    return f"postgresql+{driver}://{USER}@{HOST}:{PORT}/{DATABASE}"


def reflection(driver, engine):
    inspector = sa.inspect(engine)
    with check(f"{driver}: names"):
        assert {"kinds", "orders", "written"} <= set(inspector.get_table_names())
        assert inspector.get_view_names() == ["large_orders"]
        assert inspector.get_materialized_view_names() == ["per_customer"]
        assert {"annex", "public"} <= set(inspector.get_schema_names())
        assert inspector.get_table_names(schema="annex") == ["notes"]
        assert inspector.has_table("per_customer")
        assert not inspector.has_table("nobody")
    with check(f"{driver}: columns"):
        columns = {c["name"]: c for c in inspector.get_columns("kinds")}
        assert len(columns) == 21
        assert str(columns["a_numeric"]["type"]) == "NUMERIC(12, 3)"
        assert str(columns["a_varchar"]["type"]) == "VARCHAR(20)"
        assert columns["a_timestamptz"]["type"].timezone
        assert isinstance(columns["texts"]["type"], sa.ARRAY)
        assert not columns["id"]["nullable"]
        orders = {c["name"]: c for c in inspector.get_columns("orders")}
        assert orders["paid"]["default"] == "false"
        assert [c["name"] for c in inspector.get_columns("per_customer")] == ["customer", "orders", "amount"]
    with check(f"{driver}: keys, indexes, constraints"):
        assert inspector.get_pk_constraint("written") == {"constrained_columns": ["client", "n"], "name": "written_pkey"} | {
            k: v for k, v in inspector.get_pk_constraint("written").items() if k not in ("constrained_columns", "name")
        }
        assert [(i["name"], i["column_names"], i["unique"]) for i in inspector.get_indexes("orders")] == [
            ("orders_customer", ["customer"], False)
        ]
        assert inspector.get_foreign_keys("orders") == []
        assert inspector.get_unique_constraints("orders") == []
        assert inspector.get_check_constraints("orders") == []
        assert inspector.get_table_comment("orders") == {"text": None}
    with check(f"{driver}: definition of a view"):
        assert "amount > " in inspector.get_view_definition("large_orders").lower()
    with check(f"{driver}: the whole schema at once"):
        metadata = sa.MetaData()
        metadata.reflect(engine, views=True)
        assert {"kinds", "orders", "written", "large_orders", "per_customer"} <= set(metadata.tables)
        assert [c.name for c in metadata.tables["orders"].primary_key] == ["id"]
        assert inspector.get_multi_columns(kind=sa.engine.reflection.ObjectKind.ANY)
        assert inspector.get_enums() == []
        assert inspector.get_sequence_names() == []


def core(driver, engine):
    with check(f"{driver}: every type"), engine.connect() as connection:
        without = ("an_interval",) if driver == "pg8000" else ()
        same_kinds([dict(row) for row in connection.execute(sa.text("SELECT * FROM kinds ORDER BY id")).mappings()], without)
    with check(f"{driver}: select with joins, windows, CTEs"), engine.connect() as connection:
        orders = Order.__table__
        per = sa.select(orders.c.customer, sa.func.sum(orders.c.amount).label("total")).group_by(orders.c.customer).cte("per")
        query = (
            sa.select(orders.c.id, per.c.total, sa.func.row_number().over(partition_by=orders.c.customer, order_by=orders.c.id).label("n"))
            .join(per, per.c.customer == orders.c.customer)
            .where(orders.c.id.in_([1, 11, 2]), orders.c.paid.is_(False) | (orders.c.amount > Decimal("1.0")))
            .order_by(orders.c.id)
            .limit(2)
        )
        assert [(row.id, row.n) for row in connection.execute(query)] == [(1, 1), (2, 1)]
    with check(f"{driver}: insert, on conflict, returning, update, delete"), engine.begin() as connection:
        written = Written.__table__
        connection.execute(sa.delete(written).where(written.c.client == driver))
        connection.execute(sa.insert(written), [{"client": driver, "n": n, "note": str(n)} for n in range(1, 6)])
        upsert = insert(written).values(client=driver, n=1, note="again")
        upsert = upsert.on_conflict_do_update(index_elements=["client", "n"], set_={"note": upsert.excluded.note}).returning(written.c.note)
        assert connection.execute(upsert).scalar_one() == "again"
        assert connection.execute(sa.update(written).where(written.c.client == driver, written.c.n > 3).values(note="x")).rowcount == 2
        assert connection.execute(sa.delete(written).where(written.c.client == driver)).rowcount == 5
    with check(f"{driver}: errors by class, nested transactions"), engine.connect() as connection:
        with connection.begin():
            try:
                with connection.begin_nested():
                    connection.execute(sa.text("INSERT INTO orders VALUES (1, 'x', 1, now(), true)"))
                raise AssertionError("no error")
            except (sa.exc.IntegrityError, sa.exc.ProgrammingError):
                pass
            assert connection.scalar(sa.text("SELECT 5")) == 5
        raises(sa.exc.ProgrammingError, connection.execute, sa.text("SELECT * FROM nobody"))
    with check(f"{driver}: stream of rows"), engine.connect().execution_options(stream_results=True, max_row_buffer=100) as connection:
        assert sum(row.id for row in connection.execute(sa.text("SELECT id FROM orders"))) == 500500
    with check(f"{driver}: isolation levels, pre-ping"):
        other = sa.create_engine(url(driver), isolation_level="REPEATABLE READ", pool_pre_ping=True)
        with other.connect() as connection:
            assert connection.scalar(sa.text("SHOW transaction_isolation")) == "repeatable read"
            assert connection.get_isolation_level() == "REPEATABLE READ"
        with other.connect() as connection:
            assert connection.execution_options(isolation_level="AUTOCOMMIT").scalar(sa.text("SELECT 1")) == 1
        other.dispose()
    with check(f"{driver}: create_all and drop_all"):
        other = sa.create_engine(url(driver), isolation_level="AUTOCOMMIT")
        metadata = sa.MetaData()
        table = sa.Table(
            f"made_by_{driver}", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("note", sa.String(20), nullable=False, server_default="none"), sa.Column("at", sa.DateTime(timezone=True)),
        )  # fmt: skip
        metadata.create_all(other)
        with other.connect() as connection:
            connection.execute(sa.insert(table).values(id=1))
            assert connection.execute(sa.select(table)).one() == (1, "none", None)
        metadata.drop_all(other)
        assert not sa.inspect(other).has_table(table.name)
        other.dispose()


def orm(driver, engine):
    with check(f"{driver}: ORM: get, query, add, flush, delete"), Session(engine) as session:
        assert session.get(Order, 5).customer == "customer 5"
        assert session.scalars(sa.select(Order).where(Order.customer == "customer 3").order_by(Order.id).limit(1)).one().id == 3
        assert session.scalar(sa.select(sa.func.count()).select_from(Order)) == 1000
        session.add_all([Written(client=f"orm {driver}", n=n, note="a") for n in range(3)])
        session.flush()
        first = session.get(Written, (f"orm {driver}", 0))
        first.note = "b"
        session.commit()
        assert session.scalars(sa.select(Written.note).where(Written.client == f"orm {driver}").order_by(Written.n)).all() == [
            "b",
            "a",
            "a",
        ]
        for each in session.scalars(sa.select(Written).where(Written.client == f"orm {driver}")):
            session.delete(each)
        session.commit()


for name in ("psycopg2", "psycopg", "pg8000"):
    new_engine = sa.create_engine(url(name))
    with check(f"{name}: connects"), new_engine.connect() as first_connection:
        assert first_connection.dialect.server_version_info[0] == 15
        assert first_connection.dialect.default_schema_name == "public"
    reflection(name, new_engine)
    core(name, new_engine)
    orm(name, new_engine)
    new_engine.dispose()


async def asynchronous():
    engine = create_async_engine(url("asyncpg"))
    with check("asyncpg: connects, reflects"):
        async with engine.connect() as connection:
            assert await connection.run_sync(lambda c: sa.inspect(c).get_view_names()) == ["large_orders"]
            assert len(await connection.run_sync(lambda c: sa.inspect(c).get_columns("kinds"))) == 21
    with check("asyncpg: ORM, streams"):
        async with async_sessionmaker(engine)() as session:
            assert (await session.get(Order, 5)).amount == Decimal("6.25")
            session.add(Written(client="async", n=1, note="x"))
            await session.commit()
            await session.execute(sa.delete(Written).where(Written.client == "async"))
            await session.commit()
        async with engine.connect() as connection:
            result = await connection.stream(sa.text("SELECT id FROM orders"))
            assert sum([row.id async for row in result]) == 500500
    await engine.dispose()


asyncio.run(asynchronous())
if TAILGATE:
    with check("a materialized view in the ORM's session"):
        new_engine = sa.create_engine(url("psycopg"))
        with Session(new_engine) as session:
            session.add(Order(id=5006, customer="orm", amount=Decimal(7), placed=sa.func.now(), paid=True))
            session.commit()
            assert session.scalar(sa.text("SELECT orders FROM per_customer WHERE customer = 'orm'")) == 1
            session.delete(session.get(Order, 5006))
            session.commit()
        new_engine.dispose()
done()
