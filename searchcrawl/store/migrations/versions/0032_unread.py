"""Bodies whose type nothing reads are remembered, and asked for conditionally."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column: nothing is remembered."""
    op.add_column("urls", sa.Column("unread", sa.Text(), nullable=True))
