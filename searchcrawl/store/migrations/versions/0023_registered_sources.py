"""What searches need of the file of a source is registered by its crawls."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column: the next run of a source fills it."""
    op.add_column("sources", sa.Column("registered", sa.Text(), nullable=True))
