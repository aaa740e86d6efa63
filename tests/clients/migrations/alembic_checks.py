"""Alembic, unmodified: migrations up and down, a comparison with the models after them, and the reflection of SQLAlchemy."""

from __future__ import annotations

import sys
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic_project.models import metadata

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "clients" / "python"))
from tap import DATABASE, HOST, PORT, USER, check, done

PROJECT = Path(__file__).parent / "alembic_project"

ROWS = "SELECT p.name, p.age, u.amount::text, u.kind FROM people p JOIN purchases u ON u.person_id = p.id ORDER BY u.id"


def migrate(engine: sa.Engine, *steps: tuple[str, str]) -> None:
    """Runs `upgrade` and `downgrade` to revisions, each in a transaction."""
    for direction, revision in steps:
        with engine.begin() as connection:
            getattr(command, direction)(configuration(connection), revision)


def configuration(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(PROJECT))
    config.attributes.update(connection=connection, metadata=metadata)
    return config


def rows(engine: sa.Engine, sql: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(sa.text(sql))]


def same(got: object, expected: object) -> None:
    assert got == expected, got


def main() -> None:
    for driver in ("psycopg2", "psycopg"):
        engine = sa.create_engine(f"postgresql+{driver}://{USER}@{HOST}:{PORT}/{DATABASE}")
        with check(f"{driver}: upgrade head"):
            migrate(engine, ("upgrade", "head"))
            same(rows(engine, ROWS), [("ann", 7, "5.000", 2), ("bob", None, "6.000", 3)])
        with check(f"{driver}: the models have no difference"), engine.begin() as connection:
            command.check(configuration(connection))
        with check(f"{driver}: reflection"):
            inspector = sa.inspect(engine)
            same([column["name"] for column in inspector.get_columns("people")], [c.name for c in metadata.tables["people"].columns])
            same(inspector.get_columns("purchases")[0]["identity"]["always"], True)
            same(inspector.get_pk_constraint("people")["constrained_columns"], ["id"])
            same([key["options"] for key in inspector.get_foreign_keys("purchases")], [{"ondelete": "CASCADE"}])
            same([unique["name"] for unique in inspector.get_unique_constraints("purchases")], ["one_of_each_kind"])
            same([index["name"] for index in inspector.get_indexes("people")], ["ix_people_mail", "people_name_key"])
            same(inspector.get_table_comment("people"), {"text": "who buys"})
        with check(f"{driver}: enum types and generated columns"):
            same(rows(engine, "SELECT state::text, double::text FROM purchases ORDER BY id"), [("new", "10.000"), ("paid", "12.000")])
            same(rows(engine, "SELECT words, length, weight::text FROM ratings ORDER BY stars"), [("bad", 3, "NaN"), ("good", 4, "1.10")])
            ratings = metadata.tables["ratings"]
            with engine.begin() as connection:
                connection.execute(sa.insert(ratings).values(words="better", stars="2"))
                order = connection.execute(sa.select(ratings.c.stars, ratings.c.length).order_by(ratings.c.stars)).fetchall()
            same([tuple(row) for row in order], [("1", 3), ("2", 6), ("3", 4)])
            types = {column["name"]: column for column in inspector.get_columns("purchases")}
            same(types["state"]["type"].enums, ["new", "paid"])
            same(types["double"]["computed"]["persisted"], True)
            same([enum["name"] for enum in inspector.get_enums()], ["stars", "state"])
        with check(f"{driver}: downgrade to the first revision, and up again"):
            migrate(engine, ("downgrade", "first"))
            same(rows(engine, ROWS), [("ann", "7", "5", "2"), ("bob", None, "6", "3")])
            migrate(engine, ("upgrade", "head"))
        with check(f"{driver}: downgrade base"):
            migrate(engine, ("downgrade", "base"))
            same(sa.inspect(engine).has_table("people"), False)
            with engine.begin() as connection:
                connection.execute(sa.text("DROP TABLE alembic_version"))
        engine.dispose()
    done()


if __name__ == "__main__":
    main()
