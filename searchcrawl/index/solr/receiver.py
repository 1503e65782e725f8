"""Solr as a SearchIndex: update.py sends documents, pysolr is used for searches and the ping."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import unquote, urlsplit, urlunsplit

import orjson
import pysolr

from searchcrawl import clock
from searchcrawl.access import COUNT_MARK, PATH_FIELD
from searchcrawl.exceptions import DeliveryError, IndexMisconfigured, IndexUnavailable, UnsupportedByIndex
from searchcrawl.index.receiver import (
    HIT_END,
    HIT_START,
    Batch,
    IndexEntry,
    Receipt,
    SearchAnswer,
    SearchHit,
    SearchIndex,
    SearchQuery,
)
from searchcrawl.index.sanitising import format_number
from searchcrawl.index.snippets import leave_out_title, shorten
from searchcrawl.index.solr.query import (
    build_filters_of_user,
    build_parameters,
    build_spelling_parameters,
    find_value_field,
)
from searchcrawl.index.solr.transport import SolrRefusal, SolrSession, hide_secrets, misconfigured
from searchcrawl.index.solr.update import SolrUpdates
from searchcrawl.index_fields import FIELDS, FieldKind, attribute_type, find_analysed
from searchcrawl.sources.project import Project

#: What the schema of a core must have; ``tombstone_b`` marks a removed document.
REQUIRED_FIELDS: Final = frozenset({*(field.name for field in FIELDS), "tombstone_b"})
_KINDS: Final = {field.name: field.kind for field in FIELDS}
#: The classes of Solr that keep values of a kind as we compare, order and search them.
_CLASSES: Final = {
    FieldKind.NAME: re.compile(r"\bStrField$"),
    FieldKind.TEXT: re.compile(r"TextField$"),
    FieldKind.NUMBER: re.compile(r"(Int|Long|Float|Double)(Point)?Field$"),
    FieldKind.DATE: re.compile(r"Date(Point|Range)?Field$"),
}
_SCAN_ROWS: Final = 1000
_ENTRY_FIELDS: Final = "id,crawl_version,checksum,url,access_url,depth"
#: The versions of documents that are asked for by their ids.
_OF_VERSIONS: Final = {"fl": "id,crawl_version", "rows": _SCAN_ROWS, "omitHeader": "false"}
_OF_LANGUAGES: Final = {"facet": "true", "facet.field": "languages", "facet.mincount": 1, "facet.limit": -1}
_OF_LEVELS: Final = {**_OF_LANGUAGES, "facet.field": PATH_FIELD, "facet.prefix": COUNT_MARK}
#: For so long an answer to which languages the index holds, or how many levels its documents have, is used again.
_KEPT_SECONDS: Final = 60.0
_PROBE_SECONDS: Final = 5.0
#: For so long a Solr that answers, and does not replay its log, is not asked again: none starts anew so fast.
_LOOK_SECONDS: Final = 1.0
# The ordinal of UpdateLog.State.REPLAYING.
_REPLAYING: Final = 0
#: What the Config API calls the update log.
_UPDATE_LOG: Final = "updateHandlerupdateLog"
_MARKED: Final = re.compile(f"{HIT_START}(\\w+){HIT_END}")
_BETWEEN_SNIPPETS: Final = " … "

logger = logging.getLogger(__name__)


class SolrReceiver(SearchIndex):
    """Delivers to and searches one core, collection or alias of Solr.

    ``url`` ends in its name and may carry user and password. ``timeout_seconds`` is the total for
    one exchange, ``purge_timeout_seconds`` for the merge of a purge. Nothing is requested before
    the first call. Each method tries once: the delivery repeats calls.
    """

    hides_documents: Final = True

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float = 60,
        purge_timeout_seconds: float = 3600,
        max_answer_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        address, auth = _split_address(url)
        self.url = hide_secrets(address)
        self._timeout_seconds = timeout_seconds
        self._purge_timeout_seconds = purge_timeout_seconds
        self._session, self._beside = (
            SolrSession(timeout_seconds=timeout_seconds, max_answer_bytes=max_answer_bytes) for _ in range(2)
        )
        self._session.auth = self._beside.auth = auth
        self._updates = SolrUpdates(self._session, self._beside, address)
        self._warned = False
        self._kept: dict[str, tuple[float, list[str]]] = {}
        self._looked_end = 0.0
        self._solr = pysolr.Solr(address, session=self._session, timeout=timeout_seconds, auth=auth)

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        """Stores and removes; one receipt a document or removal, in their order (Receiver).

        A receipt is on the disk of Solr: in an update log that is synced, or in the index after a commit.
        """
        self._check_replay()
        receipts: list[Receipt] = []
        if batch.documents:
            receipts += self._updates.add(batch.documents, batch.crawl_version)
        if batch.removals:
            receipts += self._updates.remove(batch.removals, batch.crawl_version)
        if receipts and not self._is_log_synced():
            self._updates.command({"commit": {"openSearcher": False}})
        return receipts

    def hurry(self) -> None:
        """Large deliveries go in two requests at once: Solr reads each in one thread (HurryingReceiver)."""
        self._updates.in_two = True

    def commit(self) -> None:
        """Makes all that was delivered durable and visible; returns once searches see it."""
        self._check_replay()
        self._updates.command({"commit": {"openSearcher": True, "waitSearcher": True}})

    def scan(self, source: str | None) -> Iterator[IndexEntry]:
        self._check_replay()
        filters = [] if source is None else [f"{{!term f=source}}{source}"]
        mark = "*"
        while True:
            with self._of_ours():
                found = self._select(
                    "*:*", fq=filters, fl=_ENTRY_FIELDS, sort="id asc", rows=_SCAN_ROWS, cursorMark=mark
                )
                entries = [IndexEntry.read(stored["id"], stored) for stored in found.docs]
            yield from entries
            if found.nextCursorMark == mark:
                return
            mark = found.nextCursorMark

    def find_versions(self, ids: Collection[str]) -> Mapping[str, int]:
        return self._find_versions(ids, lambda part: self._select("{!terms f=id}" + part, **_OF_VERSIONS))

    def find_last_versions(self, ids: Collection[str]) -> Mapping[str, int]:
        """The same with tombstones, and with what is not committed."""
        return self._find_versions(
            ids, lambda part: self._select("*:*", search_handler="get", ids=part, **_OF_VERSIONS)
        )

    def _find_versions(self, ids: Collection[str], ask: Callable[[str], pysolr.Results]) -> Mapping[str, int]:
        wanted, found = list(ids), dict[str, int]()
        with self._look():
            for start in range(0, len(wanted), _SCAN_ROWS):
                answer = ask(",".join(wanted[start : start + _SCAN_ROWS]))
                # What is no list of documents must not look like an index that has none.
                _ = answer.raw_response["response"]
                found |= {stored["id"]: int(stored.get("crawl_version", 0)) for stored in answer.docs}
        return found

    def find_highest_version(self, source: str) -> int:
        with self._look():
            highest = self._select(
                "*:*", fq=f"{{!term f=source}}{source}", fl="crawl_version", sort="crawl_version desc", rows=1
            )
            # A tombstone has no source, but the ids of a source begin with its name.
            of_tombstones = {"stats": "true", "stats.field": "{!max=true}crawl_version"}
            removed = self._select(
                "*:*", search_handler="tombstones", fq=f"{{!prefix f=id}}{source}:", **of_tombstones
            ).stats
        of_removed = ((removed.get("stats_fields") or {}).get("crawl_version") or {}).get("max") or 0
        return max([int(of_removed), *(int(stored.get("crawl_version", 0)) for stored in highest.docs)])

    def search(self, query: SearchQuery) -> SearchAnswer:
        """Answers a query; raises UnsupportedByIndex for a field, filter or order that Solr refuses."""
        counts = self._find_values(_OF_LEVELS) if query.principals is not None else ()
        wanted = build_parameters(query, sorted(find_analysed(self._find_values(_OF_LANGUAGES))), counts)
        try:
            found = self._select(wanted.pop("q"), **wanted)
        except SolrRefusal as refused:
            raise UnsupportedByIndex(f"{self.url}: {refused.reason}") from refused
        counts = found.facets.get("facet_fields", {})
        return SearchAnswer(
            total=found.hits,
            hits=[_build_hit(stored, found.highlighting) for stored in found.docs],
            facets={name: _read_counts(name, counts.get(find_value_field(name), ())) for name in query.facets},
        )

    def find_spellings(self, word: str, principals: Collection[str] | None = None) -> Sequence[str]:
        """Words of the index that may be spelled like one that it does not have (SpellingIndex)."""
        if not word.isalnum():
            return []
        counts = self._find_values(_OF_LEVELS) if principals is not None else ()
        limits = build_filters_of_user(principals, counts)
        found = self._select(
            f"title:{word.lower()}~2 OR content:{word.lower()}~2", **build_spelling_parameters(), **limits
        )
        marked = _MARKED.findall(str(orjson.dumps(found.highlighting), "utf-8"))
        return sorted({word.lower() for word in marked})

    def _find_values(self, wanted: Mapping[str, Any]) -> list[str]:
        """The values of a field that documents of the index have, as of a minute ago at most."""
        field, now = wanted["facet.field"], clock.monotonic()
        ends, values = self._kept.get(field, (0.0, []))
        if field not in self._kept or now >= ends:
            with self._of_ours():
                facets = self._select("*:*", rows=0, **wanted).facets
            values = [str(value) for value in facets.get("facet_fields", {}).get(field, ())[::2]]
            self._kept[field] = now + _KEPT_SECONDS, values
        return values

    def purge(self) -> int:
        """Commits, and removes tombstones and deleted documents for good; returns the number of tombstones (G3)."""
        self.commit()
        tombstones = int(self._select("tombstone_b:true", search_handler="tombstones").hits)
        self._session.timeout_seconds = self._purge_timeout_seconds
        try:
            if tombstones:
                self._updates.command({"delete": {"query": "tombstone_b:true"}})
            self._updates.command({"commit": {"expungeDeletes": True, "waitSearcher": True}})
        finally:
            self._session.timeout_seconds = self._timeout_seconds
        return tombstones

    def ping(self) -> None:
        """Returns if the core answers and its schema has our fields."""
        try:
            self._solr.ping()
            known = self._session.get(f"{self._solr.url}/schema/fields", params={"wt": "json"}).json()["fields"]
            missing = sorted(REQUIRED_FIELDS - {entry["name"] for entry in known})
            others = [] if missing else self._list_other_types(known)
        except (SolrRefusal, KeyError, TypeError, AttributeError, pysolr.SolrError) as error:
            raise misconfigured(self.url, f"this is no core of searchcrawl: {error}") from error
        if missing:
            reason = f"its schema lacks {', '.join(missing)}: create the core from solr/configset"
            raise misconfigured(self.url, reason)
        if others:
            reason = f"its schema has fields of ours with other types, {', '.join(others)}: create the core from solr/configset"
            raise misconfigured(self.url, reason)

    def _list_other_types(self, known: Sequence[Mapping[str, Any]]) -> list[str]:
        """The fields whose values are not what we send, each with its class; none where the core does not tell."""
        found = self._session.get(f"{self._solr.url}/schema/fieldtypes", params={"wt": "json"}).json()
        classes = {entry["name"]: str(entry["class"]) for entry in found.get("fieldTypes", ())}
        typed = {entry["name"]: classes[entry["type"]] for entry in known if entry.get("type") in classes}
        wrong = [name for name, kind in _KINDS.items() if name in typed and not _CLASSES[kind].search(typed[name])]
        return [f"{name} ({typed[name]})" for name in sorted(wrong)]

    def close(self) -> None:
        """Closes the connection; the receiver opens another if it is used again."""
        self._session.close()
        self._beside.close()

    def _check_replay(self) -> None:
        """Raises IndexUnavailable while Solr, started after a crash, still replays its update log.

        It answers during that time. But it ignores commits with status 200, shows only a part of what it acknowledged,
        and compares versions with that part.
        """
        node, _, name = self._solr.url.rpartition("/")
        wanted = {"group": "core", "prefix": "TLOG.state", "wt": "json"}
        try:
            with self._within_seconds():
                registries = self._session.get(f"{node}/admin/metrics", params=wanted).json().get("metrics")
        except DeliveryError:
            # A proxy may block this request, or Solr may fail: the next request shows it.
            return
        for registry, metrics in registries.items() if isinstance(registries, dict) else ():
            ours = f"{registry}.".startswith(f"solr.core.{name}.") and isinstance(metrics, dict)
            if ours and metrics.get("TLOG.state") == _REPLAYING:
                raise IndexUnavailable(f"{self.url}: Solr is replaying its update log", retry_after_seconds=1)

    def _is_log_synced(self) -> bool:
        """Whether Solr syncs its update log before it answers an update; also False where it does not say."""
        try:
            with self._within_seconds():
                answer = self._session.get(f"{self._solr.url}/config/{_UPDATE_LOG}", params={"wt": "json"}).json()
            level = str(answer["config"][_UPDATE_LOG]["syncLevel"]).upper()
        except (DeliveryError, KeyError, TypeError):
            # A proxy may block this request.
            level = "unknown"
        if level != "FSYNC" and not self._warned:
            self._warned = True
            logger.info("%s: syncLevel of the update log is %s, not FSYNC: each delivery is committed", self.url, level)
        return level == "FSYNC"

    @contextmanager
    def _within_seconds(self) -> Iterator[None]:
        """Waits seconds for an answer, not minutes."""
        before = self._session.timeout_seconds
        self._session.timeout_seconds = min(_PROBE_SECONDS, before)
        try:
            yield
        finally:
            self._session.timeout_seconds = before

    @contextmanager
    def _of_ours(self) -> Iterator[None]:
        """Around a question that nobody typed: what is refused then, or cannot be read, is the fault of the core."""
        try:
            yield
        except (SolrRefusal, KeyError, TypeError, ValueError) as error:
            raise misconfigured(self.url, f"this is no core of searchcrawl: {error}") from error

    @contextmanager
    def _look(self) -> Iterator[None]:
        """Around a look at the index that nothing may wait for; raises IndexUnavailable or IndexMisconfigured."""
        try:
            with self._within_seconds():
                if clock.monotonic() >= self._looked_end:
                    # A Solr that hangs is not waited for twice.
                    self._solr.ping()
                    self._check_replay()
                    self._looked_end = clock.monotonic() + _LOOK_SECONDS
                yield
        except (SolrRefusal, KeyError, TypeError, ValueError, pysolr.SolrError) as error:
            raise misconfigured(self.url, f"no versions can be read: {error}") from error

    def _select(self, words: str, **wanted: Any) -> pysolr.Results:
        try:
            found = self._solr.search(words, **wanted)
        except pysolr.SolrError as error:
            raise IndexUnavailable(f"{self.url}: {error}") from error
        if found.raw_response["responseHeader"].get("partialResults"):
            raise IndexUnavailable(f"{self.url}: the answer is partial")
        return found


def open_receiver(project: Project) -> SolrReceiver:
    """The receiver for ``index.type = "solr"``."""
    return SolrReceiver(str(project.index.url))


def _split_address(url: str) -> tuple[str, tuple[str, str] | None]:
    """The URL without user and password, and these; raises IndexMisconfigured for what cannot be one."""
    try:
        parts = urlsplit(url.strip())
        path = parts.path.rstrip("/")
        good = parts.scheme in {"http", "https"} and parts.hostname and path.strip("/") and not parts.query
        _ = parts.port
    except ValueError:
        good = False
    if not good:
        shown = url.rpartition("@")[2]
        raise IndexMisconfigured(f"searchcrawl.toml: index.url: must be http(s)://HOST:PORT/solr/NAME (got {shown!r})")
    auth = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", "")), auth


def _build_hit(stored: Mapping[str, Any], highlighting: Mapping[str, Mapping[str, Sequence[str]]]) -> SearchHit:
    snippets = highlighting.get(stored["id"], {}).get("content") or ()
    fields = {name: _unwrap(name, value) for name, value in stored.items() if name not in {"id", "score"}}
    title = str(fields.get("title", ""))
    return SearchHit(
        id=stored["id"],
        score=float(stored.get("score") or 0.0),
        snippet=_join([shorten(leave_out_title(snippet, title)) for snippet in snippets]),
        fields=fields,
    )


def _join(passages: Sequence[str]) -> str:
    """Passages after each other, with one … between them."""
    return _BETWEEN_SNIPPETS.join(filter(None, passages)).replace("… … …", "…").replace("… …", "…")


def _unwrap(name: str, value: Any) -> Any:
    """The values of an attribute as they were sent: Solr answers with a list, and with numbers that have a fraction."""
    if isinstance(value, list) and attribute_type(name) is not None:
        values = [int(item) if isinstance(item, float) and item.is_integer() else item for item in value]
        return values[0] if len(values) == 1 else values
    return value


def _read_counts(name: str, flat: Sequence[Any]) -> dict[str, int]:
    """Solr's [value, count, value, count …] as a mapping."""
    counts = zip(flat[::2], flat[1::2], strict=True)
    if attribute_type(name) == "number":
        return {format_number(float(value)): int(count) for value, count in counts}
    return {str(value): int(count) for value, count in counts}
