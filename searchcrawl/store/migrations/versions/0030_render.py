"""Pages may be rendered by a browser: why a document was, and which patterns of URLs gain by it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns and the empty table."""
    op.add_column("documents", sa.Column("rendered", sa.Text(), nullable=True))
    op.add_column("former_documents", sa.Column("rendered", sa.Text(), nullable=True))
    op.create_table(
        "render_patterns",
        sa.Column("source_id", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("key", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("rendered", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("gained", sa.Integer(), nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("source_id", "key", name="pk_render_patterns"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_render_patterns_source_id"),
    )
