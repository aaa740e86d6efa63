"""The tables of TPC-H, as the specification (3.0.1, chapter 1.4) has them."""

from __future__ import annotations

from lake.catalog import Catalog, Change, Item
from lake.types import DATE, INT4, Field, Type

MONEY = Type("numeric", (15, 2))


def _text(length: int) -> Type:
    return Type("varchar", (length,))


def _char(length: int) -> Type:
    return Type("bpchar", (length,))


TABLES: dict[str, dict[str, Type]] = {
    "region": {"r_regionkey": INT4, "r_name": _char(25), "r_comment": _text(152)},
    "nation": {"n_nationkey": INT4, "n_name": _char(25), "n_regionkey": INT4, "n_comment": _text(152)},
    "part": {
        "p_partkey": INT4, "p_name": _text(55), "p_mfgr": _char(25), "p_brand": _char(10), "p_type": _text(25), "p_size": INT4,
        "p_container": _char(10), "p_retailprice": MONEY, "p_comment": _text(23),
    },
    "supplier": {
        "s_suppkey": INT4, "s_name": _char(25), "s_address": _text(40), "s_nationkey": INT4, "s_phone": _char(15), "s_acctbal": MONEY,
        "s_comment": _text(101),
    },
    "partsupp": {
        "ps_partkey": INT4, "ps_suppkey": INT4, "ps_availqty": INT4, "ps_supplycost": MONEY, "ps_comment": _text(199),
    },
    "customer": {
        "c_custkey": INT4, "c_name": _text(25), "c_address": _text(40), "c_nationkey": INT4, "c_phone": _char(15), "c_acctbal": MONEY,
        "c_mktsegment": _char(10), "c_comment": _text(117),
    },
    "orders": {
        "o_orderkey": INT4, "o_custkey": INT4, "o_orderstatus": _char(1), "o_totalprice": MONEY, "o_orderdate": DATE,
        "o_orderpriority": _char(15), "o_clerk": _char(15), "o_shippriority": INT4, "o_comment": _text(79),
    },
    "lineitem": {
        "l_orderkey": INT4, "l_partkey": INT4, "l_suppkey": INT4, "l_linenumber": INT4, "l_quantity": MONEY, "l_extendedprice": MONEY,
        "l_discount": MONEY, "l_tax": MONEY, "l_returnflag": _char(1), "l_linestatus": _char(1), "l_shipdate": DATE, "l_commitdate": DATE,
        "l_receiptdate": DATE, "l_shipinstruct": _char(25), "l_shipmode": _char(10), "l_comment": _text(44),
    },
}  # fmt: skip
KEYS = {"partsupp": (0, 1), "lineitem": (0, 3)}  # of the others: the first column


def make_catalog(kind: str = "table") -> Catalog:
    """The tables, nothing NULL."""
    catalog = Catalog()
    for name, columns in TABLES.items():
        fields = tuple(Field(c, t, False) for c, t in columns.items())
        catalog = catalog.apply(Change((Item(catalog.next_id, kind, name, fields, KEYS.get(name, (0,)), stored=True),)))
    return catalog
