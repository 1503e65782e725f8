"""Each document says which URL gave its page, where redirects led there."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_WHERE = "answered_key IS NOT NULL"
#: Visits that brought a page: what the row says of its redirects is true of the document.
_READ = (200, 909, 910, 911, 952, 956, 964, 1010)


def upgrade() -> None:
    """Adds the columns and the index; earlier releases noted that a page was redirected, and not to which URL (0)."""
    for table in ("documents", "former_documents"):
        op.add_column(table, sa.Column("answered_key", sa.BigInteger(), nullable=True))
    redirected = f"SELECT id FROM urls WHERE redirects IS NOT NULL AND code IN {_READ}"  # noqa: S608  # made of constants
    op.execute(f"UPDATE documents SET answered_key = 0 WHERE url_id IN ({redirected})")  # noqa: S608  # the same
    op.create_index(
        "ix_documents_answered_key",
        "documents",
        ["source_id", "answered_key"],
        sqlite_where=sa.text(_WHERE),
        postgresql_where=sa.text(_WHERE),
    )
