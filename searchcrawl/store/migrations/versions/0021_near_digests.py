"""What a document is a near copy of has a column of its own, beside the digest of its own content."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_NEAR = "near_digest IS NOT NULL"
#: Where near copies were taken out, such a digest is that of another document, or of its own text without its menus.
_UNKNOWN = (
    "copy_digest <> fields_digest AND source_id IN (SELECT source_id FROM documents WHERE near_signature IS NOT NULL)"
)
#: No visit is answered by these: the document is decided about when its page is read again, and stays as it is till then.
_READ_AGAIN = "copy_digest = NULL, body_digest = NULL, etag = NULL, last_modified = NULL"


def upgrade() -> None:
    """Adds the columns, empty; documents of which it is not known whose digest they have are read again."""
    for table in ("former_documents", "documents"):
        op.add_column(table, sa.Column("near_digest", sa.LargeBinary(), nullable=True))
        op.execute(f"UPDATE {table} SET {_READ_AGAIN} WHERE {_UNKNOWN}")  # noqa: S608  # constants
    op.create_index(
        "ix_documents_near",
        "documents",
        ["source_id", "near_digest"],
        sqlite_where=sa.text(_NEAR),
        postgresql_where=sa.text(_NEAR),
    )
