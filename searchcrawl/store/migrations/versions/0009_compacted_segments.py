"""Records that are still needed are moved out of segments into new ones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column."""
    op.add_column("segments", sa.Column("newest", sa.Integer(), nullable=True))
