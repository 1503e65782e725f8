"""Each URL names the run that visited or refused it last."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column, and has the counters of runs that were cut off add up."""
    op.add_column("urls", sa.Column("run_id", sa.Integer(), nullable=True))
    connection = op.get_bind()
    # Earlier releases counted what a run discovered, and had still to fetch, at its end.
    rows = connection.execute(sa.text("SELECT id, counts FROM runs WHERE ended_ms IS NULL"))
    for run_id, text in rows.all():
        counts = json.loads(text)
        names = ("to_fetch", "fetched", "fetch_failures", "rejected")
        counts["discovered"] = sum(counts.get(name, 0) for name in names)
        values = {"run": run_id, "counts": json.dumps(counts)}
        connection.execute(sa.text("UPDATE runs SET counts = :counts WHERE id = :run"), values)
