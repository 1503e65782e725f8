"""How the URL of a document fits its content decides among copies; of documents that were read before nothing is known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns, empty: the copies that are known stay with the documents that stand for them."""
    for table in ("documents", "former_documents"):
        op.add_column(table, sa.Column("url_fit", sa.SmallInteger(), nullable=True))
