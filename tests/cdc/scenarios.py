"""The scenarios: a shop, a user information service, and a bank.

A scenario has tables with random rows, statements for Tailgate (an .sql file), and for each view
one query for Tailgate and one for the database. Both must return the same rows, as text.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "tailgate" / "examples"

Literals = Mapping[str, str]  # SQL literals by column


@dataclass(frozen=True)
class Table:
    """A table with random rows. Its key is `id`, below `ids`.

    `columns` are the columns of its definition, where each server replaces {instant} and {long}.
    `row` generates their values. `shown` has the expressions that the database prints, where they
    are not the column. `full` means that PostgreSQL logs whole old rows. Without `keyed`, the
    database has no key and rows may have equal ids. A `truncated` table is truncated now and then.
    """

    name: str
    columns: str
    row: Callable[[random.Random], Literals]
    ids: int
    shown: Mapping[str, str] | None = None
    full: bool = False
    keyed: bool = True
    truncated: bool = False


@dataclass(frozen=True)
class View:
    """A view. `ours` and `theirs` are its query for Tailgate and for the database.

    `sink` is the envelope of the view's sink. A view with `never` must be empty at all times, so
    that its sink has no event.
    """

    name: str
    ours: str
    theirs: str
    sink: Literal["debezium", "upsert"]
    never: bool = False


@dataclass(frozen=True)
class Scenario:
    """A scenario.

    `alters` are run in the database halfway, while the sources run. `refreshed` is a source that
    then gets a column, and the column. `example_views` are the views copied from the examples, by
    file. With `avro` the topics have Avro, otherwise JSON without schemas. `topics` exist before
    the connector writes: `pageviews`, to which visits are sent, and `transaction`, in which
    Debezium marks the begin and end of transactions. `transaction` generates a transaction; without
    it, random statements change random tables. `written` replaces {placeholders} in the statements.
    `file` names the file with the statements, by default that of the scenario.
    """

    name: str
    tables: tuple[Table, ...]
    views: tuple[View, ...]
    alters: tuple[str, ...]
    avro: bool
    topics: tuple[str, ...] = ()
    transaction: Callable[[random.Random], list[str]] | None = None
    example_views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    refreshed: tuple[str, str] | None = None
    written: Mapping[str, str] = field(default_factory=dict)
    file: str = ""

    def statements(self) -> list[str]:
        """Returns the statements that create sources, the views of the examples, further views, and sinks."""
        own = [self._with_values(s) for s in _statements(HERE / f"{self.file or self.name}.sql")]
        views = [s for file, names in self.example_views.items() for s in _statements(EXAMPLES / file) if _created_name(s) in names]
        sources = [s for s in own if s.startswith("CREATE SOURCE")]
        return [*sources, *views, *own[len(sources) :]]

    def _with_values(self, statement: str) -> str:
        for placeholder, text in self.written.items():
            statement = statement.replace(f"{{{placeholder}}}", text)
        return statement


def _statements(file: Path) -> list[str]:
    lines = [line for line in file.read_text().splitlines() if not line.startswith("--")]
    return [statement.strip() for statement in "\n".join(lines).split(";\n") if statement.strip()]


def _created_name(statement: str) -> str | None:
    """Returns the name of the view that a statement creates."""
    match = re.match(r"CREATE (?:MATERIALIZED )?VIEW (\w+)", statement)
    return match and match[1]


# ---- scenario 1 --------------------------------------------------------------------------------

USERS, ITEMS = 200, 40
CHANNELS = ("organic search", "paid search", "referral", "social", "display")


def _text(r: random.Random, *words: str) -> str:
    return "'" + f"{r.choice(words)} {r.randrange(1000)}" + "'"


def _instant(r: random.Random) -> str:
    return f"'2026-0{r.randint(1, 9)}-1{r.randrange(10)} 1{r.randrange(10)}:00:{r.randrange(60):02}.{r.randrange(10**6):06}'"


def _user(r: random.Random) -> Literals:
    return {
        "email": _text(r, "ada@example.org", "zoë@example.org", "it''s@example.org", "🚀@example.org"),
        "is_vip": r.choice(("TRUE", "FALSE", "FALSE")),
        "created_at": _instant(r),
        "updated_at": _instant(r),
    }


def _item(r: random.Random) -> Literals:
    return {"name": _text(r, "book", "game", "tool"), "category": r.choice(("'a'", "'b'", "NULL")), "price": f"{r.randrange(100000) / 100}"}


def _purchase(r: random.Random) -> Literals:
    return {
        "user_id": str(r.randrange(USERS)),
        "item_id": str(r.randrange(ITEMS)),
        "quantity": str(r.randint(1, 9)),
        "purchase_price": f"{r.randrange(-(10**5), 10**7) / 100}",
    }


SHOP = Scenario(
    "shop",
    (
        Table(
            "users",
            "email VARCHAR(120) NOT NULL, is_vip BOOLEAN NOT NULL, created_at {instant}, updated_at {instant}",
            _user,
            USERS,
        ),
        Table(
            "items",
            "name VARCHAR(100) NOT NULL, category VARCHAR(20), price DECIMAL(9,2) NOT NULL",
            _item,
            ITEMS,
            full=True,
            truncated=True,
        ),
        Table(
            "purchases",
            "user_id INT NOT NULL, item_id INT NOT NULL, quantity INT NOT NULL, purchase_price DECIMAL(12,2) NOT NULL",
            _purchase,
            1500,
        ),
    ),
    (
        View(
            "pageviews_by_user_segment",
            "SELECT is_vip::int, channel, extract(epoch FROM ts_hour)::bigint, pageview_count FROM pageviews_by_user_segment",
            "SELECT CASE WHEN is_vip THEN 1 ELSE 0 END, concat('\"', channel, '\"'), received_at - received_at % 3600, count(*)"
            " FROM users JOIN pageviews ON pageviews.user_id = users.id GROUP BY 1, 2, 3",
            "debezium",
        ),
        View(
            "purchase_summary",
            "SELECT item_id, revenue, orders, items_sold FROM purchase_summary",
            "SELECT item_id, sum(purchase_price * quantity), count(id), sum(quantity) FROM purchases GROUP BY 1",
            "upsert",
        ),
        View(
            "high_value_customers",
            "SELECT id, email, lifetime_value, purchases FROM high_value_customers",
            "SELECT users.id, users.email, sum(purchase_price * quantity), count(*)"
            " FROM users JOIN purchases ON purchases.user_id = users.id GROUP BY 1, 2 HAVING sum(purchase_price * quantity) > 100",
            "debezium",
        ),
    ),
    alters=("ALTER TABLE users ADD COLUMN score DECIMAL(5,1) DEFAULT 1.5",),
    avro=True,
    refreshed=("users", "score"),
    topics=("pageviews",),
    example_views={
        "shop/statements.sql": ("pageviews", "pageviews_by_user_segment"),
        "shop/longer.sql": ("purchase_summary", "high_value_customers"),
    },
)

# ---- scenario 5 ---------------------------------------------------------------------------------

PEOPLE, TWEETS = 150, 1200


def _person(r: random.Random) -> Literals:
    long = f"repeat('{r.choice('abc')}', {r.randint(2500, 4000)})"  # TOASTed by PostgreSQL: updates of other columns do not send it
    return {
        "username": _text(r, "ada", "bob", "zoë", "🚀"),
        "name": _text(r, "Ada", "Bob"),
        "description": r.choice((long, "'short'", "NULL", "''")),
        "joined_at": _instant(r),
    }


def _tweet(r: random.Random) -> Literals:
    return {"user_id": str(r.randrange(PEOPLE)), "text": _text(r, "hello", "what''s up", '"so"', "NULL")}


def _follow(r: random.Random) -> Literals:
    return {"follower_id": str(r.randrange(PEOPLE)), "followee_id": str(r.randrange(PEOPLE))}


def _like(r: random.Random) -> Literals:
    return {"user_id": str(r.randrange(PEOPLE)), "tweet_id": str(r.randrange(TWEETS))}


def _note(r: random.Random) -> Literals:
    return {"body": r.choice(("'one'", "'two'", "NULL"))}


def _count(table: str, column: str) -> str:
    return f"(SELECT count(*) FROM {table} WHERE {table}.{column} = u.id)"


SERVICE = Scenario(
    "service",
    (
        Table(
            "users",
            "username VARCHAR(60) NOT NULL, name VARCHAR(60), description {long}, joined_at {instant}",
            _person,
            PEOPLE,
            {"description": "md5(description)"},
        ),
        Table("tweets", "user_id BIGINT NOT NULL, text VARCHAR(200)", _tweet, TWEETS),
        Table("follows", "follower_id BIGINT NOT NULL, followee_id BIGINT NOT NULL", _follow, 1200, full=True),
        Table("likes", "user_id BIGINT NOT NULL, tweet_id BIGINT NOT NULL", _like, 1500, truncated=True),
        Table("notes", "body VARCHAR(60)", _note, 60, full=True, keyed=False),
    ),
    (
        View(
            "user_information",
            "SELECT id, username, name, md5(description), joined_at, tweet_count, following_count, follower_count, like_count"
            " FROM user_information",
            f"SELECT id, username, name, md5(description), joined_at, {_count('tweets', 'user_id')}, {_count('follows', 'follower_id')},"
            f" {_count('follows', 'followee_id')}, {_count('likes', 'user_id')} FROM users u",
            "debezium",
        ),
        View(
            "popular",
            "SELECT tweet_id, likes FROM popular",
            "SELECT tweet_id, count(*) FROM likes JOIN tweets ON tweets.id = likes.tweet_id GROUP BY 1 HAVING count(*) > 1",
            "upsert",
        ),
    ),
    alters=("ALTER TABLE tweets ADD COLUMN language VARCHAR(8) DEFAULT 'en'",),
    avro=False,
    example_views={"user_information/statements.sql": ("user_information",)},
)

# ---- whole transactions -------------------------------------------------------------------------

ACCOUNTS = 40


def _transfer(r: random.Random) -> list[str]:
    one, other = r.sample(range(ACCOUNTS), 2)
    amount = r.randint(1, 100)
    return [
        f"UPDATE accounts SET balance = balance - {amount} WHERE id = {one}",
        f"INSERT INTO transfers (id, source, target, amount) VALUES ({r.randrange(10**7, 10**15)}, {one}, {other}, {amount})",
        f"UPDATE accounts SET balance = balance + {amount} WHERE id = {other}",
    ]


_MOVED = "(SELECT coalesce(sum(amount), 0) FROM transfers WHERE {} = accounts.id)"
_BALANCE = f"{_MOVED.format('target')} - {_MOVED.format('source')}"

BANK = Scenario(
    "bank",
    (
        Table("accounts", "balance BIGINT NOT NULL", lambda r: {"balance": "0"}, ACCOUNTS),
        Table(
            "transfers",
            "source BIGINT NOT NULL, target BIGINT NOT NULL, amount BIGINT NOT NULL",
            lambda r: {"source": str(r.randrange(ACCOUNTS)), "target": str(r.randrange(ACCOUNTS)), "amount": "0"},
            ACCOUNTS,
        ),
    ),
    (
        View("balances", "SELECT id, balance, moved FROM balances", f"SELECT id, balance, {_BALANCE} FROM accounts", "debezium"),
        View("halves", "SELECT id FROM halves", f"SELECT id FROM accounts WHERE balance <> {_BALANCE}", "debezium", never=True),
    ),
    alters=("ALTER TABLE accounts ADD COLUMN owner VARCHAR(8)",),
    avro=False,
    topics=("transaction",),
    transaction=_transfer,
    written={
        "format": "FORMAT JSON",
        "accounts": "(id bigint, balance bigint, PRIMARY KEY (id) NOT ENFORCED)",
        "transfers": "(id bigint, source bigint, target bigint, amount bigint, PRIMARY KEY (id) NOT ENFORCED)",
    },
)
BANK_AVRO = replace(
    BANK,
    name="bank_avro",
    file="bank",
    avro=True,
    alters=("ALTER TABLE accounts ADD COLUMN owner VARCHAR(8) DEFAULT 'ann'",),
    refreshed=("accounts", "owner"),
    written={
        "format": "FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY 'http://schema-registry:8081'",
        "accounts": "",
        "transfers": "",
    },
)

SCENARIOS = {scenario.name: scenario for scenario in (SHOP, SERVICE, BANK, BANK_AVRO)}
