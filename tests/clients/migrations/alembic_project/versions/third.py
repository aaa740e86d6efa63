"""An enum type, whose labels and names change, generated columns, and a numeric without a precision."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql as pg

revision = "third"
down_revision = "second"

state = pg.ENUM("new", "paid", name="state", create_type=False)


def upgrade() -> None:
    state.create(op.get_bind())
    op.add_column("purchases", sa.Column("state", state, server_default="new", nullable=False))
    op.add_column("purchases", sa.Column("double", sa.Numeric, sa.Computed("amount * 2", persisted=True)))
    op.create_table(
        "ratings",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("words", sa.Text, nullable=False),
        sa.Column("stars", sa.Enum("1", "2", "3", name="stars"), nullable=False),
        sa.Column("length", sa.Integer, sa.Computed("length(words)", persisted=True)),
        sa.Column("weight", sa.Numeric),
    )
    op.execute("UPDATE purchases SET state = 'paid' WHERE kind = 3")
    op.execute("INSERT INTO ratings (words, stars, weight) VALUES ('good', '3', 1.10), ('bad', '1', 'NaN')")


def downgrade() -> None:
    op.drop_table("ratings")
    op.execute("DROP TYPE stars")
    op.drop_column("purchases", "double")
    op.drop_column("purchases", "state")
    state.drop(op.get_bind())
