"""The table ``[table]``: which rows of a database are documents."""

from __future__ import annotations

from searchcrawl.sources.values import Table


class TableTable(Table):
    """Rows of a table or query (A1)."""
