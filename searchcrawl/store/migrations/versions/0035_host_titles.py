"""The titles that pages of a host share are kept, frozen at the end of each completed run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the table: the next completed run fills it."""
    op.create_table(
        "host_titles",
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sample", sa.LargeBinary(), nullable=False),
        sa.Column("titles", sa.LargeBinary(), nullable=False),
        sa.Column("previous", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("source_id", "host", name="pk_host_titles"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_host_titles_source_id"),
    )
