"""A server of files in memory, and a source with a root on it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from searchcrawl import urls
from searchcrawl.bodies import Spool, hold
from searchcrawl.kinds.file.remote.model import RemoteFailure, RemoteFile, Thing, TooLarge, Way
from tests.unit.kinds.file.support_listing import FileSource

ROOT = "sftp://nas/srv"


class MemoryServer:
    """What is below the root, by its way: the bytes of a file, None for a folder, or a ``Thing`` of another kind."""

    def __init__(self) -> None:
        self.things: dict[Way, bytes | Thing | None] = {}
        #: how often it fails for a folder or file, each time with what is made here
        self.failures: dict[Way, list[RemoteFailure]] = {}
        self.asked: list[tuple[str, Way]] = []
        self.page = 1000
        self.opened = self.closed = 0
        self.refuses: RemoteFailure | None = None
        #: is called before each page of a folder
        self.on_page: Callable[[Way, int], None] = lambda way, number: None

    def fill(self, files: dict[str, bytes | str]) -> None:
        """Adds files with the folders that they are in."""
        for path, content in files.items():
            way = tuple(path.encode("utf-8", "surrogateescape").split(b"/"))
            self.things |= {way[:depth]: None for depth in range(1, len(way))}
            self.things[way] = content.encode() if isinstance(content, str) else content

    def fail(
        self, path: str, code: int, *, times: int = 1000, is_absent: bool = False, transient: bool = False
    ) -> None:
        """Has the next requests for something fail."""
        way = tuple(path.encode().split(b"/")) if path else ()
        failure = RemoteFailure(f"failed with {code}", code=code, is_absent=is_absent, transient=transient)
        self.failures[way] = [failure] * times

    def open(self, source: Any, root: str) -> MemoryServer:
        if self.refuses is not None:
            raise self.refuses
        assert urls.resolve(root, listed=True) == root
        self.opened += 1
        return self

    def list_folder(self, way: Way) -> Iterator[Sequence[Thing]]:
        self._ask("list", way)
        if way and self.things.get(way, b"") is not None:
            raise RemoteFailure("no such folder", code=404, is_absent=True)
        found = [self._describe(each) for each in self.things if each[:-1] == way and each]
        for number, place in enumerate(range(0, len(found), self.page)):
            self.on_page(way, number)
            yield found[place : place + self.page]

    def look(self, way: Way) -> Thing:
        self._ask("look", way)
        if not way:
            return Thing(b"", True, node=self.node(way))
        if way not in self.things:
            raise RemoteFailure("no such file", code=404, is_absent=True)
        return self._describe(way)

    def read(self, way: Way, most_bytes: int, new_spool: Callable[[], Spool] = hold) -> RemoteFile:
        self._ask("read", way)
        content = self.things.get(way)
        if not isinstance(content, bytes):
            raise RemoteFailure("no such file", code=404, is_absent=True)
        if len(content) > most_bytes:
            raise TooLarge
        return RemoteFile(body=content)

    def close(self) -> None:
        self.closed += 1

    def node(self, way: Way) -> bytes:
        return b""

    def _describe(self, way: Way) -> Thing:
        content = self.things[way]
        if isinstance(content, Thing):
            return content._replace(name=way[-1])
        if content is None:
            return Thing(way[-1], True, node=self.node(way))
        return Thing(way[-1], False, len(content), 1_700_000_000_000, b"%d" % hash(content))

    def _ask(self, what: str, way: Way) -> None:
        self.asked.append((what, way))
        if self.failures.get(way):
            raise self.failures[way].pop()


class RemoteSource(FileSource):
    """A source with one root on a server in memory."""

    def __init__(self, folder: Path, server: MemoryServer, patch: pytest.MonkeyPatch, **table: Any) -> None:
        module = SimpleNamespace(SftpConnection=server.open)
        patch.setitem(sys.modules, "searchcrawl.kinds.file.remote.sftp", module)
        super().__init__(folder / "project", folder, **{"roots": [ROOT], **table})

    @property
    def url(self) -> str:
        return f"{ROOT}/"
