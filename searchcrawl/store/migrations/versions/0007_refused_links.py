"""Links that are refused without a row are counted by rule and host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the table."""
    op.create_table(
        "refused_links",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=True),
        sa.Column("host", sa.Text(), nullable=True),
        sa.Column("links", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_refused_links"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_refused_links_source_id"),
    )
    op.create_index("ix_refused_links_source_id", "refused_links", ["source_id"])
