"""Why known URLs of a source are to be visited again without validators, where an operator asked for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column."""
    op.add_column("sources", sa.Column("recrawl", sa.Text(), nullable=True))
