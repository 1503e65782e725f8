"""Feeds may be written as deltas: what their files say of each document is kept."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the tables, empty."""
    op.create_table(
        "feeds",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("file", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_feeds"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_feeds_source_id"),
        sa.UniqueConstraint("source_id", "name", name="uq_feeds_source_id_name"),
        sqlite_autoincrement=True,
    )
    key = ["source_id", "feed_id", "url_id", "url_key"]
    op.create_table(
        "feed_documents",
        sa.Column("source_id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("feed_id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("url_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, autoincrement=False),
        sa.Column("url_key", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("version", sa.BigInteger()),
        sa.Column("staged", sa.BigInteger()),
        sa.PrimaryKeyConstraint(*key, name="pk_feed_documents"),
    )
    where = sa.text("staged IS NOT NULL")
    op.create_index("ix_feed_documents_staged", "feed_documents", key, sqlite_where=where, postgresql_where=where)
