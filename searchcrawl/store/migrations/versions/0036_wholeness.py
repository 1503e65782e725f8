"""What a rendered page lacked is kept, and how its known text was made: a page that fails for a while keeps its text."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns, empty: of documents that were rendered before nothing is known."""
    for table in ("documents", "former_documents"):
        op.add_column(table, sa.Column("parts", sa.Text(), nullable=True))
    op.add_column("urls", sa.Column("lacks", sa.Text(), nullable=True))
    where = sa.text("lacks IS NOT NULL")
    op.create_index("ix_urls_lacks", "urls", ["source_id", "lacks"], sqlite_where=where, postgresql_where=where)
