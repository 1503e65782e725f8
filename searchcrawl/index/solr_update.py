"""Updates of Solr: streamed as JSON, the answer read document by document, the bad one found by halving (I3, I5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from searchcrawl import failpoints
from searchcrawl.exceptions import IndexMisconfigured, IndexUnavailable
from searchcrawl.index.hygiene import clean_fields
from searchcrawl.index.receiver import Receipt
from searchcrawl.index.solr_transport import Refused, SolrSession, errors_of, shown_url
from searchcrawl.items import IndexedDocument, Removal

#: So many documents refused for one and the same reason, and none taken: it is not the documents.
SAME_REFUSALS_MEAN_MISCONFIGURED: Final = 20
_HEADERS: Final = {"Content-Type": "application/json"}
# Messages that begin like this quote the document; whatever they go on with is about it.
_ABOUT_THE_DOCUMENT: Final = ("ERROR: [doc=", "Exception writing document")
# A tolerant update names a document also where the server failed on it: nothing is wrong with that document.
_SERVER_FAILURES: Final = re.compile(
    r"Server error writing document|No space left|IndexWriter is closed|Input/output error|Too many open files"
    r"|Read-only file system|OutOfMemory|Java heap space|ZooKeeper|No registered leader|shutting down",
    re.IGNORECASE,
)
# What a version rule answers that does not ignore older updates silently, as the configset of this project does.
_OLDER: Final = re.compile(r"(user version is not high enough|version conflict for)", re.IGNORECASE)


@dataclass(slots=True, kw_only=True)
class _Entry:
    """A document or removal on its way; ``body`` is its JSON."""

    id: str
    body: bytes
    error: str | None = None


@dataclass(slots=True)
class _Tally:
    """How a batch fares: whether anything was taken, and why the rest was not."""

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
        self._url = f"{url}/update"

    def add(self, documents: Sequence[IndexedDocument], crawl_version: int) -> list[Receipt]:
        """Stores documents under a version; one receipt each. Raises as ``Receiver.deliver``."""
        entries = [_document_entry(document, crawl_version) for document in documents]
        return self._settle(entries, _array, {})

    def remove(self, removals: Sequence[Removal], crawl_version: int) -> list[Receipt]:
        """Removes ids up to a version, leaving tombstones; one receipt each. Raises as ``Receiver.deliver``."""
        entries = [_entry(removal.id, orjson.dumps(removal.id)) for removal in removals]
        return self._settle(entries, _deletion, {"del_version": str(crawl_version)})

    def command(self, commands: dict[str, Any]) -> None:
        """Does an administrative update such as a commit; raises as ``Receiver.deliver``."""
        try:
            answer = self._post(orjson.dumps(commands), {})
        except Refused as refused:
            raise IndexMisconfigured(f"{shown_url(self._url)}: {refused}") from refused
        for _, message in errors_of(answer):
            raise IndexUnavailable(f"{shown_url(self._url)}: {message}")

    def _settle(
        self, entries: list[_Entry], body: Callable[[list[_Entry]], Iterator[bytes]], params: dict[str, str]
    ) -> list[Receipt]:
        tally = _Tally()
        parts = [[entry for entry in entries if entry.error is None]]
        while parts:
            part = parts.pop()
            if part and not self._send(part, body, params, tally):
                middle = len(part) // 2
                # The last one is taken next: the order of the batch is kept.
                parts += [part[middle:], part[:middle]]
            if tally.means_misconfigured():
                raise IndexMisconfigured(f"{shown_url(self._url)}: every document is refused: {tally.reasons[0]}")
        return [Receipt(entry.id, entry.error is None, entry.error) for entry in entries]

    def _send(
        self,
        part: list[_Entry],
        body: Callable[[list[_Entry]], Iterator[bytes]],
        params: dict[str, str],
        tally: _Tally,
    ) -> bool:
        """Whether the fate of each entry is known now; False: send its halves."""
        try:
            errors = dict(errors_of(self._post(body(part), params)))
        except Refused as refused:
            if len(part) > 1:
                return False
            # 409: the index has a newer version, which is what it shall have (I4).
            errors = {} if refused.status == 409 else {part[0].id: refused.reason}
        for message in errors.values():
            if not message.startswith(_ABOUT_THE_DOCUMENT) and _SERVER_FAILURES.search(message):
                raise IndexUnavailable(f"{shown_url(self._url)}: {message}")
        if not errors.keys() <= {entry.id for entry in part}:
            # An error that names nobody here.
            if len(part) > 1:
                return False
            errors = {part[0].id: "; ".join(errors.values())}
        for entry in part:
            _judge(entry, errors.get(entry.id), tally)
        return True

    def _post(self, body: bytes | Iterator[bytes], params: dict[str, str]) -> dict[str, Any]:
        response = self._session.post(self._url, params={"wt": "json", **params}, data=body, headers=_HEADERS)
        answer: dict[str, Any] = orjson.loads(response.content)
        return answer


def _judge(entry: _Entry, message: str | None, tally: _Tally) -> None:
    if message is None or _OLDER.match(message):
        tally.accepted += 1
        return
    entry.error = message
    tally.reasons.append(message.replace(entry.id, "…"))


def _entry(entry_id: str, body: bytes) -> _Entry:
    error = None if entry_id.strip() else "the id is empty"
    return _Entry(id=entry_id, body=body, error=error)


def _document_entry(document: IndexedDocument, crawl_version: int) -> _Entry:
    fields = clean_fields(document.fields)
    fields["id"] = document.id
    fields["crawl_version"] = crawl_version
    return _entry(document.id, orjson.dumps(fields))


def _array(part: list[_Entry]) -> Iterator[bytes]:
    """The documents as one JSON array, piece by piece: the request is never in memory as a whole."""
    middle = len(part) // 2
    for number, entry in enumerate(part):
        if number == middle:
            failpoints.passing("batch.post.mid")
        yield (b"," if number else b"[") + entry.body
    yield b"]"


def _deletion(part: list[_Entry]) -> Iterator[bytes]:
    yield b'{"delete":[' + b",".join(entry.body for entry in part) + b"]}"
