"""The texts of links are kept with the links of each page, and those that are indexed of a document beside it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns and the table, empty: the next run reads every page again."""
    op.add_column("outlinks", sa.Column("texts", sa.LargeBinary(), nullable=True))
    op.add_column("former_documents", sa.Column("link_texts", sa.LargeBinary(), nullable=True))
    op.add_column("sources", sa.Column("anchors", sa.Text(), nullable=True))
    op.create_table(
        "anchors",
        sa.Column("url_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, autoincrement=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("texts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("url_id", name="pk_anchors"),
        sa.ForeignKeyConstraint(["url_id"], ["urls.id"], name="fk_anchors_url_id"),
    )
    op.create_index("ix_anchors_source_id", "anchors", ["source_id", "url_id"])
