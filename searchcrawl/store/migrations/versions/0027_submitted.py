"""URLs that were submitted wait for the next run of their source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the table, empty."""
    op.create_table(
        "submitted",
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.BigInteger(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("source_id", "key", name="pk_submitted"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_submitted_source_id"),
    )
