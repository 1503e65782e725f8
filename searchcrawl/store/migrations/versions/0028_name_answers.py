"""Addresses of host names, and the turns of lookups, are shared by all processes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds both tables, empty."""
    op.create_table(
        "name_answers",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("addresses", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("until_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_name_answers"),
    )
    op.create_index("ix_name_answers_until_ms", "name_answers", ["until_ms"])
    op.create_table(
        "name_turns",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("next_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("noted_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_name_turns"),
    )
