"""The table ``[file]``: which trees of files are listed, and what of them."""

from __future__ import annotations

from searchcrawl.sources.values import FilePaths, Table, key


class FileTable(Table):
    """Trees of files (A1)."""

    roots: FilePaths = key((), "The folders to list with all below them.")
