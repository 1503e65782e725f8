"""What a protocol brings: folders of a server that are listed, and files of it that are read. Of several threads, and blocking.

The walk, the rules, the tokens of what was listed and the second look are those of all trees (``remote.walking``); a protocol says
what is in one folder, and what one file holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, runtime_checkable

from searchcrawl.bodies import Body, Spool, hold
from searchcrawl.terminal import to_one_line

_MOST_CHARACTERS: Final = 500

#: The names from the root to something, each as the server has it; nothing in it is normalised.
Way = tuple[bytes, ...]


class RemoteFailure(Exception):
    """Something on a server cannot be had.

    ``code`` is a status, as 403 and 503, or one of ``codes.Code``. ``is_absent``: the server says that it is not there, with a
    session that works. ``transient``: may be had later. The message names neither passwords nor keys; what servers say in it is
    cut, and steers no terminal.
    """

    def __init__(self, message: str, *, code: int, is_absent: bool = False, transient: bool = False) -> None:
        super().__init__(to_one_line(message)[:_MOST_CHARACTERS])
        self.code = code
        self.is_absent = is_absent
        self.transient = transient


class Thing(NamedTuple):
    """One name in a folder.

    ``token`` tells one version from another, and is compared for equality only; an empty one is not known yet, and the file is
    read again in the next run. ``barred`` is why it is neither file nor folder that may be read, as "a link"; ``key`` is the key
    of ``[file]`` that would let it, if one does. ``node`` tells folders apart, where the protocol can: a folder that is in itself
    is seen by it. ``facts`` is a second token, of what may change while ``token`` stays, as permissions do
    (``listing.model.Entry``).
    """

    name: bytes
    is_folder: bool
    size: int = 0
    #: milliseconds since 1970; None: the server does not say
    modified_ms: int | None = None
    token: bytes = b""
    barred: str = ""
    key: str = ""
    node: bytes = b""
    facts: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file that was read whole, as one version of it; ``headers`` as ``answer_headers`` names them, with Last-Modified."""

    body: Body
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Described(NamedTuple):
    """What is known of a file without its body: its token by now, and the headers that it would be read with."""

    token: bytes
    headers: tuple[tuple[bytes, bytes], ...]


@runtime_checkable
class Describing(Protocol):
    """A connection that says of its things ``facts``: what has changed in these alone needs no body."""

    def describe(self, way: Way) -> Described:
        """What is known of a file; raises RemoteFailure."""
        ...


class TooLarge(Exception):
    """A file has more bytes than asked for."""


class Connection(Protocol):
    """A root on a server. It is opened by its constructor, which raises RemoteFailure; a broken session is opened anew by itself."""

    def list_folder(self, way: Way) -> Iterator[Sequence[Thing]]:
        """What is in a folder, in parts of at most 1,000; ends once all of it was named. Raises RemoteFailure where that fails."""
        ...

    def look(self, way: Way) -> Thing:
        """What is at the end of a way (``()`` is the root); raises RemoteFailure."""
        ...

    def read(self, way: Way, most_bytes: int, new_spool: Callable[[], Spool] = hold) -> RemoteFile:
        """What a file holds, read with the version before and after compared, each time into a new spool.

        Raises RemoteFailure, TooLarge, and SpoolFailed.
        """
        ...

    def close(self) -> None:
        """Ends the session."""
        ...


#: Opens the root of a source at this URL: ``open(source, root)``; over HTTP with ``user_agent``, what is sent as such, besides.
Open = Callable[..., Connection]
