"""Values that do not fit into memory when there are very many of them: in a file without a name, in their order (L4)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

T = TypeVar("T")
#: Lines that are read or written at once.
_LINES: Final = 1000


class Spool(Generic[T]):
    """Takes values, then yields them in their order, as often as they are asked for; a context manager around its file.

    ``pack`` makes JSON of a value, ``unpack`` the value again. Methods raise OSError where the disk is full.
    """

    def __init__(self, pack: Callable[[T], Any], unpack: Callable[[Any], T]) -> None:
        self._pack = pack
        self._unpack = unpack
        self._file = tempfile.TemporaryFile(prefix="searchcrawl-")  # noqa: SIM115 (closed by __exit__)
        self._gathered: list[bytes] = []
        self._length = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._length

    def add(self, value: T) -> None:
        """Takes one value; who is reading may not see it."""
        # Not orjson: what an index lists may have characters that UTF-8 does not know.
        self._gathered.append(json.dumps(self._pack(value)).encode() + b"\n")
        self._length += 1
        if len(self._gathered) == _LINES:
            self._write()

    def __iter__(self) -> Iterator[T]:
        self._write()
        at = 0
        while True:
            # Others may read or write meanwhile.
            self._file.seek(at)
            lines = list(islice(self._file, _LINES))
            if not lines:
                return
            at += sum(len(line) for line in lines)
            yield from (self._unpack(json.loads(line)) for line in lines)

    def _write(self) -> None:
        self._file.seek(0, 2)
        self._file.writelines(self._gathered)
        self._gathered = []


def in_groups(values: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    """The values, ``size`` at a time."""
    rest = iter(values)
    while group := list(islice(rest, size)):
        yield group
