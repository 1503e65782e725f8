"""After an edit rows become due in slices, while the crawl runs: how far that has come."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns: no row waits."""
    op.add_column("sources", sa.Column("hasten_after", sa.BigInteger(), nullable=True))
    op.add_column("sources", sa.Column("hasten_run", sa.Integer(), nullable=True))
    op.add_column("sources", sa.Column("hasten_since_ms", sa.BigInteger(), nullable=True))
