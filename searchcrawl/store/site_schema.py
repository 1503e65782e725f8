"""The tables of what pages of a site have in common, and say of each other: frozen at the end of a completed run."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table, Text

from searchcrawl.store.schema import RowId, metadata

# The blocks that stand on most pages of a host (rules.host_texts). Hosts with few pages have no row.
host_blocks: Final = Table(
    "host_blocks",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    # With the port where it is not the default one. Not the id in hosts: that may be given to another one.
    Column("host", Text, nullable=False),
    # Rises with each change.
    Column("version", Integer, nullable=False),
    # The digest of the pages that were looked at.
    Column("sample", LargeBinary, nullable=False),
    Column("blocks", LargeBinary, nullable=False),
    # Those before, until all documents that differ are to be sent again; null: they are.
    Column("previous", LargeBinary),
    PrimaryKeyConstraint("source_id", "host"),
)

# The language that most documents of a host have. Hosts with few documents have no row. The other columns are as above.
host_languages: Final = Table(
    "host_languages",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    Column("host", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("sample", LargeBinary, nullable=False),
    # Empty: no language has most of them.
    Column("language", Text, nullable=False),
    Column("previous", Text),
    PrimaryKeyConstraint("source_id", "host"),
)

# The titles that pages of a host share, or could have (rules.host_texts). The other columns are as above.
host_titles: Final = Table(
    "host_titles",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    Column("host", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("sample", LargeBinary, nullable=False),
    Column("titles", LargeBinary, nullable=False),
    Column("previous", LargeBinary),
    PrimaryKeyConstraint("source_id", "host"),
)

# The texts of links to a document, as they are indexed: one a line. Documents without any have no row.
anchors: Final = Table(
    "anchors",
    metadata,
    Column("url_id", RowId, ForeignKey("urls.id"), primary_key=True, autoincrement=False),
    Column("source_id", Integer, nullable=False),
    Column("texts", Text, nullable=False),
    Index("ix_anchors_source_id", "source_id", "url_id"),
)
