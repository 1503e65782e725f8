"""How long each page waits for its next visit, and what the dates of each sitemap were worth."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns."""
    op.add_column("urls", sa.Column("interval_ms", sa.BigInteger(), nullable=True))
    for name in ("said_changed", "changed_as_said", "said_same", "changed_unsaid"):
        op.add_column("sitemaps", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
