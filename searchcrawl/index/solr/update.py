"""Updates of Solr: streamed as JSON, with a receipt for each document; a bad one is found by halving (X-I3, X-I5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from searchcrawl import failpoints
from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.receiver import Receipt
from searchcrawl.index.sanitising import clean_fields, find_id_fault
from searchcrawl.index.solr.transport import SolrRefusal, SolrSession, hide_secrets, misconfigured, read_errors
from searchcrawl.items import IndexedDocument, Removal

#: If this many documents are refused for the same reason and none is taken, the documents are not the cause.
SAME_REFUSALS_MEAN_MISCONFIGURED: Final = 20
#: How often a document is sent while the index answers 409 and has no newer version.
_MOST_CONFLICTS: Final = 3
_HEADERS: Final = {"Content-Type": "application/json"}
#: So many bytes at least are worth a request beside another one.
_BESIDE_BYTES: Final = 262_144
#: A request is sent in pieces of this size or a little more.
_PIECE_BYTES: Final = 65_536
# Messages that begin like this quote the document: its text may look like any other message.
_ABOUT_THE_DOCUMENT: Final = ("ERROR: [doc=", "Exception writing document")
# A tolerant update also names a document where the server itself failed: then the document is not at fault.
_SERVER_FAILURES: Final = re.compile(
    r"Server error writing document|No space left|IndexWriter is closed|Input/output error|Too many open files"
    r"|Read-only file system|OutOfMemory|Java heap space|ZooKeeper|No registered leader|shutting down",
    re.IGNORECASE,
)
# What a rule for versions answers that refuses older updates; our configset ignores them silently.
_OLDER: Final = re.compile(r"(user version is not high enough|version conflict for)", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class _Entry:
    """A document or removal to be sent; ``body`` is its JSON."""

    id: str
    body: bytes
    crawl_version: int
    error: str | None = None
    conflicts: int = 0


#: What Solr answers to an update.
_Answer = dict[str, Any] | SolrRefusal


@dataclass(slots=True)
class _Tally:
    """How many entries of a batch were taken, and why the others were not."""

    accepted: int = 0
    reasons: list[str] = field(default_factory=list)

    def means_misconfigured(self) -> bool:
        return (
            self.accepted == 0 and len(self.reasons) >= SAME_REFUSALS_MEAN_MISCONFIGURED and len(set(self.reasons)) == 1
        )


class SolrUpdates:
    """Sends documents, removals, commits and purges to one core, collection or alias.

    With ``in_two`` large updates go in two requests at once, the second by the session ``beside``.
    """

    def __init__(self, session: SolrSession, beside: SolrSession, url: str) -> None:
        self.in_two = False
        self._session = session
        self._beside = beside
        self._core = url
        self._url = f"{url}/update"
        self._shown = hide_secrets(self._url)

    def add(self, documents: Sequence[IndexedDocument], crawl_version: int) -> list[Receipt]:
        """Stores documents under a version; one receipt each. Raises as ``Receiver.deliver``."""
        entries = [_build_document_entry(document, crawl_version) for document in documents]
        return self._send_all(entries, _write_documents, {})

    def remove(self, removals: Sequence[Removal], crawl_version: int) -> list[Receipt]:
        """Removes ids up to a version, leaving tombstones; one receipt each. Raises as ``Receiver.deliver``."""
        entries = [_build_entry(removal.id, removal.id, crawl_version) for removal in removals]
        return self._send_all(entries, _write_removals, {"del_version": str(crawl_version)})

    def command(self, commands: dict[str, Any]) -> None:
        """Does an administrative update such as a commit; raises as ``Receiver.deliver``."""
        try:
            answer = self._post(self._session, orjson.dumps(commands), {})
        except SolrRefusal as refused:
            raise misconfigured(self._shown, str(refused)) from refused
        for _, message in read_errors(answer):
            raise IndexUnavailable(f"{self._shown}: {message}")

    def _send_all(
        self, entries: list[_Entry], body: Callable[[list[_Entry]], Iterator[bytes]], params: dict[str, str]
    ) -> list[Receipt]:
        tally = _Tally()
        sent = _cut([entry for entry in entries if entry.error is None], in_two=self.in_two)
        answers = self._post_at_once([body(part) for part in sent], params)
        parts = [again for part, answer in zip(sent, answers, strict=True) for again in self._note(part, answer, tally)]
        while parts and not tally.means_misconfigured():
            part = parts.pop()
            parts += self._note(part, self._try(self._session, body(part), params), tally)
        if tally.means_misconfigured():
            raise misconfigured(self._shown, f"every document is refused: {tally.reasons[0]}")
        if tally.reasons and not tally.accepted:
            # An empty update shows whether Solr refuses every update.
            self._check_updates()
        return [Receipt(entry.id, entry.error is None, entry.error) for entry in entries]

    def _note(self, part: list[_Entry], answer: _Answer, tally: _Tally) -> list[list[_Entry]]:
        """Notes the result of the entries of a part; returns the parts to be sent again, the last one first."""
        if isinstance(answer, SolrRefusal):
            if len(part) > 1:
                return _halve(part)
            if answer.status == 409:
                return self._resolve_conflict(part, answer.reason, tally)
            errors = {part[0].id: answer.reason}
        else:
            errors = dict(read_errors(answer))
        for message in errors.values():
            if not message.startswith(_ABOUT_THE_DOCUMENT) and _SERVER_FAILURES.search(message):
                raise IndexUnavailable(f"{self._shown}: {message}")
        if not errors.keys() <= {entry.id for entry in part}:
            # The error names no document of this part.
            if len(part) > 1:
                return _halve(part)
            errors = {part[0].id: "; ".join(errors.values())}
        again: list[list[_Entry]] = []
        for entry in part:
            why = errors.get(entry.id)
            if why is not None and _OLDER.match(why):
                again += self._resolve_conflict([entry], why, tally)
            else:
                _note_result(entry, why, tally)
        return again

    def _resolve_conflict(self, part: list[_Entry], reason: str, tally: _Tally) -> list[list[_Entry]]:
        """Decides a version conflict by what the index has; a newer version there counts as taken (X-I4)."""
        entry = part[0]
        known = self._find_version(entry.id)
        if known is not None and known >= entry.crawl_version:
            _note_result(entry, None, tally)
            return []
        entry.conflicts += 1
        if entry.conflicts < _MOST_CONFLICTS:
            return [part]
        _note_result(entry, f"{reason} (the index has {'none' if known is None else f'version {known}'})", tally)
        return []

    def _find_version(self, entry_id: str) -> int | None:
        """The version of a document or tombstone in the index, committed or not; None if it has none."""
        wanted = {"id": entry_id, "fl": "crawl_version", "omitHeader": "false", "wt": "json"}
        try:
            found = self._session.get(f"{self._core}/get", params=wanted).json()["doc"]
            return None if found is None else int(found.get("crawl_version", 0))
        except (SolrRefusal, KeyError, TypeError, ValueError, AttributeError) as error:
            raise misconfigured(hide_secrets(f"{self._core}/get"), f"no version can be read: {error}") from error

    def _check_updates(self) -> None:
        """Returns if an update without documents is taken; raises IndexMisconfigured if every update is refused."""
        try:
            self._post(self._session, b"[]", {})
        except SolrRefusal as refused:
            raise misconfigured(self._shown, f"every update is refused: {refused.reason}") from refused

    def _post_at_once(self, bodies: Sequence[Iterator[bytes]], params: dict[str, str]) -> list[_Answer]:
        """The answers to at most two requests; it raises once both are over."""
        if len(bodies) < 2:
            return [self._try(self._session, body, params) for body in bodies]
        first, second = bodies
        with ThreadPoolExecutor(1, "delivery") as thread:
            coming = thread.submit(self._try, self._beside, second, params)
            return [self._try(self._session, first, params), coming.result()]

    def _try(self, session: SolrSession, body: Iterator[bytes], params: dict[str, str]) -> _Answer:
        try:
            return self._post(session, body, params)
        except SolrRefusal as refused:
            return refused

    def _post(self, session: SolrSession, body: bytes | Iterator[bytes], params: dict[str, str]) -> dict[str, Any]:
        response = session.post(self._url, params={"wt": "json", **params}, data=body, headers=_HEADERS)
        answer: dict[str, Any] = orjson.loads(response.content)
        return answer


def _cut(entries: list[_Entry], *, in_two: bool) -> list[list[_Entry]]:
    """The entries in at most two parts, of about as many bytes each if there are two; none without entries."""
    total = sum(len(entry.body) for entry in entries) if in_two else 0
    if total < 2 * _BESIDE_BYTES:
        return [entries] if entries else []
    size, place = 0, 0
    while size * 2 < total:
        size += len(entries[place].body)
        place += 1
    return [part for part in (entries[:place], entries[place:]) if part]


def _halve(part: list[_Entry]) -> list[list[_Entry]]:
    # The last part is sent next, which keeps the order of the batch.
    middle = len(part) // 2
    return [part[middle:], part[:middle]]


def _note_result(entry: _Entry, message: str | None, tally: _Tally) -> None:
    if message is None:
        tally.accepted += 1
        return
    entry.error = message
    tally.reasons.append(message.replace(entry.id, "…"))


def _build_entry(entry_id: str, value: object, crawl_version: int) -> _Entry:
    fault = find_id_fault(entry_id)
    try:
        body = b"" if fault else orjson.dumps(value)
    except TypeError as error:
        body, fault = b"", f"it cannot be written as JSON: {error}"
    return _Entry(id=entry_id, body=body, crawl_version=crawl_version, error=fault)


def _build_document_entry(document: IndexedDocument, crawl_version: int) -> _Entry:
    fields = clean_fields(document.fields)
    fields["id"] = document.id
    fields["crawl_version"] = crawl_version
    return _build_entry(document.id, fields, crawl_version)


def _write_documents(part: list[_Entry]) -> Iterator[bytes]:
    """The documents as one JSON array, in pieces: the request is never in memory as a whole."""
    middle = len(part) // 2
    piece: list[bytes] = []
    size = 0
    for number, entry in enumerate(part):
        if number == middle:
            yield b"".join(piece)
            piece, size = [], 0
            failpoints.reach("batch.post.mid")
        piece += (b"," if number else b"[", entry.body)
        size += len(entry.body)
        if size >= _PIECE_BYTES:
            yield b"".join(piece)
            piece, size = [], 0
    yield b"".join((*piece, b"]"))


def _write_removals(part: list[_Entry]) -> Iterator[bytes]:
    yield b'{"delete":[' + b",".join(entry.body for entry in part) + b"]}"
