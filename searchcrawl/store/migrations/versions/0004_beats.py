"""Leases have their last beat by the boot clock of the holder's machine as well."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds a column; a lease of an earlier release has none, and expires by the clock of the store."""
    op.add_column("leases", sa.Column("beat_ms", sa.BigInteger(), nullable=True))
