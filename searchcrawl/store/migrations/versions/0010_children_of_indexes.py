"""The sitemaps that an index names are found without reading all sitemaps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the index."""
    where = sa.text("parent_id IS NOT NULL")
    op.create_index("ix_sitemaps_parent_id", "sitemaps", ["parent_id"], sqlite_where=where, postgresql_where=where)
