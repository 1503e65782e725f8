"""Lists the folders of a root on a server, over any protocol: a folder before those in it, with one page of names in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from operator import attrgetter
from threading import Event
from typing import Final, NamedTuple

import xxhash

from searchcrawl import clock
from searchcrawl.bodies import read_whole
from searchcrawl.codes import OVERLOADED, UNREACHABLE, Code
from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.ignoring import FILE_NAME, MOST_BYTES
from searchcrawl.kinds.file.names import can_be_name, show
from searchcrawl.kinds.file.remote.connecting import connect, require_root
from searchcrawl.kinds.file.remote.model import Connection, RemoteFailure, Thing, TooLarge, Way
from searchcrawl.kinds.file.roots import Root, describe_empty
from searchcrawl.kinds.file.scope import LEFT_OUT, MOST_CHARACTERS, TOO_LONG, FolderScope, Limits
from searchcrawl.kinds.file.selection import Ignoring, IsThere, Selection
from searchcrawl.listing.model import MOST_ENTRIES, Entry, ListedPart, ListingEnd, Marks
from searchcrawl.politeness import backoff
from searchcrawl.politeness.host_registry import build_delay_schedule
from searchcrawl.sources.config import Source
from searchcrawl.urls import escape_name

_READ: Final = 200
_NO_CREDENTIALS: Final = 401
_NO_NAME: Final = "file.roots: its name is none of a file"
_CIRCLE: Final = "file.roots: leads to a folder that it is in"
#: So often one after the other the same things may be in a folder and in one above it, where folders have no other mark.
_MOST_ALIKE: Final = 2
#: How often it is looked whether the run is to stop, while nothing is asked for.
_GLANCE_SECONDS: Final = 0.2


class _Child(NamedTuple):
    """A folder in a folder; ``refusal`` leaves it out with all in it."""

    name: bytes
    refusal: str | None
    node: bytes


class _Branch(NamedTuple):
    """A folder that was read, with those of its folders that are still to be read."""

    way: Way
    url: str
    ignoring: Ignoring
    #: of itself and of those above it, as far as the protocol tells folders apart
    nodes: frozenset[bytes]
    #: what is in those above it, as a number
    seen: tuple[int, ...]
    children: list[_Child]


class Pace:
    """Keeps ``fetch.delay_seconds`` between requests to a server."""

    def __init__(self, source: Source, is_stopping: Callable[[], bool]) -> None:
        fetch = source.fetch
        self._delay_seconds = fetch.delay_seconds
        self._schedule = build_delay_schedule(
            fetch.windows,
            None if fetch.timezone is None else str(fetch.timezone),
            otherwise_seconds=fetch.delay_seconds,
        )
        self._is_stopping = is_stopping
        self._pause = Event()
        self._ended = 0.0

    def keep(self) -> None:
        """Waits until the next request may be sent, or the run is to stop."""
        delay = self._delay_seconds if self._schedule is None else self._schedule.delay_seconds(clock.now())
        self.wait(self._ended + delay - time.monotonic())

    def note(self) -> None:
        """Notes that a request has ended."""
        self._ended = time.monotonic()

    def wait(self, seconds: float) -> None:
        """Waits so long, or until the run is to stop."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self._is_stopping():
            self._pause.wait(min(left, _GLANCE_SECONDS))


class RemoteWalk:
    """Lists one root. Folders that fail are tried again; after some that the server does not answer, the rest is left to the next run."""

    def __init__(
        self, source: Source, root: Root, marks: Marks, is_stopping: Callable[[], bool], user_agent: str
    ) -> None:
        table: FileTable = source.own
        self._source = source
        self._root = root
        self._user_agent = user_agent
        self._marker = table.marker
        self._marks = marks
        self._is_stopping = is_stopping
        self._scope = FolderScope(source)
        self._selection = Selection.of(table)
        self._limits = Limits(source)
        self._pace = Pace(source, is_stopping)
        self._failures = 0

    def list_parts(self) -> Iterator[ListedPart]:
        """The parts of all folders, those of one after the other."""
        try:
            connection = self._try(lambda: connect(self._source, self._root, self._user_agent))
        except RemoteFailure as failure:
            yield ListedPart(url=self._root.url, end=describe_failure(failure))
            return
        with closing(connection):
            yield from self._walk(connection)

    def _walk(self, connection: Connection) -> Iterator[ListedPart]:
        branches = list[_Branch]()
        yield from self._read(connection, (), self._root.url, None, _Child(b"", None, b""), branches)
        while branches:
            branch = branches[-1]
            if not branch.children:
                branches.pop()
                continue
            if self._is_stopping() or self._failures >= backoff.FAILURES_TO_BLOCK:
                return
            child = branch.children.pop()
            url = f"{branch.url}{escape_name(child.name)}/"
            refusal = child.refusal or self._refuse(branch, child, url)
            if refusal is not None:
                yield ListedPart(url=url, end=ListingEnd(code=Code.OUTSIDE_BOUNDARY, refusal=refusal))
            else:
                yield from self._read(connection, (*branch.way, child.name), url, branch, child, branches)

    def _refuse(self, branch: _Branch, child: _Child, url: str) -> str | None:
        if child.node in branch.nodes or (branch.seen and branch.seen.count(branch.seen[-1]) > _MOST_ALIKE):
            return _CIRCLE
        return self._scope.find_refusal(url, len(branch.way) + 1)

    def _read(
        self, connection: Connection, way: Way, url: str, above: _Branch | None, child: _Child, branches: list[_Branch]
    ) -> Iterator[ListedPart]:
        """The parts of a folder, which is read again where that may help; it is added to ``branches``."""
        depth, attempt = len(way) + 1, 0
        while True:
            attempt += 1
            try:
                yield from self._read_once(connection, way, url, above, child, branches)
            except (RemoteFailure, OSError) as failure:
                if self._may_try(failure, attempt):
                    continue
                self._failures = self._failures + 1 if _is_out_of_reach(failure) else 0
                if above is None or not self._is_gone(connection, way, failure):
                    yield ListedPart(url=url, depth=depth, end=describe_failure(failure))
                return
            self._failures = 0
            return

    def _read_once(
        self, connection: Connection, way: Way, url: str, above: _Branch | None, child: _Child, branches: list[_Branch]
    ) -> Iterator[ListedPart]:
        self._pace.keep()
        try:
            pages = _regroup(connection.list_folder(way))
            first = next(pages, [])
            second = next(pages, None)
        finally:
            self._pace.note()
        if above is None and not first and self._marker is None and self._marks.has_entries(url):
            raise RemoteFailure(describe_empty(self._root.written), code=Code.IO_ERROR)
        names = {thing.name: thing for thing in first}

        def is_there(name: bytes) -> bool:
            return name in names or (second is not None and look_for(connection, (*way, name)) is not None)

        rules, path = (Ignoring() if above is None else above.ignoring), b"/".join([self._root.shown_path, *way])
        content = read_ignored(connection, way) if is_there(FILE_NAME) else None
        ignoring = rules.enter(content, path, None if above is None else child.name)
        children, number = dict[bytes, _Child](), 0
        for page in chain([first], [] if second is None else [second], pages):
            now_ns = clock.now_ms() * 1_000_000
            number ^= _hash(page)
            found = [self._take(each, url, ignoring, is_there, now_ns) for each in page]
            children.update((each.name, each) for each in found if isinstance(each, _Child))
            yield _build_part(url, len(way) + 1, found)
            if self._is_stopping():
                return
        own = self._look_at(connection, child, above)
        nodes = own | (frozenset() if above is None else above.nodes)
        seen = () if above is None else above.seen
        seen = seen if own or not children else (*seen, number)
        # In the order in which they were named: a server may say in one answer what is in several that follow each other.
        branches.append(_Branch(way, url, ignoring, nodes, seen, list(children.values())[::-1]))
        yield ListedPart(url=url, depth=len(way) + 1, end=ListingEnd(code=_READ, whole=True))

    def _look_at(self, connection: Connection, child: _Child, above: _Branch | None) -> frozenset[bytes]:
        node = child.node if above is not None else connection.look(()).node
        return frozenset({node} - {b""})

    def _take(self, thing: Thing, url: str, ignoring: Ignoring, is_there: IsThere, now_ns: int) -> Entry | _Child:
        """A name in a folder: what it is, and the rule that leaves it out."""
        name = thing.name
        if not can_be_name(name, self._root.scheme):
            return Entry(url + escape_name(name), LEFT_OUT, _NO_NAME)
        refusal = self._selection.find_refusal(name, is_there, is_folder=thing.is_folder)
        refusal = refusal or ignoring.find_refusal(name, is_folder=thing.is_folder)
        if refusal is None and thing.barred:
            refusal = f"file.{thing.key or 'roots'}: {thing.barred}"
        if thing.is_folder:
            return _Child(name, refusal, thing.node)
        identity = url + escape_name(name)
        if refusal is not None:
            return Entry(identity, LEFT_OUT, refusal)
        if len(identity) > MOST_CHARACTERS:
            return Entry(identity, thing.token, TOO_LONG)
        modified_ns = None if thing.modified_ms is None else thing.modified_ms * 1_000_000
        refusal = self._limits.find_refusal(thing.size, modified_ns, now_ns)
        return Entry(identity, thing.token, refusal, thing.facts)

    def _is_gone(self, connection: Connection, way: Way, failure: RemoteFailure | OSError) -> bool:
        """Whether a folder is gone since its parent named it, with the root still there: the next run sees it."""
        if not isinstance(failure, RemoteFailure) or not failure.is_absent:
            return False
        try:
            for depth in range(len(way) - 1, -1, -1):
                try:
                    if names_it(connection, way[:depth], way[depth]):
                        return False
                    require_root(connection, self._root, self._marker)
                except RemoteFailure as above:
                    if not above.is_absent or depth == 0:
                        return False
                else:
                    return True
        except OSError:
            return False
        return False

    def _try(self, work: Callable[[], Connection]) -> Connection:
        attempt = 0
        while True:
            attempt += 1
            try:
                return work()
            except RemoteFailure as failure:
                if not self._may_try(failure, attempt):
                    raise

    def _may_try(self, failure: RemoteFailure | OSError, attempt: int) -> bool:
        """Whether something that failed is tried again; waits until it may be."""
        if not is_transient(failure) or not backoff.may_retry(attempt, retries=self._source.fetch.retries):
            return False
        self._pace.wait(backoff.retry_pause_seconds(attempt))
        return not self._is_stopping()


def _regroup(pages: Iterable[Sequence[Thing]]) -> Iterator[list[Thing]]:
    """The same things in larger parts, but for the last one."""
    found = list[Thing]()
    for page in pages:
        found += page
        while len(found) >= MOST_ENTRIES:
            yield found[:MOST_ENTRIES]
            found = found[MOST_ENTRIES:]
    if found:
        yield found


def _hash(page: Sequence[Thing]) -> int:
    """A number of what is in a folder, whatever its order."""
    number = 0
    for thing in page:
        number ^= xxhash.xxh3_64_intdigest(
            b"%d %d %d " % (thing.is_folder, thing.size, thing.modified_ms or 0) + thing.name
        )
    return number


def _build_part(url: str, depth: int, found: Sequence[Entry | _Child]) -> ListedPart:
    entries = [each for each in found if isinstance(each, Entry)]
    children = [f"{url}{escape_name(each.name)}/" for each in found if isinstance(each, _Child)]
    return ListedPart(
        url=url, depth=depth, entries=tuple(sorted(entries, key=attrgetter("url"))), children=tuple(sorted(children))
    )


def look_for(connection: Connection, way: Way) -> Thing | None:
    """What is at the end of a way; None where nothing is. Raises RemoteFailure where that cannot be seen."""
    try:
        return connection.look(way)
    except RemoteFailure as failure:
        if failure.is_absent:
            return None
        raise


def names_it(connection: Connection, way: Way, name: bytes) -> bool:
    """Whether a folder names something; raises RemoteFailure."""
    return any(thing.name == name for page in connection.list_folder(way) for thing in page)


def read_ignored(connection: Connection, way: Way) -> bytes | None:
    """What the ``.searchignore`` of a folder holds; None where it has none. Raises RemoteFailure where that is not known."""
    try:
        return read_whole(connection.read((*way, FILE_NAME), MOST_BYTES).body)
    except TooLarge:
        return bytes(MOST_BYTES + 1)
    except RemoteFailure as failure:
        if failure.is_absent:
            return None
        reason = f"{show(FILE_NAME)}: {failure}"
        raise RemoteFailure(reason, code=failure.code, transient=failure.transient) from failure


def is_transient(failure: RemoteFailure | OSError) -> bool:
    """Whether something may be had later."""
    return isinstance(failure, RemoteFailure) and failure.transient


def _is_out_of_reach(failure: RemoteFailure | OSError) -> bool:
    """Whether it is the server that cannot answer, and not the one folder."""
    return isinstance(failure, RemoteFailure) and failure.transient and failure.code in UNREACHABLE | OVERLOADED


def describe_failure(failure: RemoteFailure | OSError) -> ListingEnd:
    """The end of a folder that cannot be read: nothing is known of what is in it."""
    if isinstance(failure, OSError):
        return ListingEnd(code=Code.IO_ERROR, error=failure.strerror or str(failure))
    code = Code.LOGIN_FAILED if failure.code == _NO_CREDENTIALS else failure.code
    return ListingEnd(code=int(code), error=str(failure))
