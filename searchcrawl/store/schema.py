"""The tables of sources, hosts, URLs and documents. Times are milliseconds since 1970 (UTC); digests are raw bytes.

A change here raises ``REVISION`` in ``engine/database.py``.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from searchcrawl.codes import WARNED, Code
from searchcrawl.store.statements import is_one_of
from searchcrawl.store.states import CLAIMED, PENDING, DocumentState, FetchState

#: 64 bits in all databases; in SQLite still an alias of the rowid.
RowId = BigInteger().with_variant(Integer, "sqlite")

NAMES: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

metadata = MetaData(naming_convention=NAMES)


sources = Table(
    "sources",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    # The fingerprint of the configuration that the documents were made with, as JSON (sources.fingerprint).
    Column("fingerprint", Text),
    # Documents with a receipt of an older version are to be sent again; null: no resend is under way.
    Column("resend_version", BigInteger),
    # The newest run whose removals in quarantine were listed: later ones are not approved unseen.
    Column("listed_run", Integer),
    # 1: something is noted of documents that nothing names any more (lifecycle.orphans).
    Column("orphans", SmallInteger, nullable=False, server_default="0"),
    Column("recrawl", Text),  # Why rows are to be visited without validators since the last completed run (recrawl).
    Column("anchors", Text),  # What texts of links were frozen from (documents.anchor_table); null: that has changed.
    # What the steps at the end of the last completed run depend on, with its fence (delivery.closing); null: not known.
    Column("closed", Text),
    Column("forgotten", Text),  # The list of forgotten URLs that all rows agree with (rules.forgotten.digest).
    Column(
        "registered", Text
    ),  # What searches need of its file, as JSON (sources.effective); null: it was not crawled since.
    # store.states.Sharing: whether documents may be copies of those of other sources, as its last run began.
    Column("shares_copies", SmallInteger, nullable=False, server_default="0"),
    Column("suspended", SmallInteger, nullable=False, server_default="0"),  # 1: it is not to be crawled.
    # Since the source file was edited, rows above this id are still to be made due; null: none. The last run before the
    # edit, and the time of it: what was visited since is not visited once more.
    Column("hasten_after", BigInteger),
    Column("hasten_run", Integer),
    Column("hasten_since_ms", BigInteger),
    # The last number of its change log (log_table).
    Column("log_seq", BigInteger, nullable=False, server_default="0"),
)

urls = Table(
    "urls",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    # A hash of the URL (urls.key).
    Column("key", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    Column("host_id", Integer, nullable=False),
    # The smallest number of links from a start page, and the row of the page that led here first.
    Column("depth", Integer, nullable=False),
    Column("referrer_id", RowId),
    # store.states.FetchState
    Column("fetch_state", SmallInteger, nullable=False),
    # How the last visit ended (codes); the rule that decided it, as KEY: RULE; the error.
    Column("code", Integer, nullable=False, server_default="0"),
    Column("rule", Text),
    Column("error", Text),
    # Failed tries in the current run, and failed runs in a row.
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("failed_runs", Integer, nullable=False, server_default="0"),
    # How many runs in a row failed, by kind of failure, as JSON (rules.lifecycle); null: none.
    Column("failures", Text),
    # When the row is to be visited; null: never again by itself.
    Column("due_ms", BigInteger),
    # Until when it waits because it is not to be requested yet (``find_opening``); null: it does not.
    Column("opens_ms", BigInteger),
    # How long it waits from one visit to the next (rules.recrawl); null: as long as all others of its source.
    Column("interval_ms", BigInteger),
    Column("first_seen_ms", BigInteger, nullable=False),
    Column("last_fetched_ms", BigInteger),
    # The run that visited or refused it last. The redirects that its last visit followed, as JSON.
    Column("run_id", Integer),
    Column("redirects", Text),
    # The body of the last visit, where nothing reads its type (908), as JSON (rules.lifecycle).
    Column("unread", Text),
    # What the rendered page of the last visit lacked, in words; rules.rendering.NO_TEXT: only text. Null: nothing, or none was.
    Column("lacks", Text),
    # Set by a rewriter (K1): the URL as it was found, where it is another one, and the display URL.
    Column("found_as", Text),
    Column("display_url", Text),
    # The sitemap, folder or table that lists the URL, and its lastmod there; of a folder or table a hash of the token of its
    # version, 0 where that is not known yet, null where it is not listed any more, and one of what is known of it besides
    # (listing.model).
    Column("sitemap_id", Integer),
    Column("lastmod_ms", BigInteger),
    Column("version", BigInteger),
    Column("facts", BigInteger),
    # The lap in which a URL of a pattern that grows by itself is visited, after all others; 0: among all others.
    Column("lap", Integer, nullable=False, server_default="0"),
    UniqueConstraint("source_id", "key"),
    # SQLite counts rows in an index alone only if the index has the columns of its condition too.
    Index(
        "ix_urls_todo",
        "source_id",
        "host_id",
        "lap",
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
    # Which hosts have something due, in the order in which it is; with the condition of DUE_BY_TIME.
    Index(
        "ix_urls_due_hosts",
        "source_id",
        "due_ms",
        "host_id",
        "fetch_state",
        sqlite_where=text(f"fetch_state = {FetchState.SETTLED} AND due_ms IS NOT NULL AND source_id > 0"),
    ),
    # Those that a process has claimed, or one before it that stopped turning; then those that `status` warns of.
    Index("ix_urls_claimed", "source_id", "fetch_state", sqlite_where=is_one_of("fetch_state", CLAIMED)),
    Index("ix_urls_warned", "source_id", "code", sqlite_where=is_one_of("code", WARNED)),
    Index("ix_urls_lacks", "source_id", "lacks", sqlite_where=text("lacks IS NOT NULL")),
    Index("ix_urls_sitemap_id", "sitemap_id", "id", sqlite_where=text("sitemap_id IS NOT NULL")),
)

# What lists URLs, and is no URL row: sitemaps and sitemap indexes, and the folders and tables of kinds that are listed.
sitemaps = Table(
    "sitemaps",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    Column("key", BigInteger, nullable=False),
    Column("url", Text, nullable=False),
    # The sitemap index that names it; null: it comes from robots.txt, /sitemap.xml or the source file. The folder above.
    Column("parent_id", Integer),
    Column("code", Integer, nullable=False, server_default="0"),
    Column("error", Text),
    Column("etag", Text),
    Column("last_modified", Text),
    # The run that read it last, and the time.
    Column("run_id", Integer),
    Column("read_ms", BigInteger),
    # What its lister noted when it was read last (listing.model.ListingEnd).
    Column("mark", Text),
    # 1: it is a feed, and only pages name it.
    Column("is_feed", SmallInteger, nullable=False, server_default="0"),
    # Visits of pages that it, or one that it names, called changed since the visit before, and those that had changed; the
    # same of pages that it called unchanged (sitemap_table).
    Column("said_changed", Integer, nullable=False, server_default="0"),
    Column("changed_as_said", Integer, nullable=False, server_default="0"),
    Column("said_same", Integer, nullable=False, server_default="0"),
    Column("changed_unsaid", Integer, nullable=False, server_default="0"),
    UniqueConstraint("source_id", "key"),
    Index("ix_sitemaps_parent_id", "parent_id", sqlite_where=text("parent_id IS NOT NULL")),
)

# Patterns: sets of URLs that are alike but for numbers, ids and parameter values (rules.traps).
patterns = Table(
    "patterns",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    Column("key", BigInteger, nullable=False),
    Column("pattern", Text, nullable=False),
    # Admitted URLs; counted only where scope.max_urls_per_pattern is set.
    Column("urls", Integer, nullable=False, server_default="0"),
    # As in pattern_table.StoredPattern.
    Column("pages", Integer, nullable=False, server_default="0"),
    Column("own_permille", Integer, nullable=False, server_default="0"),
    Column("cut", Text),
    Column("cut_limit", Integer),
    Column("shares", LargeBinary),
    Column("grown", Integer, nullable=False, server_default="0"),
    Column("last_pages", Integer),
    Column("last_naming", Integer, nullable=False, server_default="0"),
    Column("last_named", Integer, nullable=False, server_default="0"),
    Column("last_outside", Integer, nullable=False, server_default="0"),
    UniqueConstraint("source_id", "key"),
)

# What rendering brought for sets of URLs that are alike: pages that a browser rendered although their plain answer does
# not say that they need it, and how many of them had more text then (rules.rendering). The set is known by a hash alone.
render_patterns = Table(
    "render_patterns",
    metadata,
    Column("source_id", Integer, ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    Column("key", BigInteger, primary_key=True, autoincrement=False),
    Column("rendered", Integer, nullable=False, server_default="0"),
    Column("gained", Integer, nullable=False, server_default="0"),
)

documents = Table(
    "documents",
    metadata,
    Column("url_id", RowId, ForeignKey("urls.id"), primary_key=True, autoincrement=False),
    Column("source_id", Integer, nullable=False),
    # store.states.DocumentState
    Column("state", SmallInteger, nullable=False),
    # The crawl_version of the last receipt; null: not in the index; 0: it may be in the index, its receipt was lost.
    Column("indexed_version", BigInteger),
    # The delivery that brought it into the index, after which it has always been there.
    Column("indexed_since", Integer),
    # The delivery that it is in.
    Column("batch_id", Integer),
    # Where the record is (items.Place); null: the cache has no record.
    Column("segment", Integer),
    Column("record_offset", BigInteger),
    Column("response_bytes", Integer),
    Column("fields_bytes", Integer),
    Column("body_digest", LargeBinary),
    Column("fields_digest", LargeBinary),
    # Of what is listed: the sha256 of the body of its record alone, and urls.version as it was when its body was read last; null:
    # that is not known.
    Column("content_digest", LargeBinary),
    Column("read_version", BigInteger),
    Column("mimetype", Text),
    Column("content_length", BigInteger, nullable=False, server_default="0"),
    Column("etag", Text),
    Column("last_modified", Text),
    Column("last_changed_ms", BigInteger),
    # The digest of what is indexed of it, by which copies are found; null: copies are not looked for, or it has none.
    Column("copy_digest", LargeBinary),
    # That of what it is a near copy of, by which copies are found instead; null: it is none, or they are not taken out.
    Column("near_digest", LargeBinary),
    # How its URL fits its content (rules.copy_order.find_fit), as long as copy_digest is the same; null: it was read by an
    # earlier release.
    Column("url_fit", SmallInteger),
    # What tells near copies of its present text (rules.near_copies); null: none was made, as where they are not taken out.
    Column("near_signature", Text),
    # 200, or why the document is not indexed: 909, 911, 952, 956, 964, 1010.
    Column("code", Integer, nullable=False),
    # The survivor: the document that is indexed instead of this one (909, 956, 964).
    Column("duplicate_of", RowId),
    # store.states.Leaving: why the document is to leave the index at the end of the run; 0: it is not.
    Column("leaving", SmallInteger, nullable=False, server_default="0"),
    # The key (urls.key) of another URL that the page names as canonical; null: it names none that counts.
    Column("canonical_key", BigInteger),
    # The key of the display URL; null: the source maps no display URLs (A4).
    Column("display_key", BigInteger),
    # The key of the URL that gave the page, where redirects led there: the document was made from it, and a later visit
    # that fails does not change that. 0: an earlier release did not note which one. Null: the row's own.
    Column("answered_key", BigInteger),
    # When its author wants it removed from the index (unavailable_after): from then on the same bytes are processed
    # again. 0: they are in any case, since the visit after an edit of the source brought no text. Null: never.
    Column("unavailable_ms", BigInteger),
    # Why a browser rendered its page; null: it is as the server sends it.
    Column("rendered", Text),
    # How it did when the known text was made, and how often in a row its page ended incomplete (rules.rendering.RenderRecord).
    Column("parts", Text),
    # Why the index refused it.
    Column("index_error", Text),
    # What is or was held against it: the code, and the rule that decided (rules.lifecycle.describe_evidence); null: no
    # evidence since it was good.
    Column("evidence", Text),
    # The state in which its removal was put into quarantine (store.states.DocumentState), or document_table.HELD_CHANGED.
    Column("held_state", SmallInteger),
    # The run that put its removal into quarantine; the one whose removal an operator rejected; the one that removed it.
    Column("quarantine_run", Integer),
    Column("rejected_run", Integer),
    Column("removed_run", Integer),
    # 1: its page had no text of its own when it was fetched first (rules.traps); null: it had some, or is not new.
    Column("bare", SmallInteger),
    # Its last entry in the change log of the source, which receivers besides the index read; null: it was never sent. What
    # that says: 1, it is there; 0, it has gone. The entry since which it has always been there.
    Column("seq", BigInteger),
    Column("shown", SmallInteger),
    Column("first_seq", BigInteger),
    Index("ix_documents_log", "source_id", "seq", "url_id", sqlite_where=text("seq IS NOT NULL")),
    # Those that receivers may have and the index has not.
    Index(
        "ix_documents_left",
        "source_id",
        "url_id",
        sqlite_where=text("shown = 1 AND indexed_version IS NULL"),
    ),
    # Survivors by content; without copies and lost documents, whose number must not slow down look-ups.
    Index(
        "ix_documents_copies",
        "source_id",
        "copy_digest",
        sqlite_where=text(f"code = 200 AND duplicate_of IS NULL AND state <> {DocumentState.NONE}"),
    ),
    # Those that were read from the same bytes.
    Index("ix_documents_content", "source_id", "content_digest", sqlite_where=text("content_digest IS NOT NULL")),
    # For the documents of a segment that is deleted. The segment comes first, because SQLite would otherwise use the
    # index for each query about documents with a record.
    Index("ix_documents_segment", "segment", "source_id", sqlite_where=text("segment IS NOT NULL")),
    Index("ix_documents_pending", "source_id", "state", sqlite_where=is_one_of("state", PENDING)),
    # Documents in the index, and those of them without a record: `status` counts both.
    Index(
        "ix_documents_indexed",
        "source_id",
        "segment",
        "indexed_version",
        sqlite_where=text("indexed_version IS NOT NULL"),
    ),
    # Near copies, by what stands for them.
    Index("ix_documents_near", "source_id", "near_digest", sqlite_where=text("near_digest IS NOT NULL")),
    Index("ix_documents_signed", "source_id", "url_id", sqlite_where=text("near_signature IS NOT NULL")),
    Index("ix_documents_refused", "source_id", sqlite_where=text("index_error IS NOT NULL")),
    Index("ix_documents_batch_id", "batch_id"),
    # The duplicates of documents that are sent; without it each part of a delivery would read all documents.
    Index("ix_documents_duplicate_of", "duplicate_of", sqlite_where=text("duplicate_of IS NOT NULL")),
    # Copies, by rising id, to find those of documents of other sources.
    Index("ix_documents_copies_of", "source_id", "url_id", sqlite_where=text(f"code = {int(Code.DUPLICATE)}")),
    # Copies still in the index, by rising id.
    Index(
        "ix_documents_surplus",
        "source_id",
        "url_id",
        sqlite_where=text("duplicate_of IS NOT NULL AND indexed_version IS NOT NULL"),
    ),
    # These two are read in pages, by rising id.
    Index("ix_documents_leaving", "source_id", "url_id", sqlite_where=text("leaving > 0")),
    Index("ix_documents_quarantined", "source_id", "url_id", sqlite_where=text(f"state = {DocumentState.QUARANTINED}")),
    Index("ix_documents_rejected", "source_id", sqlite_where=text("rejected_run IS NOT NULL")),
    Index("ix_documents_removed", "removed_run", sqlite_where=text("removed_run IS NOT NULL")),
    Index("ix_documents_canonical_key", "source_id", "canonical_key", sqlite_where=text("canonical_key IS NOT NULL")),
    Index("ix_documents_display_key", "source_id", "display_key", sqlite_where=text("display_key IS NOT NULL")),
    Index("ix_documents_bare", "source_id", "url_id", sqlite_where=text("bare = 1")),
    Index("ix_documents_answered_key", "source_id", "answered_key", sqlite_where=text("answered_key IS NOT NULL")),
)

# Documents whose copies in other sources have changed: their own source is to send them again, with the new list.
listing_dues = Table(
    "listing_dues",
    metadata,
    Column("url_id", RowId, primary_key=True, autoincrement=False),
    Column("source_id", Integer, nullable=False),
    Index("ix_listing_dues_source_id", "source_id"),
)

#: Where the record of a document is (items.Place).
PLACE: Final = ("segment", "record_offset", "response_bytes", "fields_bytes")
#: What is kept of a document that changes, and can be put back.
KEPT: Final = (
    *PLACE,
    *(
        "body_digest",
        "fields_digest",
        "content_digest",
        "read_version",
        "mimetype",
        "content_length",
        "etag",
        "last_modified",
        "last_changed_ms",
    ),
    *("canonical_key", "display_key", "answered_key", "unavailable_ms", "rendered", "parts"),
    *("copy_digest", "near_digest", "url_fit", "evidence", "rejected_run"),
)


def _repeat_column(name: str) -> Column[Any]:
    """A column as in ``documents``."""
    column = documents.c[name]
    return Column(name, column.type, nullable=column.nullable, server_default=column.server_default)


# What known documents were before this run changed them, or the runs that it continues. They are put back if too many
# pages of their host turned into one text (docs: removals).
former_documents = Table(
    "former_documents",
    metadata,
    Column("id", RowId, primary_key=True),
    Column("url_id", RowId, ForeignKey("urls.id"), nullable=False),
    Column("source_id", Integer, nullable=False),
    Column("run_id", Integer, nullable=False),
    # The new text (rules.turned_pages.Sketch).
    Column("sketch", LargeBinary, nullable=False),
    # 1: the document was put back, and the other columns are what took its place.
    Column("restored", SmallInteger, nullable=False, server_default="0"),
    # The links that the page had, and their texts, as in outlinks.
    Column("links", LargeBinary),
    Column("link_texts", LargeBinary),
    # As in urls, before the visit that changed the document.
    Column("failed_runs", Integer, nullable=False, server_default="0"),
    Column("failures", Text),
    *(_repeat_column(name) for name in ("state", "indexed_version", "batch_id", *KEPT)),
    UniqueConstraint("url_id"),
    Index("ix_former_documents_source_id", "source_id", "id"),
)

# The links of each page as one compact blob, written only when the page changed (docs: decisions/no-link-table).
outlinks = Table(
    "outlinks",
    metadata,
    Column("url_id", RowId, ForeignKey("urls.id"), primary_key=True, autoincrement=False),
    Column("links", LargeBinary, nullable=False),
    # The title of the page, and the texts of its links (urls.link_table.encode_texts); null: it has neither.
    Column("texts", LargeBinary),
)

# Links of pages that may not be followed, which get no rows: the keys of their targets as one blob, at most so many
# (urls.link_table). Pages without such links have no row here.
unfollowed_links = Table(
    "unfollowed_links",
    metadata,
    Column("url_id", RowId, ForeignKey("urls.id"), primary_key=True, autoincrement=False),
    # What says so (urls.link_table.Nofollow).
    Column("kind", SmallInteger, primary_key=True, autoincrement=False),
    Column("source_id", Integer, nullable=False),
    Column("targets", LargeBinary, nullable=False),
    # 1: the page has more.
    Column("cut", SmallInteger, nullable=False),
    Index("ix_unfollowed_links_source_id", "source_id"),
)

# Links that were refused without a row (``admission.admit``), by rule and host; both null: all others.
refused_links = Table(
    "refused_links",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
    Column("rule", Text),
    Column("host", Text),
    Column("links", BigInteger, nullable=False),
    Index("ix_refused_links_source_id", "source_id"),
)


def _declare_frozen(name: str, value: Column[Any]) -> Table:
    """A table of what is frozen of the hosts of a source; of hosts with few pages nothing is."""
    return Table(
        name,
        metadata,
        Column("source_id", Integer, ForeignKey("sources.id"), nullable=False),
        # With the port where it is not the default one. Not the id in hosts: that may be given to another one.
        Column("host", Text, nullable=False),
        # Rises with each change.
        Column("version", Integer, nullable=False),
        # The digest of the pages that were looked at.
        Column("sample", LargeBinary, nullable=False),
        value,
        # That before, until all documents that differ are to be sent again; null: they are.
        Column("previous", value.type),
        PrimaryKeyConstraint("source_id", "host"),
    )


# The blocks that stand on most pages of a host (rules.host_texts).
host_blocks: Final = _declare_frozen("host_blocks", Column("blocks", LargeBinary, nullable=False))
# The language that most documents of a host have; empty: no language has most of them.
host_languages: Final = _declare_frozen("host_languages", Column("language", Text, nullable=False))
# The titles that pages of a host share, or could have (rules.host_texts).
host_titles: Final = _declare_frozen("host_titles", Column("titles", LargeBinary, nullable=False))

# The texts of links to a document, as they are indexed: one a line. Documents without any have no row.
anchors: Final = Table(
    "anchors",
    metadata,
    Column("url_id", RowId, ForeignKey("urls.id"), primary_key=True, autoincrement=False),
    Column("source_id", Integer, nullable=False),
    Column("texts", Text, nullable=False),
    Index("ix_anchors_source_id", "source_id", "url_id"),
)


hosts = Table(
    "hosts",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),  # host:port
    # Which process may ask it (host_owners); which one wants it, -1: it was handed over to its owner, which is to learn of it.
    Column("owner_id", Integer, nullable=False, server_default="0"),
    Column("wanted_id", Integer, nullable=False, server_default="0"),
    # Since when it wants the host: whoever waits longest is next.
    Column("wanted_ms", BigInteger, nullable=False, server_default="0"),
    # The delay of the owner, which also counts from the end of a lease that died.
    Column("delay_ms", BigInteger, nullable=False, server_default="0"),
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
    # When it was last known to be used, some hours late (store.host_table); 0: that was never noted.
    Column("used_ms", BigInteger, nullable=False, server_default="0"),
    Index("ix_hosts_closed_until_ms", "closed_until_ms", sqlite_where=text("closed_until_ms > 0")),
    Index("ix_hosts_owned", "owner_id", sqlite_where=text("owner_id != 0")),
    Index("ix_hosts_wanted", "owner_id", sqlite_where=text("wanted_id != 0")),
)

# The processes that own hosts (store.host_owners): a number is never given twice.
host_owners = Table(
    "host_owners",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("holder", Text, nullable=False),
    # The last renewal, by the clock of the store and by the boot clock of the holder.
    Column("renewed_ms", BigInteger, nullable=False),
    Column("beat_ms", BigInteger),
    # When the lease ended, where another process found it expired.
    Column("ended_ms", BigInteger),
    sqlite_autoincrement=True,
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

#: The documents with their rows of URLs, and the rows of URLs with their documents where they have any.
DOCUMENTS_WITH_URLS: Final = documents.join(urls, urls.c.id == documents.c.url_id)
URLS_WITH_DOCUMENTS: Final = urls.outerjoin(documents, documents.c.url_id == urls.c.id)
