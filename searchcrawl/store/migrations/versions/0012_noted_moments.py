"""When the slot and the pause of a host were noted: the clock that did may have been ahead."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns."""
    for name in ("reserved_ms", "closed_ms"):
        op.add_column("hosts", sa.Column(name, sa.BigInteger(), server_default="0", nullable=False))
