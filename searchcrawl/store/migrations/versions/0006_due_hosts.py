"""What is due is found by an index, however many hosts a source has."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_WHERE = "fetch_state = 2 AND due_ms IS NOT NULL AND source_id > 0"


def upgrade() -> None:
    """Adds the index."""
    op.create_index(
        "ix_urls_due_hosts",
        "urls",
        ["source_id", "due_ms", "host_id", "fetch_state"],
        sqlite_where=sa.text(_WHERE),
        postgresql_where=sa.text(_WHERE),
    )
