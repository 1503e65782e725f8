"""What is started by itself is known by the store, and a crawl can be stopped and a source suspended from anywhere."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the table, empty, and the columns."""
    op.create_table(
        "jobs",
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("anchor_ms", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), server_default="none", nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("planned_ms", sa.BigInteger(), nullable=True),
        sa.Column("not_before_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("launcher", sa.Text(), nullable=False),
        sa.Column("child", sa.Text(), nullable=False),
        sa.Column("launched_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("resumes", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("exit_code", sa.SmallInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("overruns", sa.Integer(), server_default="0", nullable=False),
        sa.Column("skipped", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("source_id", name="pk_jobs"),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"], name="fk_jobs_source_id"),
    )
    op.add_column("sources", sa.Column("suspended", sa.SmallInteger(), server_default="0", nullable=False))
    op.add_column("leases", sa.Column("stop_fence", sa.BigInteger(), server_default="0", nullable=False))
