"""The tables of receivers besides the index, and of what the change log keeps of rows that are gone. Times are as in ``schema``.

A change here raises ``REVISION`` in ``engine/revision.py``.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, LargeBinary, SmallInteger, Table, Text

from searchcrawl.store.schema import RowId, metadata

# How far each receiver has got, by source.
receivers = Table(
    "receivers",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    # As in searchcrawl.toml.
    Column("name", Text, primary_key=True),
    # It has all entries of the change log up to this one: by their numbers, and those of one number by their rows.
    Column("seq", BigInteger, nullable=False, server_default="0"),
    Column("url_id", RowId, nullable=False, server_default="0"),
    # What versions begin with (receivers.receiver_table.compute_version); it rises when everything is sent again.
    Column("generation", BigInteger, nullable=False, server_default="0"),
    # The highest version that was ever handed over, noted before that, and the highest that it acknowledged; 0: none since
    # everything is sent again.
    Column("sent", BigInteger, nullable=False, server_default="0"),
    Column("acknowledged", BigInteger, nullable=False, server_default="0"),
    # 1: it gets nothing until it is resumed.
    Column("paused", SmallInteger, nullable=False, server_default="0"),
    # Once it has everything, what it has besides is removed (receivers.receiver_table.Sweep); 0: it is not.
    Column("sweeping", SmallInteger, nullable=False, server_default="0"),
    # Why it got nothing the last time, and since when that is so; null: it did.
    Column("error", Text),
    Column("error_ms", BigInteger),
    # Of one that writes a file for each change: the number of the last one, and the file that counts and may not have its name
    # yet; null: none is under way.
    Column("number", BigInteger, nullable=False, server_default="0"),
    Column("file", Text),
)

# Documents that a receiver does not have as the change log says.
faulty = Table(
    "faulty",
    metadata,
    Column("source_id", Integer, primary_key=True, autoincrement=False),
    Column("receiver", Text, primary_key=True),
    Column("url_id", RowId, primary_key=True, autoincrement=False),
    # The entry, and the answer of the receiver.
    Column("seq", BigInteger, nullable=False),
    Column("error", Text, nullable=False),
    # 1: it has an earlier version.
    Column("known", SmallInteger, nullable=False),
)

# Entries of documents whose rows are gone, until all receivers have them. No URL: what is forgotten leaves none here.
tombstones = Table(
    "tombstones",
    metadata,
    Column("source_id", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    # That of the id of the document.
    Column("digest", LargeBinary, primary_key=True),
    # As in documents; null: not known.
    Column("first_seq", BigInteger),
)
