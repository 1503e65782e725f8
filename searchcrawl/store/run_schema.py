"""The tables of runs, and of what they write and send, to receivers besides the index too. Times are as in ``schema``.

A change here raises ``REVISION`` in ``engine/database.py``.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, LargeBinary, SmallInteger, Table, Text, text

from searchcrawl.store.schema import RowId, metadata

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    # Rows settled before this moment are due; a run that continues another one has the same.
    Column("horizon_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    Column("end_reason", Text),
    Column("exit_code", SmallInteger),
    # The last delivery of any source before its horizon: documents that are in the index since then were there before.
    Column("batch_before", Integer),
    # The fingerprint of the configuration when it began: an edit makes all rows due again.
    Column("fingerprint", Text),
    Column("counts", Text, nullable=False, server_default="{}"),
    Index("ix_runs_source_id", "source_id"),
    sqlite_autoincrement=True,
)

leases = Table(
    "leases",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id"), primary_key=True),
    # Machine, boot, process and its start: a later process with the same pid is another holder.
    Column("holder", Text, nullable=False),
    Column("fence", BigInteger, nullable=False),
    # The last beat by the clock of the store (store.engine.dialect); null: released.
    Column("renewed_ms", BigInteger),
    Column("beat_ms", BigInteger),  # The same by the boot clock of the holder's machine; null: its release knows none.
    # A holder with this fence, or an earlier one, is to end its run.
    Column("stop_fence", BigInteger, nullable=False, server_default="0"),
)

# What `tick` and `run` start (runs.job_table): one row a source.
jobs = Table(
    "jobs",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    # The schedule that the row belongs to, and the last of its moments that was dealt with; null: none yet.
    Column("spec", Text, nullable=False),
    Column("anchor_ms", BigInteger),
    Column("state", Text, nullable=False, server_default="none"),
    # The name of the try, and how many there were; the moment that it is for, and before which it waits.
    Column("token", Text, nullable=False),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("planned_ms", BigInteger),
    Column("not_before_ms", BigInteger, nullable=False, server_default="0"),
    # The scrapyd, or "" for a process; who started it (as in leases), which process that is, and when.
    Column("place", Text, nullable=False),
    Column("launcher", Text, nullable=False),
    Column("child", Text, nullable=False),
    Column("launched_ms", BigInteger, nullable=False, server_default="0"),
    # The fence of the lease under which its crawl began.
    Column("fence", BigInteger, nullable=False, server_default="0"),
    # 1: it waits again once its crawl has ended.
    Column("resumes", SmallInteger, nullable=False, server_default="0"),
    Column("exit_code", SmallInteger),
    Column("error", Text),
    # Moments at which the run before was still under way, and those that passed while nothing could start it.
    Column("overruns", Integer, nullable=False, server_default="0"),
    Column("skipped", Integer, nullable=False, server_default="0"),
)

batches = Table(
    "batches",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    Column("run_id", Integer, nullable=False),
    Column("crawl_version", BigInteger, nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    # How many removals it has that count towards the limits on deleting.
    Column("removals", Integer, nullable=False, server_default="0"),
    Index("ix_batches_source_id_state", "source_id", "state"),
    Index("ix_batches_removals", "source_id", sqlite_where=text("removals > 0")),
    sqlite_autoincrement=True,
)

segments = Table(
    "segments",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("committed_bytes", BigInteger, nullable=False),
    # Where records were moved here out of other segments: the number of the newest of these; null: pages are appended.
    Column("newest", Integer),
)

# URLs that somebody submitted: the next run of their source admits them.
submitted = Table(
    "submitted",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    Column("key", BigInteger, primary_key=True, autoincrement=False),
    Column("url", Text, nullable=False),
)


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
    # What versions begin with (receiver_table.compute_version); it rises when everything is sent again.
    Column("generation", BigInteger, nullable=False, server_default="0"),
    # The highest version that was ever handed over, noted before that, and the highest that it acknowledged; 0: none since
    # everything is sent again.
    Column("sent", BigInteger, nullable=False, server_default="0"),
    Column("acknowledged", BigInteger, nullable=False, server_default="0"),
    # 1: it gets nothing until it is resumed.
    Column("paused", SmallInteger, nullable=False, server_default="0"),
    # Once it has everything, what it has besides is removed (receiver_table.Sweep); 0: it is not.
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

#: All tables; those of ``schema`` were declared before these.
ALL_TABLES: Final = metadata
