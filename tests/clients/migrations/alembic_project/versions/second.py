"""Other types, columns, constraints, indexes and comments."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql as pg

revision = "second"
down_revision = "first"

ADDED = (
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
)


def upgrade() -> None:
    op.alter_column("people", "name", type_=sa.String(80), existing_nullable=False)
    op.alter_column("people", "email", new_column_name="mail")
    op.alter_column("people", "mail", comment="an address")
    op.create_table_comment("people", "who buys")
    op.alter_column("people", "balance", type_=sa.Numeric(12, 2))
    op.alter_column("people", "age", type_=sa.SmallInteger, postgresql_using="age::smallint")
    op.drop_column("people", "old")
    for column in ADDED:
        op.add_column("people", column.copy())
    op.create_index("ix_people_mail", "people", ["mail"])
    op.create_check_constraint("solvent", "people", "balance >= 0")
    op.alter_column("purchases", "id", type_=sa.BigInteger)
    op.alter_column("purchases", "amount", type_=sa.Numeric(10, 3), nullable=False)
    op.alter_column("purchases", "kind", type_=sa.Integer, postgresql_using="kind::int", nullable=False, server_default="1")
    op.create_foreign_key("purchases_person_id_fkey", "purchases", "people", ["person_id"], ["id"], ondelete="CASCADE")
    op.create_unique_constraint("one_of_each_kind", "purchases", ["person_id", "kind"])
    op.create_index("by_kind", "purchases", ["kind", "person_id"])


def downgrade() -> None:
    op.drop_index("by_kind")
    op.drop_constraint("one_of_each_kind", "purchases")
    op.drop_constraint("purchases_person_id_fkey", "purchases", type_="foreignkey")
    op.alter_column("purchases", "kind", server_default=None)
    op.alter_column("purchases", "kind", type_=sa.String(5), nullable=True)
    op.alter_column("purchases", "amount", type_=sa.Integer, nullable=True)
    op.alter_column("purchases", "id", type_=sa.Integer)
    op.drop_constraint("solvent", "people")
    op.drop_index("ix_people_mail")
    for column in ADDED:
        op.drop_column("people", column.name)
    op.add_column("people", sa.Column("old", sa.Text))
    op.alter_column("people", "age", type_=sa.Text)
    op.alter_column("people", "balance", type_=sa.Numeric(10, 2))
    op.drop_table_comment("people")
    op.alter_column("people", "mail", comment=None)
    op.alter_column("people", "mail", new_column_name="email")
    op.alter_column("people", "name", type_=sa.String(50))
