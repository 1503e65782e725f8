"""Which list of forgotten URLs was applied to the rows of a source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column."""
    op.add_column("sources", sa.Column("forgotten", sa.Text(), nullable=True))
