"""Sitemaps; canonical and display URLs of documents; blocked hosts."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from searchcrawl.failpoints import reach

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TODO = "fetch_state = 0"
_DUE = "fetch_state = 2 AND due_ms IS NOT NULL"
_INDEXED = "indexed_version IS NOT NULL"


def upgrade() -> None:
    """Adds tables and columns; existing values stay as they are."""
    _make_sitemaps()
    _make_robots_copies()
    _make_patterns()
    op.add_column("urls", sa.Column("sitemap_id", sa.Integer(), nullable=True))
    op.add_column("urls", sa.Column("lastmod_ms", sa.BigInteger(), nullable=True))
    for name in ("found_as", "display_url"):
        op.add_column("urls", sa.Column(name, sa.Text(), nullable=True))
    _index("ix_urls_sitemap_id", "urls", ["sitemap_id"], where="sitemap_id IS NOT NULL")
    _index("ix_urls_warned", "urls", ["source_id", "code"], where="code IN (959, 965)")
    reach("migrate.mid")
    op.add_column("hosts", sa.Column("answers_any", sa.SmallInteger(), server_default="0", nullable=False))
    _pause_hosts()
    op.add_column("sources", sa.Column("resend_version", sa.BigInteger(), nullable=True))
    op.add_column("documents", sa.Column("unavailable_ms", sa.BigInteger(), nullable=True))
    for name in ("canonical_key", "display_key"):
        op.add_column("documents", sa.Column(name, sa.BigInteger(), nullable=True))
        _index(f"ix_documents_{name}", "documents", ["source_id", name], where=f"{name} IS NOT NULL")
    _index("ix_documents_indexed", "documents", ["source_id", "segment", "indexed_version"], where=_INDEXED)
    _index("ix_documents_refused", "documents", ["source_id"], where="index_error IS NOT NULL")
    _count_from_indexes()
    op.drop_index("ix_documents_copies", "documents")
    heads = "code = 200 AND duplicate_of IS NULL AND state <> 0"
    _index("ix_documents_copies", "documents", ["source_id", "body_digest"], where=heads)
    _index("ix_documents_segment", "documents", ["segment", "source_id"], where="segment IS NOT NULL")
    surplus = "duplicate_of IS NOT NULL AND indexed_version IS NOT NULL"
    _index("ix_documents_surplus", "documents", ["source_id"], where=surplus)


def _count_from_indexes() -> None:
    """Indexes that hold the columns of their own conditions, which SQLite would look up row by row."""
    for name, last, where in (("todo", ["depth", "id"], _TODO), ("due", ["due_ms"], _DUE)):
        op.drop_index(f"ix_urls_{name}", "urls")
        _index(f"ix_urls_{name}", "urls", ["source_id", "host_id", *last, "fetch_state"], where=where)


def _pause_hosts() -> None:
    for name, kind in (("failures", sa.Integer()), ("closed_code", sa.Integer())):
        op.add_column("hosts", sa.Column(name, kind, server_default="0", nullable=False))
    for name in ("failed_ms", "closed_until_ms"):
        op.add_column("hosts", sa.Column(name, sa.BigInteger(), server_default="0", nullable=False))
    _index("ix_hosts_closed_until_ms", "hosts", ["closed_until_ms"], where="closed_until_ms > 0")


def _make_sitemaps() -> None:
    op.create_table(
        "sitemaps",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.BigInteger(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Integer(), nullable=True),
        sa.Column("code", sa.Integer(), server_default="0", nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("read_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_sitemaps_source_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sitemaps")),
        sa.UniqueConstraint("source_id", "key", name=op.f("uq_sitemaps_source_id_key")),
    )


def _make_robots_copies() -> None:
    op.create_table(
        "robots_copies",
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("fetched_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("origin", name=op.f("pk_robots_copies")),
    )


def _make_patterns() -> None:
    op.create_table(
        "patterns",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.BigInteger(), nullable=False),
        sa.Column("pattern", sa.Text(), nullable=False),
        sa.Column("urls", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pages", sa.Integer(), server_default="0", nullable=False),
        sa.Column("new_permille", sa.Integer(), server_default="0", nullable=False),
        sa.Column("cut", sa.Text(), nullable=True),
        sa.Column("cut_limit", sa.Integer(), nullable=True),
        sa.Column("shares", sa.LargeBinary(), nullable=True),
        sa.Column("runs", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name=op.f("fk_patterns_source_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_patterns")),
        sa.UniqueConstraint("source_id", "key", name=op.f("uq_patterns_source_id_key")),
    )


def _index(name: str, table: str, columns: list[str], *, where: str) -> None:
    # Naming a dialect loads it: only the one in use.
    partial: dict[str, Any] = {f"{op.get_bind().dialect.name}_where": sa.text(where)}
    op.create_index(name, table, columns, **partial)
