"""What a listed kind of source is made of: a lister, which says what there is, and a reader, which reads it.

Things are listed in containers: a folder, a table. Absence is evidence only from a container that was read whole, and what is
not listed any more is looked for once more by the reader before its document leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import xxhash

from searchcrawl.bodies import Body

#: The version of what cannot be told from another one yet.
UNKNOWN: Final = 0


def to_version(token: bytes) -> int:
    """The hash of a token as rows keep it: 64 bits with a sign; UNKNOWN for an empty one."""
    if not token:
        return UNKNOWN
    value = xxhash.xxh3_64_intdigest(token) or 1
    return value - (1 << 64) if value >= (1 << 63) else value


class Entry(NamedTuple):
    """One thing: its identity, and what tells one version of it from another.

    ``token`` is compared for equality only; an empty one is not known yet, as of a file that was written a moment ago: the
    thing is read again in the next run. ``facts`` is a second token, of what may change while the body stays as it is, as
    permissions: where it alone differs, the reader may do without the body. ``refusal`` is the rule of the source file, as ``KEY: RULE``, by which it is left out,
    where the lister alone can tell (955); other rules are asked for by its URL.
    """

    url: str
    token: bytes
    refusal: str | None = None
    facts: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingEnd:
    """How the reading of a container ended: 200, 304 where it is as it was, or the code of a failure.

    ``whole``: each entry and container in it was named in this reading. ``mark`` is given back to the lister in the next run
    (JSON); None: as before. ``refusal`` is the rule, as ``KEY: RULE``, by which the container is left out with all in it.
    """

    code: int
    error: str | None = None
    whole: bool = False
    mark: str | None = None
    refusal: str | None = None

    @property
    def is_failure(self) -> bool:
        """Whether nothing is known of the container."""
        return self.refusal is None and self.code not in {200, 304}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPart:
    """Some of the entries of one container, at most ``MOST_ENTRIES``; the last part has the ``end``.

    ``url`` is the identity of the container, ``children`` are containers in it, which have parts of their own. ``depth`` is that
    of its entries.
    """

    url: str
    depth: int = 1
    entries: tuple[Entry, ...] = ()
    children: tuple[str, ...] = ()
    end: ListingEnd | None = None


#: So many entries a part may have.
MOST_ENTRIES = 1000


class Marks(Protocol):
    """What the store knows of containers."""

    def find_mark(self, url: str) -> str | None:
        """What the lister noted of a container when it was read last; None: nothing."""
        ...

    def has_entries(self, url: str) -> bool:
        """Whether something is known of a container, or of one in it, that was listed and has not left."""
        ...


class Lister(Protocol):
    """Says what there is; in a thread of its own."""

    def __init__(self, source: Any, project: Any, marks: Marks, is_stopping: Callable[[], bool]) -> None: ...

    def list_roots(self) -> Sequence[str]:
        """The identities of the containers to begin with."""
        ...

    def walk(self) -> Iterator[ListedPart]:
        """The parts of all containers; those of one come one after the other, and those of its children after its end.

        A container that its parent does not name any more is gone, with all in it, once the parent was read whole. One that
        cannot be read has an end with a code. Ends early where ``is_stopping`` says so.
        """
        ...


class Finding(NamedTuple):
    """What is wrong with a key of the source file, as the source itself says; not ``is_error``: it may be right at another time."""

    key: str
    message: str
    is_error: bool = True


class ReadRequest(NamedTuple):
    """Something to read; not ``is_listed``: its container was read whole, and does not name it any more.

    ``version`` is the one in which its body is known (``to_version``); None: it is to be read.
    """

    url: str
    is_listed: bool
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What was read; ``headers`` as a web server would send them, with what ``answer_headers`` names.

    ``body`` is best put together by a ``bodies.Spool``: so a large one never is in memory.
    """

    body: Body
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SameBody:
    """It has the version that was asked for, and its body was not read; ``headers`` are those of now, all of them."""

    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Why nothing was read: 967 where it is not there for sure, else the code of a failure; ``transient``: tried again."""

    code: int
    error: str
    transient: bool = False


class Reader(Protocol):
    """Reads what was listed; thread-safe."""

    def __init__(self, source: Any, project: Any, marks: Marks) -> None: ...

    def read(self, requests: Sequence[ReadRequest]) -> Sequence[Read | SameBody | Unread]:
        """What the requests bring, in their order; blocks. What is asked for without a version is never SameBody."""
        ...

    def close(self) -> None:
        """Gives back what it holds."""
        ...
