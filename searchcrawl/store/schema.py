"""The tables. Times are milliseconds since 1970 (UTC); digests are raw bytes.

A change here needs a migration; a test compares both.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from searchcrawl.codes import WARNED
from searchcrawl.store.statements import is_one_of
from searchcrawl.store.states import PENDING, DocumentState, FetchState

#: 64 bits everywhere, and still an alias of the rowid in SQLite.
RowId = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

sources = Table(
    "sources",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    # What the documents were made with (sources.fingerprint), as JSON.
    Column("fingerprint", Text),
    # Documents with an older receipt are to be sent again (resend); null: none.
    Column("resend_version", BigInteger),
)

hosts = Table(
    "hosts",
    metadata,
    Column("id", Integer, primary_key=True),
    # host:port
    Column("name", Text, nullable=False, unique=True),
    # No request before this moment: the delay, kept by all processes.
    Column("next_allowed_ms", BigInteger, nullable=False, server_default="0"),
    # 1: it answers any path with a page, and has pages of their own besides (L9).
    Column("answers_any", SmallInteger, nullable=False, server_default="0"),
    # Failures in a row, and the last of them: the pause after each grows, whichever process met it.
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("failed_ms", BigInteger, nullable=False, server_default="0"),
    # No request at all before this moment, also without a delay, and the code that is the reason.
    Column("closed_until_ms", BigInteger, nullable=False, server_default="0"),
    Column("closed_code", Integer, nullable=False, server_default="0"),
    Index(
        "ix_hosts_closed_until_ms",
        "closed_until_ms",
        sqlite_where=text("closed_until_ms > 0"),
    ),
)

# What robots.txt said when it could be had last, compressed.
robots_copies = Table(
    "robots_copies",
    metadata,
    # scheme://host[:port]
    Column("origin", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("fetched_ms", BigInteger, nullable=False),
)

urls = Table(
    "urls",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    Column("key", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    Column("host_id", Integer, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("referrer_id", RowId),
    Column("fetch_state", SmallInteger, nullable=False),
    Column("code", Integer, nullable=False, server_default="0"),
    Column("rule", Text),
    Column("error", Text),
    # Failed tries of the present run; failed runs in a row.
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("failed_runs", Integer, nullable=False, server_default="0"),
    # Null: never again by itself.
    Column("due_ms", BigInteger),
    Column("first_seen_ms", BigInteger, nullable=False),
    Column("last_fetched_ms", BigInteger),
    Column("redirects", Text),
    # What a rewriter made of a link (K1): the URL that was found where it is another, and what is shown instead.
    Column("found_as", Text),
    Column("display_url", Text),
    # The sitemap that lists it, and the lastmod it gives.
    Column("sitemap_id", Integer),
    Column("lastmod_ms", BigInteger),
    UniqueConstraint("source_id", "key"),
    # SQLite counts from an index alone only where it holds the columns of its condition, too.
    Index(
        "ix_urls_todo",
        "source_id",
        "host_id",
        "depth",
        "id",
        "fetch_state",
        sqlite_where=text(f"fetch_state = {FetchState.TODO}"),
    ),
    Index(
        "ix_urls_due",
        "source_id",
        "host_id",
        "due_ms",
        "fetch_state",
        sqlite_where=text(f"fetch_state = {FetchState.SETTLED} AND due_ms IS NOT NULL"),
    ),
    Index(
        "ix_urls_fetching",
        "source_id",
        sqlite_where=text(f"fetch_state = {FetchState.FETCHING}"),
    ),
    # What `status` warns about: logins that failed, pages that are none.
    Index(
        "ix_urls_warned",
        "source_id",
        "code",
        sqlite_where=is_one_of("code", WARNED),
    ),
    Index(
        "ix_urls_sitemap_id",
        "sitemap_id",
        sqlite_where=text("sitemap_id IS NOT NULL"),
    ),
)

# What lists URLs, and is none of them itself.
sitemaps = Table(
    "sitemaps",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    Column("key", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    # The index that names it; null: robots.txt, /sitemap.xml or the source file does.
    Column("parent_id", Integer),
    Column("code", Integer, nullable=False, server_default="0"),
    Column("error", Text),
    Column("etag", Text),
    Column("last_modified", Text),
    # The run that read it last, and when.
    Column("run_id", Integer),
    Column("read_ms", BigInteger),
    UniqueConstraint("source_id", "key"),
)

# What is known of URLs that are alike but for numbers, ids and parameter values (rules.traps).
patterns = Table(
    "patterns",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    Column("key", BigInteger, nullable=False),
    Column("pattern", Text, nullable=False),
    # URLs that were admitted; counted where their number is limited.
    Column("urls", Integer, nullable=False, server_default="0"),
    # Pages whose text was looked at; of the last ones so much was new, in 1/1000.
    Column("pages", Integer, nullable=False, server_default="0"),
    Column("new_permille", Integer, nullable=False, server_default="0"),
    # The key of [scope] that cut it, and its value then; null: it is not cut.
    Column("cut", Text),
    Column("cut_limit", Integer),
    # How much each of the last pages brought (a byte each), and what it was (rules.novelty).
    Column("shares", LargeBinary),
    Column("runs", LargeBinary),
    UniqueConstraint("source_id", "key"),
)

documents = Table(
    "documents",
    metadata,
    Column("url_id", RowId, ForeignKey("urls.id"), primary_key=True, autoincrement=False),
    Column("source_id", Integer, nullable=False),
    Column("state", SmallInteger, nullable=False),
    # crawl_version of the last receipt; null: not in the index; 0: it may be, its receipt was lost.
    Column("indexed_version", BigInteger),
    Column("batch_id", Integer),
    # Where the record is (cache.segment.Place); null: the cache has none.
    Column("segment", Integer),
    Column("record_offset", BigInteger),
    Column("response_bytes", Integer),
    Column("fields_bytes", Integer),
    Column("body_digest", LargeBinary),
    Column("fields_digest", LargeBinary),
    Column("mimetype", Text),
    Column("content_length", BigInteger, nullable=False, server_default="0"),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("last_changed_ms", BigInteger),
    # 200, or why it is not indexed: 909, 911, 952, 956, 964, 1010.
    Column("code", Integer, nullable=False),
    # Which document is indexed instead: of a copy, a non-canonical page, a display URL that is another's.
    Column("duplicate_of", RowId),
    # 1: a visit brought evidence against it; the end of the run decides.
    Column("leaving", SmallInteger, nullable=False, server_default="0"),
    # Key (urls.key) of the other URL that the page names as canonical; null: none that counts.
    Column("canonical_key", BigInteger),
    # Key of the display URL where the source maps any (A4); null: it maps none.
    Column("display_key", BigInteger),
    # When its author wants it out of the index (unavailable_after); null: never.
    Column("unavailable_ms", BigInteger),
    # Why the index refused it.
    Column("index_error", Text),
    # The run whose removal waits in quarantine.
    Column("quarantine_run", Integer),
    # Those that stand for all with their body: the number of copies, or of pages that are gone, must not slow
    # down the next one.
    Index(
        "ix_documents_copies",
        "source_id",
        "body_digest",
        sqlite_where=text(f"code = 200 AND duplicate_of IS NULL AND state <> {DocumentState.NONE}"),
    ),
    # What loses its record with a segment: without it each one that is given up would walk all documents. With the
    # source first, SQLite would take it wherever a record has to be there.
    Index(
        "ix_documents_segment",
        "segment",
        "source_id",
        sqlite_where=text("segment IS NOT NULL"),
    ),
    Index(
        "ix_documents_pending",
        "source_id",
        "state",
        sqlite_where=is_one_of("state", PENDING),
    ),
    # What is in the index, and what of it the cache has no more: `status` counts both.
    Index(
        "ix_documents_indexed",
        "source_id",
        "segment",
        "indexed_version",
        sqlite_where=text("indexed_version IS NOT NULL"),
    ),
    Index(
        "ix_documents_refused",
        "source_id",
        sqlite_where=text("index_error IS NOT NULL"),
    ),
    Index("ix_documents_batch_id", "batch_id"),
    # The copies of what is sent: without it each part of a delivery would walk all documents.
    Index(
        "ix_documents_duplicate_of",
        "duplicate_of",
        sqlite_where=text("duplicate_of IS NOT NULL"),
    ),
    # Copies still in the index.
    Index(
        "ix_documents_surplus",
        "source_id",
        sqlite_where=text("duplicate_of IS NOT NULL AND indexed_version IS NOT NULL"),
    ),
    Index(
        "ix_documents_leaving",
        "source_id",
        sqlite_where=text("leaving = 1"),
    ),
    Index(
        "ix_documents_canonical_key",
        "source_id",
        "canonical_key",
        sqlite_where=text("canonical_key IS NOT NULL"),
    ),
    Index(
        "ix_documents_display_key",
        "source_id",
        "display_key",
        sqlite_where=text("display_key IS NOT NULL"),
    ),
)

# One compact blob a page, rewritten only when the page changed (docs: decisions/no-link-table).
outlinks = Table(
    "outlinks",
    metadata,
    Column("url_id", RowId, ForeignKey("urls.id"), primary_key=True, autoincrement=False),
    Column("links", LargeBinary, nullable=False),
)

segments = Table(
    "segments",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("committed_bytes", BigInteger, nullable=False),
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
    Index("ix_batches_source_id_state", "source_id", "state"),
    sqlite_autoincrement=True,
)

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    # Rows settled before this moment are due; a run that goes on with another inherits it.
    Column("horizon_ms", BigInteger, nullable=False),
    Column("ended_ms", BigInteger),
    Column("end_reason", Text),
    Column("exit_code", SmallInteger),
    # What the source file said when it began: an edit makes all due again.
    Column("fingerprint", Text),
    Column("counts", Text, nullable=False, server_default="{}"),
    Index("ix_runs_source_id", "source_id"),
    sqlite_autoincrement=True,
)

leases = Table(
    "leases",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id"), primary_key=True),
    # machine, boot, process and its start: who holds it, told apart from a successor with the same pid
    Column("holder", Text, nullable=False),
    Column("fence", BigInteger, nullable=False),
    # Null: released.
    Column("renewed_ms", BigInteger),
)
