"""Values that do not fit into memory when there are very many of them: in a file without a name, in their order (L4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from searchcrawl.temporary_files import PartFile

T = TypeVar("T")
#: So many are written at once.
_VALUES: Final = 1000


class Spool(Generic[T]):
    """Takes values, then yields them in their order, as often as they are asked for; a context manager around its file.

    ``pack`` makes JSON of a value, ``unpack`` the value again. Methods raise OSError where the disk is full.
    """

    def __init__(self, pack: Callable[[T], Any], unpack: Callable[[Any], T]) -> None:
        self._pack = pack
        self._unpack = unpack
        self._file = PartFile()
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
        self._gathered.append(json.dumps(self._pack(value)).encode())
        self._length += 1
        if len(self._gathered) == _VALUES:
            self._write()

    def __iter__(self) -> Iterator[T]:
        self._write()
        yield from (self._unpack(json.loads(written)) for written in self._file)

    def _write(self) -> None:
        if self._gathered:
            self._file.add(self._gathered)
            self._gathered = []


def in_groups(values: Iterable[T], size: int) -> Iterator[Sequence[T]]:
    """The values, ``size`` at a time."""
    rest = iter(values)
    while group := list(islice(rest, size)):
        yield group
