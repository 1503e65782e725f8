"""Patterns that grow by themselves are visited last; pages without text of their own are known."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None

_TODO = sa.text("fetch_state = 0")
_BARE = sa.text("bare = 1")


def upgrade() -> None:
    """Adds the columns, and forgets which patterns were ended by new text alone: what they refused is due."""
    op.add_column("urls", sa.Column("lap", sa.Integer(), nullable=False, server_default="0"))
    op.drop_index("ix_urls_todo", "urls")
    columns = ["source_id", "host_id", "lap", "depth", "id", "fetch_state"]
    op.create_index("ix_urls_todo", "urls", columns, sqlite_where=_TODO, postgresql_where=_TODO)
    op.add_column("documents", sa.Column("bare", sa.SmallInteger(), nullable=True))
    op.create_index(
        "ix_documents_bare", "documents", ["source_id", "url_id"], sqlite_where=_BARE, postgresql_where=_BARE
    )
    op.execute("DELETE FROM patterns WHERE urls = 0")
    op.execute("UPDATE patterns SET pages = 0, shares = NULL")
    op.execute("UPDATE patterns SET cut = NULL, cut_limit = NULL WHERE cut = 'scope.trap_after'")
    op.execute("UPDATE urls SET due_ms = 0 WHERE fetch_state = 2 AND code = 961 AND rule LIKE 'scope.trap_after:%'")
    op.drop_column("patterns", "new_permille")
    op.drop_column("patterns", "runs")
    for name in ("own_permille", "grown", "last_naming", "last_named", "last_outside"):
        op.add_column("patterns", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    op.add_column("patterns", sa.Column("last_pages", sa.Integer(), nullable=True))
