"""Copies are found by what is indexed of documents, and no longer by their bodies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_SURVIVORS = "code = 200 AND duplicate_of IS NULL AND state <> 0"


def upgrade() -> None:
    """Adds the column: the digest that documents have anyway. Nothing is decided anew before a page is processed again."""
    for table in ("documents", "former_documents"):
        op.add_column(table, sa.Column("copy_digest", sa.LargeBinary(), nullable=True))
        op.execute(f"UPDATE {table} SET copy_digest = fields_digest WHERE length(fields_digest) > 0")  # noqa: S608  # a constant
    op.drop_index("ix_documents_copies", "documents")
    op.create_index(
        "ix_documents_copies",
        "documents",
        ["source_id", "copy_digest"],
        sqlite_where=sa.text(_SURVIVORS),
        postgresql_where=sa.text(_SURVIVORS),
    )
