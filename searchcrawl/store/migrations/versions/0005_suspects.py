"""Finds URLs that were being visited when a run stopped turning, and those that were set aside."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from searchcrawl.failpoints import reach

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes two indexes anew, with more in them; values stay as they are."""
    op.drop_index("ix_urls_fetching", "urls")
    _index("ix_urls_claimed", ["source_id", "fetch_state"], where="fetch_state IN (1, 3, 4)")
    reach("migrate.mid")
    op.drop_index("ix_urls_warned", "urls")
    _index("ix_urls_warned", ["source_id", "code"], where="code IN (959, 965, 966)")


def _index(name: str, columns: list[str], *, where: str) -> None:
    # Naming a dialect loads it: only the one in use.
    partial: dict[str, Any] = {f"{op.get_bind().dialect.name}_where": sa.text(where)}
    op.create_index(name, "urls", columns, **partial)
