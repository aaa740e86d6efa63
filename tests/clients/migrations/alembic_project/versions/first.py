"""Two tables with rows."""

import sqlalchemy as sa
from alembic import op

revision = "first"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("email", sa.Text),
        sa.Column("balance", sa.Numeric(10, 2), server_default=sa.text("0")),
        sa.Column("age", sa.Text),
        sa.Column("old", sa.Text),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "purchases",
        sa.Column("id", sa.Integer, sa.Identity(always=True), primary_key=True),
        sa.Column("person_id", sa.Integer, nullable=False),
        sa.Column("amount", sa.Integer),
        sa.Column("kind", sa.String(5)),
    )
    op.execute("INSERT INTO people (name, email, age) VALUES ('ann', 'a@b', '7'), ('bob', NULL, NULL)")
    table = sa.table("purchases", sa.column("person_id"), sa.column("amount"), sa.column("kind"))
    op.bulk_insert(table, [{"person_id": 1, "amount": 5, "kind": "2"}, {"person_id": 2, "amount": 6, "kind": "3"}])


def downgrade() -> None:
    op.drop_table("purchases")
    op.drop_table("people")
