"""Documents keep the signature of their text where near copies are taken out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_SIGNED = "near_signature IS NOT NULL"


def upgrade() -> None:
    """Adds the column, empty, and its index."""
    op.add_column("documents", sa.Column("near_signature", sa.Text(), nullable=True))
    op.create_index(
        "ix_documents_signed",
        "documents",
        ["source_id", "url_id"],
        sqlite_where=sa.text(_SIGNED),
        postgresql_where=sa.text(_SIGNED),
    )
