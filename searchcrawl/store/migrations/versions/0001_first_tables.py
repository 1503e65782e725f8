"""The first tables."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from searchcrawl.failpoints import reach

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Makes the tables of the first release in an empty database."""
    _make_hosts()
    _make_sources()
    _make_batches()
    _make_leases()
    _make_runs()
    _make_segments()
    _make_urls()
    _index_urls()
    reach("migrate.mid")
    _make_documents()
    _index_documents()
    _make_outlinks()


def _make_hosts() -> None:
    op.create_table(
        "hosts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("next_allowed_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_hosts")),
        sa.UniqueConstraint("name", name=op.f("uq_hosts_name")),
    )


def _make_sources() -> None:
    op.create_table(
        "sources",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sources")),
        sa.UniqueConstraint("name", name=op.f("uq_sources_name")),
    )


def _make_batches() -> None:
    op.create_table(
        "batches",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("crawl_version", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.SmallInteger(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_batches_source_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_batches_source_id_state", "batches", ["source_id", "state"], unique=False)


def _make_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("renewed_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_leases_source_id")),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_leases")),
    )


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("horizon_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.Column("end_reason", sa.Text(), nullable=True),
        sa.Column("exit_code", sa.SmallInteger(), nullable=True),
        sa.Column("fingerprint", sa.Text(), nullable=True),
        sa.Column("counts", sa.Text(), server_default="{}", nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_runs_source_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_runs_source_id", "runs", ["source_id"], unique=False)


def _make_segments() -> None:
    op.create_table(
        "segments",
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("committed_bytes", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_segments_source_id")),
        sa.PrimaryKeyConstraint("source_id", "number", name=op.f("pk_segments")),
    )


def _make_urls() -> None:
    op.create_table(
        "urls",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.BigInteger(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("host_id", sa.Integer(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("referrer_id", _ROW_ID, nullable=True),
        sa.Column("fetch_state", sa.SmallInteger(), nullable=False),
        sa.Column("code", sa.Integer(), server_default="0", nullable=False),
        sa.Column("rule", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failed_runs", sa.Integer(), server_default="0", nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=True),
        sa.Column("first_seen_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_fetched_ms", sa.BigInteger(), nullable=True),
        sa.Column("redirects", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_urls_source_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_urls")),
        sa.UniqueConstraint("source_id", "key", name=op.f("uq_urls_source_id_key")),
    )


def _index_urls() -> None:
    _index("ix_urls_due", "urls", ["source_id", "host_id", "due_ms"], where="fetch_state = 2 AND due_ms IS NOT NULL")
    _index("ix_urls_fetching", "urls", ["source_id"], where="fetch_state = 1")
    _index("ix_urls_todo", "urls", ["source_id", "host_id", "depth", "id"], where="fetch_state = 0")


def _make_documents() -> None:
    op.create_table(
        "documents",
        sa.Column("url_id", _ROW_ID, autoincrement=False, nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
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
        sa.Column("code", sa.Integer(), nullable=False),
        sa.Column("duplicate_of", _ROW_ID, nullable=True),
        sa.Column("leaving", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("index_error", sa.Text(), nullable=True),
        sa.Column("quarantine_run", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["url_id"], ["urls.id"], name=op.f("fk_documents_url_id")),
        sa.PrimaryKeyConstraint("url_id", name=op.f("pk_documents")),
    )


def _index_documents() -> None:
    op.create_index("ix_documents_batch_id", "documents", ["batch_id"], unique=False)
    op.create_index("ix_documents_copies", "documents", ["source_id", "body_digest"], unique=False)
    _index("ix_documents_duplicate_of", "documents", ["duplicate_of"], where="duplicate_of IS NOT NULL")
    _index("ix_documents_leaving", "documents", ["source_id"], where="leaving = 1")
    _index("ix_documents_pending", "documents", ["source_id", "state"], where="state IN (1, 2, 5, 6)")


def _make_outlinks() -> None:
    op.create_table(
        "outlinks",
        sa.Column("url_id", _ROW_ID, autoincrement=False, nullable=False),
        sa.Column("links", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["url_id"], ["urls.id"], name=op.f("fk_outlinks_url_id")),
        sa.PrimaryKeyConstraint("url_id", name=op.f("pk_outlinks")),
    )


def _index(name: str, table: str, columns: list[str], *, where: str) -> None:
    # Naming a dialect loads it: only the one in use.
    partial: dict[str, Any] = {f"{op.get_bind().dialect.name}_where": sa.text(where)}
    op.create_index(name, table, columns, **partial)
