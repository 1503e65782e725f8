"""Bodies whose type nothing reads are remembered, and asked for conditionally; so are feeds that pages name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns: nothing is remembered."""
    op.add_column("urls", sa.Column("unread", sa.Text(), nullable=True))
    op.add_column("sitemaps", sa.Column("is_feed", sa.SmallInteger(), nullable=False, server_default="0"))
