"""Links that may not be followed are kept, a blob for each page that has any."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the table: pages that are read from now on fill it."""
    op.create_table(
        "unfollowed_links",
        sa.Column("url_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, autoincrement=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False, autoincrement=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("targets", sa.LargeBinary(), nullable=False),
        sa.Column("cut", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("url_id", "kind", name="pk_unfollowed_links"),
        sa.ForeignKeyConstraint(["url_id"], ["urls.id"], name="fk_unfollowed_links_url_id"),
    )
    op.create_index("ix_unfollowed_links_source_id", "unfollowed_links", ["source_id"])
