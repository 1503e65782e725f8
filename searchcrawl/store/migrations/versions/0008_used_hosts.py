"""Hosts that nothing uses any more are forgotten after some time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column; no row is written, however many there are."""
    op.add_column("hosts", sa.Column("used_ms", sa.BigInteger(), nullable=False, server_default="0"))
