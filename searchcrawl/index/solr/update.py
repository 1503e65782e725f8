"""Updates of Solr: streamed as JSON, with a receipt for each document; a bad one is found by halving (X-I3, X-I5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from searchcrawl import failpoints
from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.receiver import Receipt
from searchcrawl.index.sanitising import clean_fields, find_id_fault
from searchcrawl.index.solr.transport import Refused, SolrSession, hide_secrets, misconfigured, read_errors
from searchcrawl.items import IndexedDocument, Removal

#: If this many documents are refused for the same reason and none is taken, the documents are not the cause.
SAME_REFUSALS_MEAN_MISCONFIGURED: Final = 20
#: How often a document is sent while the index answers 409 and has no newer version.
_MOST_CONFLICTS: Final = 3
_HEADERS: Final = {"Content-Type": "application/json"}
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
    """Sends documents, removals, commits and purges to one core, collection or alias."""

    def __init__(self, session: SolrSession, url: str) -> None:
        self._session = session
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
            answer = self._post(orjson.dumps(commands), {})
        except Refused as refused:
            raise misconfigured(self._shown, str(refused)) from refused
        for _, message in read_errors(answer):
            raise IndexUnavailable(f"{self._shown}: {message}")

    def _send_all(
        self, entries: list[_Entry], body: Callable[[list[_Entry]], Iterator[bytes]], params: dict[str, str]
    ) -> list[Receipt]:
        tally = _Tally()
        parts = [[entry for entry in entries if entry.error is None]]
        while parts:
            part = parts.pop()
            parts += self._send(part, body, params, tally) if part else []
            if tally.means_misconfigured():
                raise misconfigured(self._shown, f"every document is refused: {tally.reasons[0]}")
        if tally.reasons and not tally.accepted:
            # An empty update shows whether Solr refuses every update.
            self._check_updates()
        return [Receipt(entry.id, entry.error is None, entry.error) for entry in entries]

    def _send(
        self, part: list[_Entry], body: Callable[[list[_Entry]], Iterator[bytes]], params: dict[str, str], tally: _Tally
    ) -> list[list[_Entry]]:
        """Sends a part and notes the result of its entries; returns the parts to be sent again, the last one first."""
        try:
            errors = dict(read_errors(self._post(body(part), params)))
        except Refused as refused:
            if len(part) > 1:
                return _halve(part)
            if refused.status == 409:
                return self._resolve_conflict(part, refused.reason, tally)
            errors = {part[0].id: refused.reason}
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
        except (Refused, KeyError, TypeError, ValueError, AttributeError) as error:
            raise misconfigured(hide_secrets(f"{self._core}/get"), f"no version can be read: {error}") from error

    def _check_updates(self) -> None:
        """Returns if an update without documents is taken; raises IndexMisconfigured if every update is refused."""
        try:
            self._post(b"[]", {})
        except Refused as refused:
            raise misconfigured(self._shown, f"every update is refused: {refused.reason}") from refused

    def _post(self, body: bytes | Iterator[bytes], params: dict[str, str]) -> dict[str, Any]:
        response = self._session.post(self._url, params={"wt": "json", **params}, data=body, headers=_HEADERS)
        answer: dict[str, Any] = orjson.loads(response.content)
        return answer


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
