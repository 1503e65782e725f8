"""How a reader of outside bytes is declared: its grammar, its limit, and the errors that it documents (X-R13)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from searchcrawl.http.download_handler import MAX_HEADER_LINE_BYTES

Read = Callable[[bytes], object]
Build = Callable[[int], str]

#: The longest value of a header.
LINE: Final = MAX_HEADER_LINE_BYTES
#: The default of ``fetch.max_bytes``.
BODY: Final = 50_000_000

#: The page that was read, or that has the link.
URL: Final = "http://a.test/folder/page"
#: Byte order marks, and bytes of encodings other than UTF-8.
ODD_BYTES: Final = (
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xef\xbb\xbf",
    b"\xe9",
    b"\x1b$B",
    b"\x8e\xa1",
    b"\xa4\xa2",
    b"\x81",
    b"\0<",
)
#: Stands in a piece for a number that is another one each time.
NUMBER: Final = b"{n}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Reader:
    """A function of the package that is given bytes of strangers.

    ``read`` is a function of a module below ``tests.readers`` that calls it; what it names there is what it covers.
    ``pieces`` are what its inputs are made of, with NUMBER in them for what is different each time; the patterns that
    it meets add theirs. ``most`` is how many bytes it is given at most. ``raises`` are the errors that it documents;
    any other is a failure. ``grown`` builds inputs of growing size that were trouble once, or might be.
    """

    read: Read
    pieces: tuple[bytes, ...]
    most: int = LINE
    raises: tuple[type[Exception], ...] = ()
    grown: Sequence[Build] = ()
    #: Whether its cost is bounded by its input: where it is not, it runs where it can be killed.
    linear: bool = True

    def __repr__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.read.__name__

    def take(self, given: bytes) -> None:
        """Reads; an error that is documented is an answer like any other."""
        with contextlib.suppress(*self.raises):
            self.read(given)


_declared: Final[dict[str, Reader]] = {}


def declare(
    *pieces: str | bytes,
    most: int = LINE,
    raises: tuple[type[Exception], ...] = (),
    grown: Sequence[Build] = (),
    linear: bool = True,
) -> Callable[[Read], Read]:
    """Declares the function below it as a reader, with the pieces of its grammar."""

    def add(read: Read) -> Read:
        encoded = tuple(piece if isinstance(piece, bytes) else piece.encode() for piece in pieces)
        _declared[read.__name__] = Reader(
            read=read, pieces=encoded, most=most, raises=raises, grown=tuple(grown), linear=linear
        )
        return read

    return add


def list_declared() -> list[Reader]:
    """All readers that were declared so far."""
    return list(_declared.values())
