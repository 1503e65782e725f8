"""The tables of hosts, which all sources share. Times are as in ``schema``.

A change here raises ``REVISION`` in ``engine/revision.py``.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, SmallInteger, Table, Text, text

from searchcrawl.store.schema import metadata

hosts = Table(
    "hosts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),  # host:port
    # No request before this moment, by the delay; when that was noted, as the clock may have been ahead then.
    Column("next_allowed_ms", BigInteger, nullable=False, server_default="0"),
    Column("reserved_ms", BigInteger, nullable=False, server_default="0"),
    # 1: the host answers any path with a page, even one that cannot exist, and has real pages too (L9).
    Column("answers_any", SmallInteger, nullable=False, server_default="0"),
    # Failures in a row in all processes, and the time of the last one.
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("failed_ms", BigInteger, nullable=False, server_default="0"),
    # No process sends a request until this moment (a back-off, or a longer block); the code of the reason; when noted.
    Column("closed_until_ms", BigInteger, nullable=False, server_default="0"),
    Column("closed_code", Integer, nullable=False, server_default="0"),
    Column("closed_ms", BigInteger, nullable=False, server_default="0"),
    # When it was last known to be used, some hours late (store.hosts.host_table); 0: that was never noted.
    Column("used_ms", BigInteger, nullable=False, server_default="0"),
    Index("ix_hosts_closed_until_ms", "closed_until_ms", sqlite_where=text("closed_until_ms > 0")),
)

# The saved robots.txt of each origin: the last one that could be fetched, compressed.
robots_copies = Table(
    "robots_copies",
    metadata,
    # scheme://host[:port]
    Column("origin", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("fetched_ms", BigInteger, nullable=False),
)

# What DNS said of a host name, for all processes; without addresses and error somebody is looking it up.
name_answers = Table(
    "name_answers",
    metadata,
    Column("name", Text, primary_key=True),
    # With blanks between them.
    Column("addresses", Text),
    Column("error", Text),
    # Until when that holds.
    Column("until_ms", BigInteger, nullable=False, server_default="0"),
    Index("ix_name_answers_until_ms", "until_ms"),
)

# When the next lookup may be (fetch.dns_per_second), and when that was noted: one row.
name_turns = Table(
    "name_turns",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("next_ms", BigInteger, nullable=False, server_default="0"),
    Column("noted_ms", BigInteger, nullable=False, server_default="0"),
)
