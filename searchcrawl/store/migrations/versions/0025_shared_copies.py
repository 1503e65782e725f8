"""Sources may share copies with each other: which do, and which documents have to list others anew for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column, the empty table, and the index of copies."""
    op.add_column("sources", sa.Column("shares_copies", sa.SmallInteger(), nullable=False, server_default="0"))
    op.create_table(
        "listing_dues",
        sa.Column("url_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, autoincrement=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("url_id", name="pk_listing_dues"),
    )
    op.create_index("ix_listing_dues_source_id", "listing_dues", ["source_id"])
    where = sa.text("code = 909")
    op.create_index(
        "ix_documents_copies_of", "documents", ["source_id", "url_id"], sqlite_where=where, postgresql_where=where
    )
