"""What the limits on deleting, rejected removals and failures are counted by."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from searchcrawl.failpoints import reach

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# Pages with a document that an edited limit had refused (961, 1004) were never visited again. The next run decides.
_REOPEN = """
    UPDATE urls SET due_ms = 0 WHERE fetch_state = 2 AND due_ms IS NULL AND code IN (961, 1004)
    AND id IN (SELECT url_id FROM documents WHERE indexed_version IS NOT NULL OR state IN (1, 2, 3, 4, 7))
"""

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Adds columns and indexes; existing values stay as they are, but for rows that were never visited again."""
    op.add_column("sources", sa.Column("listed_run", sa.Integer(), nullable=True))
    op.add_column("sources", sa.Column("orphans", sa.SmallInteger(), server_default="0", nullable=False))
    op.add_column("urls", sa.Column("failures", sa.Text(), nullable=True))
    for name in ("indexed_since", "rejected_run", "removed_run"):
        op.add_column("documents", sa.Column(name, sa.Integer(), nullable=True))
    op.add_column("documents", sa.Column("evidence", sa.Text(), nullable=True))
    op.add_column("documents", sa.Column("held_state", sa.SmallInteger(), nullable=True))
    reach("migrate.mid")
    op.add_column("batches", sa.Column("removals", sa.Integer(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("batch_before", sa.Integer(), nullable=True))
    for name in ("ix_documents_leaving", "ix_documents_surplus"):
        op.drop_index(name, "documents")
    by_id = ["source_id", "url_id"]
    _index("ix_documents_leaving", "documents", by_id, where="leaving > 0")
    _index("ix_documents_quarantined", "documents", by_id, where="state = 6")
    where = "duplicate_of IS NOT NULL AND indexed_version IS NOT NULL"
    _index("ix_documents_surplus", "documents", by_id, where=where)
    _index("ix_documents_rejected", "documents", ["source_id"], where="rejected_run IS NOT NULL")
    _index("ix_documents_removed", "documents", ["removed_run"], where="removed_run IS NOT NULL")
    _index("ix_batches_removals", "batches", ["source_id"], where="removals > 0")
    _make_former_documents()
    # The documents of older stores are in the index since before all later runs.
    op.execute(_REOPEN)
    op.execute("UPDATE documents SET indexed_since = 0 WHERE indexed_version IS NOT NULL")


def _make_former_documents() -> None:
    op.create_table(
        "former_documents",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("url_id", _ROW_ID, nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("sketch", sa.LargeBinary(), nullable=False),
        sa.Column("restored", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("links", sa.LargeBinary(), nullable=True),
        sa.Column("failed_runs", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failures", sa.Text(), nullable=True),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("indexed_version", sa.BigInteger(), nullable=True),
        sa.Column("batch_id", sa.Integer(), nullable=True),
        sa.Column("segment", sa.Integer(), nullable=True),
        sa.Column("record_offset", sa.BigInteger(), nullable=True),
        sa.Column("response_bytes", sa.Integer(), nullable=True),
        sa.Column("fields_bytes", sa.Integer(), nullable=True),
        sa.Column("body_digest", sa.LargeBinary(), nullable=True),
        sa.Column("fields_digest", sa.LargeBinary(), nullable=True),
        sa.Column("mimetype", sa.Text(), nullable=True),
        sa.Column("content_length", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("last_changed_ms", sa.BigInteger(), nullable=True),
        sa.Column("canonical_key", sa.BigInteger(), nullable=True),
        sa.Column("display_key", sa.BigInteger(), nullable=True),
        sa.Column("unavailable_ms", sa.BigInteger(), nullable=True),
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("rejected_run", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["url_id"], ["urls.id"], name=op.f("fk_former_documents_url_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_former_documents")),
        sa.UniqueConstraint("url_id", name=op.f("uq_former_documents_url_id")),
    )
    op.create_index("ix_former_documents_source_id", "former_documents", ["source_id", "id"], unique=False)


def _index(name: str, table: str, columns: list[str], *, where: str) -> None:
    # Naming a dialect loads it: only the one in use.
    partial: dict[str, Any] = {f"{op.get_bind().dialect.name}_where": sa.text(where)}
    op.create_index(name, table, columns, **partial)
