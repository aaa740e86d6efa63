"""Tests that reading and writing the catalog keeps every field, also those added by newer versions."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from tailgate.lake.catalog import Catalog, Change, Item
from tailgate.lake.catalog.codec import decode_catalog, decode_change, decode_item, encode_catalog, encode_change, encode_item
from tailgate.lake.catalog.resolution import authority
from tailgate.lake.catalog.roles import Access, Granted
from tailgate.lake.constraints import version
from tailgate.lake.errors import FeatureNotSupported

INT8 = {"name": "int8"}
COLUMN = {"name": "id", "type": INT8, "nullable": False}
ACCESS = {"protocol": "SASL_SSL", "username": "ann", "password": {"secret": 16390}, "ca": {"file": "ca.pem"}}
AVRO = {"type": "avro", "schema": '"long"', "registry": "http://r", "access": ACCESS}

# a stored item of each kind, with all options, as written by the version before items had classes
OPTIONS: dict[str, dict[str, Any]] = {
    "source": {
        "brokers": "k:9092", "topic": "t", "channel": "k:9092#0/t", "kafka": ACCESS, "envelope": "debezium",
        "value_format": AVRO, "key_format": {"type": "protobuf", "schema": "{}"},
        "columns": [{**COLUMN, "precision": 3}, {**COLUMN, "name": "b"}], "primary_key": ["id"],
        "include": [["key", None], ["timestamp", "ts"], ["header", "h", "trace", True]], "materialized": True, "decimals": "string",
        "on_error": "fail", "paused": True, "timestamp": "at", "max_message_bytes": 10, "max_records_per_second": 20,
        "added": ["b"], "first_columns": 1,
        "start": {"0": 5}, "topic_id": "x", "registry": "http://r", "lost": ["some"], "dead_letter_retention_ms": 1,
        "dead_letter_retention_bytes": 2, "retain_history_ms": 3,
        "transactions": {
            "source": 16384, "topic": "ends", "topic_id": None, "collection": "c",
            "marks": {"type": "json"}, "block": {"type": "avro", "schema": "{}", "wire": False},
        },
    },
    "dead letters": {},
    "table": {
        "defaults": {"id": "1"}, "constraint": "pk", "checks": [{"name": "c", "text": "id > 0", "columns": [0]}],
        "identity": {"id": "always"}, "generated": {"total": "price * 2"}, "retain_history_ms": 3,
        "storage": {
            "parameters": {"fillfactor": "70"},
            "columns": {"0": {"statistics": 5, "storage": "e", "compression": "p", "parameters": {"n_distinct": "5"}}},
            "replica_identity": "i", "replica_index": 16502,
        },
    },
    "view": {"widths": {"16384": 2}, "group": 16400, "numeric_rules": 2, "comments": {"": "a view", "id": "its key"}},
    "materialized view": {
        "widths": {"16384": 2}, "group": 16400, "numeric_rules": 2, "nodes": [["d", 16777216], ["e", 16777217]], "next_node": 2, "fills": 1,
        "sizes": {"16384": 100}, "join_columns": {"16384": [0, 2]}, "starts": {"16384": {"0": 5, "1": 7}},
        "filled": {"16384": [{"0": 9}, 1000], "16386": [{}, None]},
        "stale": 1000, "failed": {"time": 1000, "message": "no"}, "on_error": "skip", "anew": True, "retain_history_ms": 3, "paused": True,
    },
    "view errors": {"group": 16400, "anew": True},
    "sink": {
        "widths": {"16384": 2}, "brokers": "k:9092", "topic": "t", "kafka": ACCESS, "key": [0], "envelope": "upsert", "snapshot": False,
        "value_format": {"type": "avro", "registry": "http://r", "access": {}}, "key_format": {"type": "json"}, "headers": 1,
        "constant_headers": [["a", "b"]], "query": True, "with": {"partition_count": 3, "topic.a": ["b", 1, True]},
    },
    "function": {
        "widths": {"16384": 2}, "group": 16400, "comments": {"": "one"},
        "returns": {"name": "", "type": {"name": "record"}, "nullable": True},
        "defaults": ["1"], "rows": [COLUMN], "strict": True, "volatility": "stable",
    },
    "index": {
        "columns": [1, 0], "descending": [True, False], "nulls_first": [True, False], "include": [2], "unique": True, "method": "hash",
        "storage": {"parameters": {"fillfactor": "70"}},
    },
    "domain": {
        "default": "1", "not_null": True,
        "checks": [{"name": "positive", "text": "VALUE > 0", "columns": [], "valid": False, "comment": "c"}],
    },
    "composite": {},
    "enum": {"labels": [[4294967296, "sad"], [8589934592, "ok"]]},
    "sequence": {
        "type": "int4", "start": 1, "increment": 2, "minimum": -5, "maximum": 9, "cache": 3, "cycle": True, "position": 7, "called": True,
        "series": 4, "column": "id",
    },
    "subscription": {"retention_ms": 5, "snapshot": True, "progress": False},
    "endpoint": {
        "widths": {"16384": 2}, "method": "GET", "path": "/a/:id", "parameters": [COLUMN], "defaults": {"id": "1", "x": None},
        "numbers": "text",
    },
    "secret": {"sealed": "abc"},
    "alert": {
        "widths": {"16384": 2}, "objective": 16502, "hold_ms": 10000, "severity": "ticket",
        "webhooks": [{"url": "http://h/a", "format": "alertmanager", "secret": 16503}], "commands": ["page.sh"],
        "topics": [{"topic": "t", "brokers": "k:9092", "kafka": ACCESS}],
    },
    "objective": {"limits_ms": {"p95": 5000, "max": 10000}, "window_ms": 60000, "availability_ppm": 999000},
    "type": {"definition": "STRUCT<NAME VARCHAR, CODES ARRAY<DECIMAL(4, 2)>>"},
    "connection": {"type": "kafka", "brokers": "k:9092", "settings": ACCESS},
}  # fmt: skip


def stored(kind: str, options: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": 16500, "kind": kind, "name": "x", "columns": [COLUMN], "key": [0], "stored": True, "errors": 16501, "depends": [16384],
        "sql": "CREATE …", "query": "SELECT 1", "options": options, "ready": False, "owner": 7, "replaces": 5, "schema": 2200,
    }  # fmt: skip


def through(data: dict[str, Any]) -> dict[str, Any]:
    encoded: dict[str, Any] = json.loads(json.dumps(encode_item(decode_item(data))))
    return encoded


def test_each_kind_has_an_example() -> None:
    assert set(OPTIONS) == {kind.kind for kind in get_args(Item)}


@pytest.mark.parametrize("kind", OPTIONS)
def test_the_stored_form_is_the_same(kind: str) -> None:
    data = stored(kind, OPTIONS[kind])
    assert through(data) == data
    item = decode_item(data)
    assert item.kind == kind and decode_item(encode_item(item)) == item
    assert list(encode_item(item)) == list(data)  # the order of the members, too


@pytest.mark.parametrize("kind", OPTIONS)
def test_additions_of_a_newer_version_are_kept(kind: str) -> None:
    """Unknown members of the item, of its options, and of the objects in these."""

    def grown(value: Any) -> Any:
        match value:
            case {"name": _, "type": _} | {"secret": _} | {"protocol": _}:
                return value
            case {"type": _} | {"collection": _} | {"text": _} | {"message": _}:
                return {**{name: grown(part) for name, part in value.items()}, "later": [{"a": 1}]}
            case dict():
                return {name: grown(part) for name, part in value.items()}
            case list():
                return [grown(part) for part in value]
        return value

    data = {**stored(kind, {**grown(OPTIONS[kind]), "newer": {"b": 2}}), "newest": [3]}
    assert through(data) == data


def test_roles_schemas_and_privileges_keep_unknown_fields() -> None:
    role = {"id": 9, "name": "r", "login": True, "superuser": False, "verifier": None, "member_of": {"7": True}, "later": 1}
    schema = {"id": 8, "name": "s", "owner": 9, "comment": "", "later": 2}
    entry = {"grantee": 9, "grantor": 10, "privileges": ["CREATE", "USAGE"], "options": ["USAGE"], "later": 3}
    access = [{"id": 8, "entries": [entry], "later": 4}, {"id": 6, "columns": {"0": [entry]}}]
    catalog = {"items": [], "next_id": 16384, "roles": [role], "schemas": [schema], "access": access}
    assert encode_catalog(decode_catalog(catalog)) == catalog
    change = {
        "put": [], "drop": [5], "put_roles": [role], "drop_roles": [6], "put_schemas": [schema], "drop_schemas": [7], "put_access": access,
    }  # fmt: skip
    assert encode_change(decode_change(change)) == change
    assert decode_change({"put": [], "drop": []}) == Change() and decode_catalog({"items": [], "next_id": 16384}) == Catalog()


def test_privileges_of_an_earlier_version() -> None:
    """Roles contained the privileges that owners had granted to them, PUBLIC those on the schema public."""

    def role(id: int, grants: object, **others: object) -> dict[str, object]:
        return {"id": id, "name": f"r{id}", "login": True, "superuser": False, "verifier": None, "grants": grants, **others}

    def letters(catalog: Catalog, id: int) -> list[tuple[int, int, str]]:
        entries = catalog.entries(catalog.items.get(id) or catalog.all_schemas()[id])
        return [(e.grantee, e.grantor, " ".join(sorted(e.privileges))) for e in entries]

    items = [{**stored("table", {}), "id": 100, "owner": 9}, {**stored("enum", {"labels": []}), "id": 101, "name": "e", "owner": 9}]
    roles = [role(7, {"100": ["SELECT"], "99": ["SELECT"]}, column_grants={"100": {"0": ["UPDATE"]}}), role(9, {"100": ["SELECT"]})]
    catalog = decode_catalog({"items": items, "next_id": 16384, "roles": [*roles, role(0, {"101": ["USAGE"]})]})
    owners = "DELETE INSERT REFERENCES SELECT TRIGGER TRUNCATE UPDATE"
    assert letters(catalog, 100) == [(9, 9, owners), (7, 9, "SELECT")]
    assert letters(catalog, 101) == [(0, 9, "USAGE"), (9, 9, "USAGE")] and letters(catalog, 2200) == [(10, 10, "CREATE USAGE")]
    assert [sorted(e.privileges) for e in catalog.access[100].columns[0]] == [["UPDATE"]] and set(catalog.access) == {100, 2200}
    later = catalog.apply(decode_change({"put": [], "drop": [], "put_roles": [role(7, {"100": ["INSERT"]})]}))
    assert letters(later, 100) == [(9, 9, owners), (7, 9, "INSERT")] and not later.access[100].columns
    assert decode_catalog(encode_catalog(later)) == later and all(r.grants is None for r in later.roles.values())
    assert set(later.apply(Change(drop=(100,))).access) == {2200}
    of_another = later.apply(decode_change({"put": [{**items[0], "owner": 8}], "drop": []}))
    assert letters(of_another, 100) == [(8, 8, owners), (7, 8, "INSERT")]


def test_privileges_change_the_authority() -> None:
    """Names that were resolved before a GRANT are refused after it."""
    entries = (Granted(9, 10, frozenset(("SELECT",))), Granted(9, 10, frozenset(("SELECT",)), frozenset(("SELECT",))))
    lists = (
        Access(16384, entries[:1]),
        Access(16384, entries[1:]),
        Access(16384, None, {0: entries[:1]}),
        Access(16384, None, {1: entries[:1]}),
    )
    assert len({authority({}, {}, access) for access in ({}, *({16384: each} for each in lists))}) == 5


def test_digests_of_an_earlier_version() -> None:
    """An engine of 28 November 2026 compares these digests with those of gateways of this version."""

    def item(id: int, kind: str, name: str, columns: list[str], options: object) -> dict[str, object]:
        fields = [{"name": name, "type": {"name": type}, "nullable": i > 0} for i, (name, type) in enumerate(map(str.split, columns))]
        depends, key = ([], [0]) if columns else ([16385], [])
        common = {"schema": 2200, "owner": 10, "sql": "", "replaces": 0}
        return {"id": id, "kind": kind, "name": name, "columns": fields, "key": key, "depends": depends, "options": options, **common}

    foreign_key = {"name": "rows_fk", "columns": [1], "table": 16384, "references": [0], "on_delete": "cascade"}
    items = [
        item(16384, "table", "writers", ["id int4", "name text"], {"constraint": "writers_pkey"}),
        item(16385, "table", "rows", ["k int8", "writer int4", "n numeric"], {"constraint": "rows_pkey", "foreign_keys": [foreign_key]}),
        item(16386, "index", "rows_i", [], {"columns": [2, 1], "descending": [False] * 2, "nulls_first": [False] * 2, "unique": True}),
    ]
    roles = [
        {"id": 7, "name": "ann", "login": True, "superuser": False, "verifier": None, "grants": {}},
        {"id": 8, "name": "b", "login": False, "superuser": True, "verifier": "x", "grants": {}, "member_of": {"7": True}},
    ]
    catalog = decode_catalog({"items": items, "next_id": 16400, "roles": roles, "schemas": [{"id": 16390, "name": "s", "owner": 7}]})
    assert [version(catalog.items[id], catalog) for id in (16384, 16385)] == ["8bd722a898a90386", "a2767170ac88e8ac"]
    assert authority(catalog.roles, catalog.schemas, catalog.access) == "2d12febdb1ab271a"


def test_an_item_of_an_older_version() -> None:
    """Members and options that were added later have their defaults."""
    data = stored("table", {})
    for name in ("owner", "replaces", "schema"):
        del data[name]
    table = decode_item(data)
    assert (table.owner, table.replaces, table.schema) == (10, 0, 2200)
    assert encode_item(table)["options"] == {"defaults": {}, "constraint": None}


@pytest.mark.parametrize(
    "data",
    [stored("task", {}), stored("source", {**OPTIONS["source"], "value_format": {"type": "thrift"}})],
)
def test_an_unknown_kind_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(FeatureNotSupported, match="does not know"):
        decode_item(data)
