"""Nexmark's three streams, generated from a seed: persons, the auctions that they open, and bids.

Types and proportions are those of the original generator (1 person, 3 auctions and 46 bids in 50
events). The data is small, so that many events share auctions, bidders and windows. Source:
"NEXMark, a benchmark for queries over data streams" (2004). The queries in testing/queries/nexmark
are those of nexmark-flink in PostgreSQL's dialect; `<query>.duckdb.sql` is for DuckDB where its
dialect differs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tailgate.lake.types import INT4, INT8, TEXT, TIMESTAMP, Field

QUERIES = Path(__file__).parent / "queries" / "nexmark"
START = datetime(2026, 1, 1, 5, 59)
STEP = timedelta(milliseconds=700)  # between events
CHANNELS = ("Google", "Facebook", "Baidu", "Apple", "channel-1", "channel-2", "channel-3")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = ("Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne")

PERSON = (
    Field("id", INT8), Field("name", TEXT), Field("email_address", TEXT), Field("credit_card", TEXT), Field("city", TEXT),
    Field("state", TEXT), Field("date_time", TIMESTAMP), Field("extra", TEXT),
)  # fmt: skip
AUCTION = (
    Field("id", INT8), Field("item_name", TEXT), Field("description", TEXT), Field("initial_bid", INT8), Field("reserve", INT8),
    Field("date_time", TIMESTAMP), Field("expires", TIMESTAMP), Field("seller", INT8), Field("category", INT8), Field("extra", TEXT),
)  # fmt: skip
BID = (
    Field("auction", INT8), Field("bidder", INT8), Field("price", INT8), Field("channel", TEXT), Field("url", TEXT),
    Field("date_time", TIMESTAMP), Field("extra", TEXT),
)  # fmt: skip
SIDE_INPUT = (Field("key", INT8), Field("value", TEXT), Field("weight", INT4))
TABLES = {"person": PERSON, "auction": AUCTION, "bid": BID, "side_input": SIDE_INPUT}

# The function of q14, which nexmark-flink has in Java.
FUNCTION = "CREATE FUNCTION count_char(s text, c text) RETURNS bigint LANGUAGE SQL AS $$ SELECT length(s) - length(replace(s, c, '')) $$"

Row = tuple[Any, ...]


def query(name: str) -> str:
    return (QUERIES / f"{name}.sql").read_text()


def duckdb_query(name: str) -> str:
    own = QUERIES / f"{name}.duckdb.sql"
    return own.read_text() if own.exists() else query(name)


def names() -> list[str]:
    return sorted(p.stem for p in QUERIES.glob("q??.sql"))


def events(seed: int) -> Iterator[tuple[str, Row]]:
    """Yields (table, row) without end, in the order of time."""
    chance = random.Random(seed)
    people, auctions, at, n = 0, 0, START, 0
    for key in range(200):
        yield "side_input", (key, f"side {key}", key % 7)
    while True:
        at += STEP if chance.random() < 0.9 else 30 * STEP
        extra = "".join(chance.choice("abcdef ") for _ in range(chance.randrange(3, 20)))
        if n % 50 == 0:
            which = chance.randrange(len(STATES))
            yield (
                "person",
                (people, f"name {people % 40}", f"p{people}@example.com", f"{people:016d}", CITIES[which], STATES[which], at, extra),
            )
            people += 1
        elif n % 50 < 4:
            seller = chance.randrange(max(0, people - 10), people)
            expires = at + timedelta(seconds=chance.randrange(1, 120))
            first = chance.randrange(1, 1000)
            yield (
                "auction",
                (auctions, f"item {auctions}", extra[::-1], first, first * 2, at, expires, seller, 10 + chance.randrange(5), extra),
            )
            auctions += 1
        else:
            auction = chance.randrange(max(0, auctions - 12), auctions)
            channel = chance.choice(CHANNELS)
            page = f"https://www.nexmark.com/{chance.choice('abc')}/{chance.choice('de')}/item.htm?query=1"
            url = page + (f"&channel_id={chance.randrange(100)}" if chance.random() < 0.5 else "")
            price = int(10 ** chance.uniform(1, 7.5))
            yield "bid", (auction, chance.randrange(people), price, channel, url, at, extra)
        n += 1
