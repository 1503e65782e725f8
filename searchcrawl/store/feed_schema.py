"""The tables of feeds that are written as deltas: what the files of each say of a source.

A change here raises ``REVISION`` in ``engine/revision.py``.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, UniqueConstraint, text

from searchcrawl.store.naming import RowId, metadata

feeds = Table(
    "feeds",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    # The name in the source file, with its placeholders.
    Column("name", Text, nullable=False),
    # That of its last delta.
    Column("number", BigInteger, nullable=False, server_default="0"),
    # The file of a delta that counts and may not have its name yet; null: none is under way.
    Column("file", Text),
    UniqueConstraint("source_id", "name"),
    sqlite_autoincrement=True,
)

# The documents that the deltas of a feed add up to. No URL: what is forgotten leaves none here.
feed_documents = Table(
    "feed_documents",
    metadata,
    Column("source_id", Integer, primary_key=True, autoincrement=False),
    Column("feed_id", Integer, primary_key=True, autoincrement=False),
    # The row of the URL, and its key (urls.key): an id may come again for another URL.
    Column("url_id", RowId, primary_key=True, autoincrement=False),
    Column("url_key", BigInteger, primary_key=True, autoincrement=False),
    # That of the id of the document.
    Column("digest", LargeBinary, nullable=False),
    # The crawl_version in the deltas so far; null: they have none.
    Column("version", BigInteger),
    # That in the delta under way; 0: it has the removal; null: it says nothing of the document.
    Column("staged", BigInteger),
    # Read in pages, in this order.
    Index(
        "ix_feed_documents_staged",
        *("source_id", "feed_id", "url_id", "url_key"),
        sqlite_where=text("staged IS NOT NULL"),
    ),
)
