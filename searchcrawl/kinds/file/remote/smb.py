"""Folders of SMB shares (``model.Connection``), with who may see what is in them.

Whoever sees a file may read it by its descriptor, and may pass each folder on the way to it from the share on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

import xxhash
from smbprotocol.exceptions import SMBResponseException

from searchcrawl import clock
from searchcrawl.answer_headers import EVERYONE, Level, Permissions, encode_permissions, encode_value
from searchcrawl.bodies import Body, Spool, hold
from searchcrawl.codes import Code
from searchcrawl.kind import FILE
from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.dates import list_dates
from searchcrawl.kinds.file.posix import digest_levels
from searchcrawl.kinds.file.remote import smb_descriptors as descriptors
from searchcrawl.kinds.file.remote import smb_requests as requests
from searchcrawl.kinds.file.remote import smb_statuses as statuses
from searchcrawl.kinds.file.remote import smb_structures as structures
from searchcrawl.kinds.file.remote.model import Described, RemoteFailure, RemoteFile, Thing, TooLarge, Way
from searchcrawl.kinds.file.remote.smb_requests import join
from searchcrawl.kinds.file.remote.smb_sessions import Account, Link, Share
from searchcrawl.kinds.file.remote.smb_share_levels import find_share_level
from searchcrawl.kinds.file.remote.smb_structures import Facts
from searchcrawl.kinds.file.remote.tokens import build_token
from searchcrawl.sources.config import Source

logger = logging.getLogger(__name__)

_SCHEME: Final = "smb"
_MOST_THINGS: Final = 1000
#: So often a file that changes while it is read is read.
_TRIES: Final = 3
#: That of the year 9999: no calendar has a later time.
_LATEST_MS: Final = 253_370_764_800_000
#: For so long it is believed, while files are read, who may pass a folder; so many folders are remembered.
_LEVEL_SECONDS: Final = 1.0
_MOST_LEVELS: Final = 2_000


class SmbConnection:
    """A root on a share. It is opened by its constructor, which raises RemoteFailure."""

    def __init__(self, source: Source, root: str) -> None:
        table: FileTable = source.own
        parts = urlsplit(root)
        share, *above = _read_root(parts.path)
        #: the folders from the share to the root
        self._above = tuple(above)
        password = None if table.password is None else str(table.password)
        account = Account(parts.hostname or "", parts.port or FILE.ports[_SCHEME], table.username, password)
        self._share = Share(account, share, source.fetch.timeout_seconds)
        self._reads_hidden = table.hidden
        has_permissions = table.find_permissions(_SCHEME) == _SCHEME
        self._levels = _Levels(self._share) if has_permissions else None
        self._share.connect()

    def close(self) -> None:
        """Ends the session."""
        self._share.close()

    def list_folder(self, way: Way) -> Iterator[Sequence[Thing]]:
        """What is in a folder, in parts; raises RemoteFailure where that fails."""
        names = self._name(way)
        levels = b"" if self._levels is None else self._levels.digest(names)
        link, folder = self._share.run(partial(_begin_list, join(names)))
        try:
            while found := self._share.go_on(link, partial(requests.list_more, folder=folder)):
                for number in range(0, len(found), _MOST_THINGS):
                    part = found[number : number + _MOST_THINGS]
                    yield self._share.go_on(link, partial(self._build_things, names, part, levels))
        finally:
            self._share.leave(link, partial(requests.end_list, folder=folder))

    def look(self, way: Way) -> Thing:
        """What is at the end of a way; raises RemoteFailure."""
        names = self._name(way)
        facts = self._share.run(partial(requests.look, names=names, begin=len(self._above)))
        return self._build_thing(way[-1] if way else b"", facts)

    def read(self, way: Way, most_bytes: int, new_spool: Callable[[], Spool] = hold) -> RemoteFile:
        """What a file holds, of one version, with who may see it (``remote.model.Connection``)."""
        names = self._name(way)
        for _ in range(_TRIES):
            levels = () if self._levels is None else self._levels.find(names[:-1], _LEVEL_SECONDS)
            found = self._share.run(partial(self._read_once, join(names), most_bytes, new_spool))
            # Who closes a folder may write at once what only those are to see who may still pass it.
            if found is not None and (not found.is_young or self._are_same(names, levels)):
                return RemoteFile(body=found.body, headers=self._build_headers(found, levels))
        raise RemoteFailure("changed while it was read", code=Code.READ_ERROR, transient=True)

    def _are_same(self, names: tuple[str, ...], levels: tuple[Level, ...]) -> bool:
        """Whether the same may pass the folders on a way by now."""
        return self._levels is None or self._levels.find(names[:-1], 0.0) == levels

    def describe(self, way: Way) -> Described:
        """What is known of a file without its body; raises RemoteFailure."""
        names = self._name(way)
        levels = () if self._levels is None else self._levels.find(names[:-1], _LEVEL_SECONDS)
        token, found = self._share.run(partial(self._describe_once, join(names)))
        return Described(token, self._build_headers(found, levels))

    def _describe_once(self, path: str, link: Link) -> tuple[bytes, _Content]:
        now_ms = clock.now_ms() + link.ahead_ms
        try:
            found = _look(link, path, describes=self._levels is not None)
        except SMBResponseException as error:
            if error.status != statuses.ACCESS_DENIED:
                raise
            found = _look(link, path, describes=False)
        return _build_token(found.facts, now_ms), found

    def _name(self, way: Way) -> tuple[str, ...]:
        """The names from the share on; raises RemoteFailure where it cannot have such a name."""
        names = [structures.decode_name(name) for name in way]
        if None in names:
            raise statuses.describe(statuses.NAME_INVALID)
        return (*self._above, *(name for name in names if name is not None))

    def _build_things(
        self, names: tuple[str, ...], found: Sequence[tuple[str, Facts]], levels: bytes, link: Link
    ) -> list[Thing]:
        now_ms = clock.now_ms() + link.ahead_ms
        things = [
            self._build_thing(structures.encode_name(name), facts, _build_token(facts, now_ms), levels)
            for name, facts in found
        ]
        if not levels:
            return things
        # Where the time of a change is that of writing, it may be so each time, and say nothing of permissions: as with Samba.
        silent = [
            place
            for place, (thing, (_, facts)) in enumerate(zip(things, found, strict=True))
            if thing.token and not thing.barred and facts.changed == facts.written
        ]
        contents = requests.describe_files(link, [join((*names, found[place][0])) for place in silent])
        for place, content in zip(silent, contents, strict=True):
            of_all = b"%b %x" % (levels, xxhash.xxh3_64_intdigest(content))
            things[place] = things[place]._replace(facts=of_all)
        return things

    def _build_thing(self, name: bytes, facts: Facts, token: bytes = b"", levels: bytes = b"") -> Thing:
        barred, key = "", ""
        if facts.leads_elsewhere:
            barred = "leads elsewhere: a link, a mount point, or a part of DFS"
        elif name and structures.decode_name(name) is None:
            barred = "has a name that SMB cannot be asked for"
        elif name and facts.is_hidden and not self._reads_hidden:
            barred, key = "is hidden", "hidden"
        return Thing(
            name,
            facts.is_folder,
            size=0 if facts.is_folder else facts.size,
            modified_ms=structures.to_ms(facts.written),
            token=token,
            barred=barred,
            key=key,
            node=facts.number.to_bytes(8, "little") if facts.is_folder and facts.number else b"",
            facts=levels,
        )

    def _read_once(self, path: str, most_bytes: int, new_spool: Callable[[], Spool], link: Link) -> _Content | None:
        """What a file holds; None where it changed meanwhile."""
        now_ms = clock.now_ms() + link.ahead_ms
        if self._levels is None:
            return _read(link, path, most_bytes, new_spool(), describes=False)
        try:
            found = _read(link, path, most_bytes, new_spool(), describes=True)
        except SMBResponseException as error:
            if error.status != statuses.ACCESS_DENIED:
                raise
            # It may be that only its permissions must not be read.
            found = _read(link, path, most_bytes, new_spool(), describes=False)
        return None if found is None else found._replace(is_young=not _build_token(found.facts, now_ms))

    def _build_headers(self, found: _Content, levels: Sequence[Level]) -> tuple[tuple[bytes, bytes], ...]:
        headers = list[tuple[bytes, bytes]]()
        created, modified = structures.to_ms(found.facts.created), structures.to_ms(found.facts.written)
        if created is not None and 0 < created < _LATEST_MS:
            headers.append(encode_value("file", "created", str(clock.iso(created))))
        headers += list_dates(None if modified is None else modified / 1000)
        if self._levels is None:
            return tuple(headers)
        own = descriptors.CLOSED
        if found.descriptor is not None:
            own = descriptors.find_level(found.descriptor, descriptors.READ)
            owner = descriptors.find_owner(found.descriptor)
            headers += [] if owner is None else [encode_value("file", "owner", owner)]
        return (*headers, *encode_permissions(Permissions(own.allow, own.deny, tuple(levels))))


class _Content(NamedTuple):
    body: Body
    facts: Facts
    #: None: it must not be read
    descriptor: bytes | None
    #: It was changed since who may pass the folders above it was read, or may have been.
    is_young: bool = False


def _read(link: Link, path: str, most_bytes: int, spool: Spool, *, describes: bool) -> _Content | None:
    access = requests.READ | (requests.DESCRIBE if describes else 0)
    with requests.open_file(link, path, access) as opened:
        facts = opened.facts
        if facts.size > most_bytes:
            raise TooLarge
        descriptor = requests.describe(link, opened.handle) if describes else None
        body = requests.read_file(link, opened.handle, facts.size, spool)
    is_same = opened.facts.version == facts.version and len(body) == facts.size
    return _Content(body, facts, descriptor) if is_same else None


def _look(link: Link, path: str, *, describes: bool) -> _Content:
    """What is known of a file, without what it holds."""
    with requests.open_file(link, path, requests.LOOK | (requests.DESCRIBE if describes else 0)) as opened:
        facts = opened.facts._replace(number=requests.find_number(link, opened.handle))
        descriptor = requests.describe(link, opened.handle) if describes else None
    return _Content(b"", facts, descriptor)


class _Levels:
    """Who may use a share, and who may pass its folders. Of several threads."""

    def __init__(self, share: Share) -> None:
        self._share = share
        #: by the names from the share on; that of the share itself has none (None)
        self._found: dict[tuple[str, ...] | None, tuple[float, Level]] = {}
        self._lock = Lock()
        self._is_told = False

    def digest(self, names: tuple[str, ...]) -> bytes:
        """Tells apart who may pass a folder that is listed, and those above, which were listed before it."""
        with self._lock:
            self._found.pop(names, None)
        return digest_levels(self.find(names, None)).encode("ascii")

    def find(self, names: tuple[str, ...], seconds: float | None) -> tuple[Level, ...]:
        """Who may pass the share and the folders on a way, as far as not all may; what is older than so many seconds is read anew."""
        ways = [None, *(names[:number] for number in range(len(names) + 1))]
        levels = [self._find(way, seconds) for way in ways]
        return tuple(dict.fromkeys(level for level in levels if not level.is_open))

    def _find(self, names: tuple[str, ...] | None, seconds: float | None) -> Level:
        now = clock.monotonic()
        with self._lock:
            since, level = self._found.get(names, (None, descriptors.CLOSED))
        if since is not None and (seconds is None or now - since < seconds):
            return level
        level = self._read_share() if names is None else self._read_folder(names)
        with self._lock:
            if len(self._found) >= _MOST_LEVELS:
                self._found.clear()
            self._found[names] = now, level
        return level

    def _read_share(self) -> Level:
        """Who may use the share, where the server says it; where it does not, the folders alone decide."""
        host, name = self._share.host, self._share.name
        found = self._share.run(partial(find_share_level, host=host, share=name))
        if found is None and not self._is_told:
            self._is_told = True
            logger.info(
                "//%s/%s: the server says to administrators only who may use the share; its folders decide", host, name
            )
        return found or Level((EVERYONE,))

    def _read_folder(self, names: tuple[str, ...]) -> Level:
        content = self._share.run(partial(requests.describe_folder, path=join(names)))
        return descriptors.CLOSED if content is None else descriptors.find_level(content, descriptors.PASS)


def _begin_list(path: str, link: Link) -> tuple[Link, bytes]:
    return link, requests.begin_list(link, path)


def _read_root(path: str) -> list[str]:
    """The share and the folders in the path of a root."""
    names = [structures.decode_name(unquote_to_bytes(name)) for name in path.split("/") if name]
    if not names or None in names:
        raise RemoteFailure("SMB has no such share or folder", code=Code.READ_ERROR)
    return [name for name in names if name is not None]


def _build_token(facts: Facts, now_ms: int) -> bytes:
    """The token of a file; empty for one that is too young, and for a folder."""
    if facts.is_folder:
        return b""
    latest_ms = structures.to_ms(max(facts.written, facts.changed))
    return build_token(now_ms, facts.size, latest_ms, facts.written, facts.changed, facts.number)
