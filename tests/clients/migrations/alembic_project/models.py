"""The tables after all migrations."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql as pg

metadata = sa.MetaData()

people = sa.Table(
    "people",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(80), nullable=False, unique=True),
    sa.Column("mail", sa.Text, index=True, comment="an address"),
    sa.Column("balance", sa.Numeric(12, 2), server_default=sa.text("0")),
    sa.Column("age", sa.SmallInteger),
    sa.Column("active", sa.Boolean, server_default=sa.true(), nullable=False),
    sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now()),
    sa.Column("day", sa.Date),
    sa.Column("data", pg.JSONB),
    sa.Column("tags", pg.ARRAY(sa.Text)),
    sa.Column("uid", sa.Uuid),
    sa.Column("raw", sa.LargeBinary),
    sa.Column("wait", sa.Interval),
    sa.Column("score", sa.Double),
    sa.Column("document", sa.JSON),
    sa.Column("clock", sa.Time),
    sa.CheckConstraint("balance >= 0", name="solvent"),
    comment="who buys",
)

purchases = sa.Table(
    "purchases",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("person_id", sa.ForeignKey("people.id", ondelete="CASCADE"), nullable=False),
    sa.Column("amount", sa.Numeric(10, 3), nullable=False),
    sa.Column("kind", sa.Integer, nullable=False, server_default="1"),
    sa.Column("state", sa.Enum("new", "paid", name="state"), server_default="new", nullable=False),
    sa.Column("double", sa.Numeric, sa.Computed("amount * 2", persisted=True)),
    sa.UniqueConstraint("person_id", "kind", name="one_of_each_kind"),
    sa.Index("by_kind", "kind", "person_id"),
)

ratings = sa.Table(
    "ratings",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("words", sa.Text, nullable=False),
    sa.Column("stars", sa.Enum("1", "2", "3", name="stars"), nullable=False),
    sa.Column("length", sa.Integer, sa.Computed("length(words)", persisted=True)),
    sa.Column("weight", sa.Numeric),
)
