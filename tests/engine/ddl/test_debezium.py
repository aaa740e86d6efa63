"""Change data capture: duplicates, new snapshots, truncates, missing values, failovers."""

from __future__ import annotations

import base64
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tailgate.lake.types import Type
from tailgate.values.registry import read_column
from testing.change_data import Source, message, messages, value, with_value
from tests.engine.ddl.debezium import BAG, TABLE, json_source, mysql, postgres, row

pytestmark = pytest.mark.spark

# ---- duplicates --------------------------------------------------------------------------------------------------------------------


def test_a_repeated_part_of_the_log_changes_nothing(session: Any, schemas: str, tmp_path: Path) -> None:
    for database, schema in (("mariadb", "shop"), ("postgres", "public")):
        folder = f"{database}-avro"
        statement = f"""CREATE SOURCE s FROM KAFKA BROKER 'kafka:9092' TOPIC '{folder}.{schema}.users'
            FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{schemas}/{folder}' ENVELOPE DEBEZIUM"""
        source = Source(session, tmp_path / database, statement)
        sent = messages(folder, f"{schema}.users")
        source.send(sent)
        expected = source.counted()
        assert len(expected) == 5
        source.send(sent[3:])  # starts after the snapshot
        source.send(sent[9:])
        assert source.counted() == expected


def test_a_log_without_positions_is_applied_in_order(session: Any, tmp_path: Path) -> None:
    source = json_source(session, tmp_path, TABLE)
    plain = [
        message({"op": "c", "after": row(1, "a")}),
        message({"op": "u", "after": row(1, "b")}),
        message({"op": "c", "after": row(2, "c")}),
    ]
    source.send([*plain, message({"op": "d", "before": row(2, None)}), message(None)])
    assert source.held() == {(1, "b")}


# ---- snapshots ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_new_snapshot_deletes_missing_rows(session: Any, tmp_path: Path, partitions: int) -> None:
    """The connector lost its offsets, and row 2 was deleted in the meantime without an event."""
    source = json_source(session, tmp_path, TABLE, partitions=partitions)
    source.send([postgres("r", 100, row(1, "a"), snapshot="first"), postgres("r", 100, row(2, "b"), snapshot="last")])
    source.send([postgres("u", 150, row(1, "a2")), postgres("c", 160, row(3, "c"))])
    source.send([postgres("r", 200, row(1, "a3"), snapshot="first"), postgres("r", 200, row(3, "c"), snapshot="last")])
    assert source.held() == {(1, "a3"), (3, "c")}
    # changes from before the snapshot, which includes them
    source.send([postgres("u", 150, row(1, "a2")), postgres("c", 170, row(2, "b2"))])
    source.send([postgres("r", 100, row(2, "b"), snapshot="last")])
    assert source.held() == {(1, "a3"), (3, "c")}
    # a row of the snapshot is older than the change
    source.send([postgres("u", 201, row(1, "a4")), postgres("r", 200, row(1, "a3"))])
    assert source.held() == {(1, "a4"), (3, "c")}


def test_an_interrupted_snapshot_is_repeated(session: Any, tmp_path: Path) -> None:
    source = json_source(session, tmp_path, TABLE)
    source.send([postgres("r", 100, row(1, "a"), snapshot="first"), postgres("r", 100, row(2, "b"))])
    source.send(
        [
            postgres("r", 100, row(1, "a"), snapshot="first"),
            postgres("r", 100, row(2, "b")),
            postgres("r", 100, row(3, "c"), snapshot="last"),
        ]
    )
    assert source.held() == {(1, "a"), (2, "b"), (3, "c")}
    source.send([postgres("r", 110, row(1, "x"), snapshot="first")])
    assert source.held() == {(1, "x")}


def test_a_new_snapshot_of_a_server_with_a_new_log(session: Any, tmp_path: Path) -> None:
    source = json_source(session, tmp_path, TABLE)
    source.send([mysql("r", None, 57, 4, row(1, "a"), ts_ms=1000), mysql("c", None, 57, 90, row(2, "b"), ts_ms=1001)])
    source.send([mysql("r", None, 1, 300, row(1, "c"), ts_ms=9000), mysql("u", None, 1, 400, row(1, "d"), row(1, "c"), ts_ms=9001)])
    assert source.held() == {(1, "d")}


def test_incremental_snapshots_are_merged_with_the_log(session: Any, tmp_path: Path) -> None:
    source = json_source(session, tmp_path, TABLE)
    source.send([postgres("r", 100, row(1, "a"), snapshot="last"), postgres("c", 110, row(2, "b"))])
    source.send([postgres("r", 115, row(3, "c"), snapshot="incremental")])
    assert source.held() == {(1, "a"), (2, "b"), (3, "c")}


# ---- truncate ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 2])
def test_truncate_deletes_the_rows_of_one_table(session: Any, tmp_path: Path, partitions: int) -> None:
    source = json_source(session, tmp_path, TABLE, partitions=partitions)
    source.send([postgres("c", n, row(n, "here")) for n in range(1, 5)] + [postgres("c", 1, row(11, "there"), table="other")])
    source.send([postgres("t", 5), postgres("c", 6, row(6, "new")), postgres("c", 3, row(3, "late"))])
    assert source.held() == {(11, "there"), (6, "new")}
    source.send([postgres("t", 5)])  # a duplicate
    source.send([postgres("c", 2, row(2, "here"))])
    assert source.held() == {(11, "there"), (6, "new")}


# ---- keys --------------------------------------------------------------------------------------------------------------------------


def test_the_before_image_has_the_old_key_of_a_moved_row(session: Any, tmp_path: Path) -> None:
    """With REPLICA IDENTITY FULL, the before image has the old key."""
    source = json_source(session, tmp_path, "id int, name text, PRIMARY KEY (name) NOT ENFORCED")
    source.send([postgres("c", 1, row(1, "a")), postgres("u", 2, row(1, "b"), row(1, "a"))])
    source.send([postgres("c", 3, row(2, "c")), postgres("u", 4, row(2, "d"), row(2, "c"))])
    assert source.held() == {(1, "b"), (2, "d")}


def test_the_message_key_identifies_the_row_without_a_before_image(session: Any, tmp_path: Path) -> None:
    source = json_source(session, tmp_path, TABLE, "KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE DEBEZIUM")
    delete = {**postgres("d", 3), "key_b64": message(None, {"id": 1})["key_b64"]}
    wrapped = message(None, {"schema": {"type": "struct", "fields": [{"field": "id", "type": "int32"}]}, "payload": {"id": 2}})
    source.send([postgres("c", 1, row(1, "a")), postgres("c", 2, row(2, "b")), delete])
    assert source.held() == {(2, "b")}
    source.send([{**postgres("d", 4), "key_b64": wrapped["key_b64"]}, {**postgres("c", 5, row(5, "e")), "key_b64": None}])
    assert source.held() == set()
    assert source.reasons() == ["null key"]


def test_a_before_image_with_only_the_key(session: Any, tmp_path: Path) -> None:
    source = json_source(session, tmp_path, TABLE)
    source.send(
        [
            postgres("c", 1, row(1, "a")),
            postgres("c", 2, row(2, "b")),
            postgres("d", 3, None, {"id": 1}),
            postgres("d", 4, None, row(2, "")),
        ]
    )
    assert source.held() == set()
    source.send([postgres("d", 5)])
    assert source.reasons() == ['null in key column "id"']


# ---- values that were not sent -----------------------------------------------------------------------------------------------------

UNAVAILABLE = "__debezium_unavailable_value"


def test_an_unavailable_value_is_taken_from_the_existing_row(session: Any, tmp_path: Path) -> None:
    source = json_source(session, tmp_path, "id int, t text, j jsonb, b bytea, a text[], n int, PRIMARY KEY (id) NOT ENFORCED")
    bytes_ = base64.b64encode(b"long").decode()
    full = {"id": 1, "t": "long", "j": '{"long": true}', "b": bytes_, "a": ["long"], "n": 1}
    missing = {"t": UNAVAILABLE, "j": UNAVAILABLE, "b": base64.b64encode(UNAVAILABLE.encode()).decode(), "a": [UNAVAILABLE]}
    source.send([postgres("c", 1, full), postgres("u", 2, {"id": 1, **missing, "n": 2})])
    assert source.held() == {(1, "long", '{"long": true}', b"long", ("long",), 2)}
    source.send([postgres("u", 3, {"id": 1, **missing, "t": None, "n": 3})])
    assert source.held() == {(1, None, '{"long": true}', b"long", ("long",), 3)}
    # The key changes: the delete of the old key has the same position.
    source.send([postgres("d", 4, None, {"id": 1}), message(None)])
    source.send([postgres("c", 4, {"id": 7, **missing, "n": 4})])
    assert source.held() == {(7, None, '{"long": true}', b"long", ("long",), 4)}


def test_an_unavailable_value_without_an_existing_row_stays_a_placeholder(session: Any, tmp_path: Path) -> None:
    source = json_source(session, tmp_path, "id int, t text, j jsonb, PRIMARY KEY (id) NOT ENFORCED")
    source.send([postgres("u", 1, {"id": 1, "t": UNAVAILABLE, "j": UNAVAILABLE})])
    assert source.held() == {(1, UNAVAILABLE, f'"{UNAVAILABLE}"')}


# ---- failovers ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new"), [("0-1-{}", "0-2-{}"), ("aaaa-1:{}", "aaaa-1:{}")])
def test_transaction_numbers_continue_on_another_server(session: Any, tmp_path: Path, old: str, new: str) -> None:
    source = json_source(session, tmp_path, TABLE)
    source.send([mysql("c", old.format(8), 57, 4, row(1, "a")), mysql("u", old.format(9), 57, 90, row(1, "b"))])
    source.send([mysql("u", new.format(9), 1, 700, row(1, "b")), mysql("u", new.format(10), 1, 800, row(1, "c"))])
    source.send([mysql("u", old.format(9), 57, 90, row(1, "b"))])
    assert source.held() == {(1, "c")}


def test_transaction_numbers_of_each_mysql_server(session: Any, tmp_path: Path) -> None:
    source = json_source(session, tmp_path, TABLE)
    source.send(
        [
            mysql("c", "aaaa-1:900", 57, 4, row(1, "a")),
            mysql("u", "bbbb-1:3", 1, 800, row(1, "b")),
            mysql("u", "aaaa-1:900", 57, 4, row(1, "a")),
        ]
    )
    assert source.held() == {(1, "b")}


@pytest.mark.parametrize("columns", [TABLE, BAG])
def test_lost_state_is_rebuilt_from_the_rows(session: Any, tmp_path: Path, columns: str) -> None:
    source = json_source(session, tmp_path, columns)
    a, b = row(1, "a"), row(2, "b")
    source.send([postgres("r", 10, a, snapshot="first"), postgres("r", 10, b), postgres("r", 10, row(3, "c"), snapshot="last")])
    source.lose_state()
    source.send([postgres("u", 20, row(1, "x"), a), postgres("d", 21, None, b)])
    assert source.held() == {(1, "x"), (3, "c")}
    source.send([postgres("t", 30), postgres("c", 31, b)])
    assert source.held() == {(2, "b")}


# ---- tables without a key ----------------------------------------------------------------------------------------------------------


def test_a_table_without_a_key_is_a_bag(session: Any, tmp_path: Path) -> None:
    source = json_source(session, tmp_path, BAG)
    a, b = row(1, "a"), row(2, None)
    source.send([postgres("r", 10, a, snapshot="first"), postgres("r", 10, a), postgres("r", 10, b, snapshot="last")])
    assert dict(source.counted()) == {(1, "a"): 2, (2, None): 1}
    log = [postgres("u", 20, row(1, "x"), a), postgres("d", 21, None, b), postgres("c", 22, row(1, "x"))]
    source.send(log)
    source.send(log[1:])
    assert dict(source.counted()) == {(1, "a"): 1, (1, "x"): 2}
    # Of two overlapping transactions, the one that commits later may have lower positions.
    source.send([postgres("c", 15, row(3, "late"), sequence='["30","15"]')])
    assert dict(source.counted()) == {(1, "a"): 1, (1, "x"): 2, (3, "late"): 1}
    source.send([postgres("u", 40, row(1, "y")), postgres("d", 41)])
    assert source.reasons() == ["the change has no row before it, and the source has no key"] * 2
    source.send([postgres("r", 50, a, snapshot="first"), postgres("r", 50, b, snapshot="last")])
    assert dict(source.counted()) == {(1, "a"): 1, (2, None): 1}
    source.send(
        [postgres("r", 50, a, snapshot="first"), postgres("r", 50, b, snapshot="last"), *log]
    )  # the snapshot again, with changes from before it
    assert dict(source.counted()) == {(1, "a"): 1, (2, None): 1}
    source.send([postgres("t", 60), postgres("c", 61, b)])
    assert dict(source.counted()) == {(2, None): 1}
    source.send([postgres("u", 70, row(8, "new"), row(7, "never came")), postgres("d", 71, None, row(9, "neither"))])
    assert dict(source.counted()) == {(2, None): 1, (8, "new"): 1}


# ---- values ------------------------------------------------------------------------------------------------------------------------


def test_decimals_without_a_schema(session: Any, tmp_path: Path) -> None:
    columns = "id int, n numeric(7,2), PRIMARY KEY (id) NOT ENFORCED"
    source = json_source(session, tmp_path / "1", columns)
    source.send([postgres("c", i, {"id": i, "n": n}) for i, n in enumerate(("B8Y=", 19.9, {"scale": 1, "value": "AQ=="}, "19.90", "B8Z"))])
    assert source.held() == {(0, Decimal("19.90")), (1, Decimal("19.90")), (2, Decimal("0.10"))}
    assert len(source.reasons()) == 2
    assert "decimal_handling_mode = 'string'" in source.reasons()[0]
    strings = json_source(session, tmp_path / "2", columns, "WITH (decimal_handling_mode = 'string') FORMAT JSON ENVELOPE DEBEZIUM")
    strings.send([postgres("c", 1, {"id": 1, "n": "1234"}), postgres("c", 2, {"id": 2, "n": "B8Y="})])
    assert strings.held() == {(1, Decimal(1234))}


def test_times_without_a_schema(session: Any, tmp_path: Path) -> None:
    columns = "id int, d date, s timestamp(0), u timestamp, z timestamptz, t time(3), i interval, PRIMARY KEY (id) NOT ENFORCED"
    numbers = {"id": 1, "d": 1, "s": 1000, "u": 1000, "z": "1970-01-01T00:00:01.5+01:00", "t": 1000, "i": 1000}
    texts = {
        "id": 2,
        "d": "1970-01-02",
        "s": "1970-01-01T00:00:01Z",
        "u": "1970-01-01T00:00:01",
        "z": None,
        "t": "00:00:01Z",
        "i": "P1Y2M3DT4.5S",
    }
    for connector, unit, of_day in (("postgresql", 1, 1_000_000), ("mysql", 1000, 1000)):
        source = json_source(session, tmp_path / connector, columns)
        source.send([postgres("c", 1, numbers, connector=connector), postgres("c", 2, texts, connector=connector)])
        rows = {r[0]: r for r in source.held("id", "s", "u", "t", "i")}
        assert (rows[1][2].microsecond, rows[1][3], dict(rows[1][4])["micros"]) == (unit * 1000 % 1_000_000, of_day, 1000)
        assert rows[1][1].isoformat() == rows[2][1].isoformat() == "1970-01-01T00:00:01"
        assert (rows[2][3], dict(rows[2][4])) == (1_000_000, {"months": 14, "days": 3, "micros": 4_500_000})
    source.send([postgres("c", 3, {"id": 3, "u": 1}, connector="oracle"), postgres("c", 4, {"id": 4, "t": -1})])
    assert [r[:40] for r in source.reasons()] == ['column "t": a time of -1000 microseconds', 'column "u": the unit of its times is not']


TEXTS = {
    "inet": ("10.0.0.1/8", "x"),
    "cidr": ("10.0.0.0/8", "10.0.0.1/8"),
    "macaddr": ("08:00:2B:01:02:03", "08:00"),
    "timetz": ("13:51:30.5Z", "25:00Z"),
    "varbit": ("101", "AQ=="),
    "int4range": ("[1,4]", "[4,1]"),
    "numrange": ("[1.50,2)", "[1.50"),
    "tstzrange": ('["2026-01-02 03:04:05.5+00",)', "[yesterday"),
    "nummultirange": ("{[1.5,2)}", "{[1"),
    "money": ("12.34", "many"),
}  # a valid and an invalid text of each type


def test_texts_of_postgresqls_types(session: Any, tmp_path: Path) -> None:
    names = list(TEXTS)
    columns = ", ".join(["id int", *(f"c{i} {name}" for i, name in enumerate(names)), "PRIMARY KEY (id) NOT ENFORCED"])
    as_text = "WITH (decimal_handling_mode = 'string') FORMAT JSON ENVELOPE DEBEZIUM"
    valid = {f"c{i}": TEXTS[name][0] for i, name in enumerate(names)}
    source = json_source(session, tmp_path / "text", columns, as_text)
    invalid = [postgres("c", 10 + i, {"id": 10 + i, f"c{i}": TEXTS[name][1]}) for i, name in enumerate(names)]
    source.send([postgres("c", 1, {"id": 1, **valid}), postgres("c", 2, {"id": 2}), *invalid])
    stored = [read_column(pa.chunked_array([[TEXTS[name][0]]], pa.string()), Type(name))[0].as_py() for name in names]
    assert source.held() == {(1, *stored), (2, *(None for _ in names))}
    assert len(source.reasons()) == len(names)
    keyed = json_source(
        session, tmp_path / "key", "a inet, n int, PRIMARY KEY (a) NOT ENFORCED", "KEY FORMAT JSON VALUE FORMAT JSON ENVELOPE DEBEZIUM"
    )
    keyed.send(
        [
            message({"op": op, "after": {"a": a, "n": n}, "source": {"lsn": n}}, {"a": a}, n)
            for op, a, n in (("c", "10.0.0.1", 1), ("u", "10.0.0.1/32", 2))
        ]
    )
    assert [row[1] for row in keyed.held()] == [2]
    arrays = json_source(session, tmp_path / "arrays", "id int, a macaddr[], b varbit[], PRIMARY KEY (id) NOT ENFORCED")
    arrays.send([postgres("c", 1, {"id": 1, "a": ["08:00:2b:01:02:03", None], "b": ["101"]})])
    assert arrays.held() == {(1, ("08:00:2b:01:02:03", None), ("101",))}


def test_money_is_a_decimal(session: Any, tmp_path: Path) -> None:
    source = json_source(session, tmp_path, "id int, m money, PRIMARY KEY (id) NOT ENFORCED")
    source.send([postgres("c", i, {"id": i, "m": m}) for i, m in enumerate(("B8Y=", 19.9, {"scale": 1, "value": "AQ=="}))])
    assert source.held() == {(0, 1990), (1, 1990), (2, 10)}


def test_the_schema_determines_the_meaning_of_numbers(session: Any, tmp_path: Path) -> None:
    """A recorded message is changed: the decimal is text, and the time is in nanoseconds.

    The schema comes before or after the payload.
    """
    source = json_source(session, tmp_path, "id int, price numeric(7,2), updated_at timestamp, PRIMARY KEY (id) NOT ENFORCED")
    first, *_ = messages("postgres-jsonschema", "public.items")
    document = value(first)
    fields = next(f for f in document["schema"]["fields"] if f["field"] == "after")["fields"]
    for f in fields:
        if f["field"] == "price":
            f.update({"type": "string"})
            f.pop("name")
        if f["field"] == "updated_at":
            f["name"] = "io.debezium.time.NanoTimestamp"
    document["payload"]["after"].update({"id": 2, "price": "7.50", "updated_at": 1_500_000_000})
    other = with_value(first, document)
    document["payload"]["after"]["id"] = 3
    behind = with_value(first, {"payload": document["payload"], "schema": document["schema"]})
    source.send([first, other, first, behind, other])
    assert {(r[0], r[1], r[2].isoformat()) for r in source.held()} == {
        (1, Decimal("19.90"), "2026-01-03T10:00:00.123000"),
        (2, Decimal("7.50"), "1970-01-01T00:00:01.500000"),
        (3, Decimal("7.50"), "1970-01-01T00:00:01.500000"),
    }


def test_invalid_messages_are_dead_letters_with_reasons(session: Any, schemas: str, tmp_path: Path) -> None:
    statement = f"""CREATE SOURCE s FROM KAFKA BROKER 'kafka:9092' TOPIC 'mariadb-avro.shop.users'
        FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY '{schemas}/mariadb-avro' ENVELOPE DEBEZIUM"""
    source = Source(session, tmp_path / "avro", statement)
    good = messages("mariadb-avro", "shop.users")[0]
    bad = [
        {**good, "offset": 100, "key_b64": None},
        {**good, "offset": 101, "value_b64": base64.b64encode(b"not avro").decode()},
        {**good, "offset": 102, "value_b64": base64.b64encode(b"\0\0\0\x7f\x7f.").decode()},
    ]
    source.send([*bad, good])
    source.send(bad)
    assert len(source.held("id")) == 1
    assert source.reasons() == ["not in Confluent's wire format", "null key", "schema 32639 is not in the registry"]
    assert {letter[0] for letter in source.rows[source.items[1].id]} == {"mariadb-avro.shop.users"}
    plain = json_source(session, tmp_path / "json", TABLE)
    raw = [
        b"{",
        b"[]",
        b'{"op": "u"}',
        b'{"op": "m", "after": {"id": 1}}',
        b'{"op": "c", "after": 1}',
        b'{"op": "c", "after": {"id": "x"}}',
        b"\xff",
    ]
    plain.send([{**message(None), "offset": i, "value_b64": base64.b64encode(b).decode()} for i, b in enumerate(raw)])
    assert len(plain.reasons()) == len(raw)
    assert plain.held() == set()
