"""Reading below a root on a server: what is read, what is gone for sure, and what nobody can say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from searchcrawl.codes import Code
from searchcrawl.kinds.file.remote.model import RemoteFailure, Thing
from searchcrawl.listing.model import Read, Unread
from tests.unit.kinds.file.remote.support_server import MemoryServer, RemoteSource


@pytest.fixture
def server() -> MemoryServer:
    server = MemoryServer()
    server.fill({"a.txt": "apples", "d/b": "pears", "d/.searchignore": "old", "d/old": "plums", "x~": "", "x": ""})
    return server


@pytest.fixture
def source(tmp_path: Path, server: MemoryServer, monkeypatch: pytest.MonkeyPatch) -> RemoteSource:
    return RemoteSource(tmp_path, server, monkeypatch)


def codes(found: list[Read | Unread]) -> list[Any]:
    return [each.body if isinstance(each, Read) else each.code for each in found]


def test_files_when_they_are_there_then_are_read_with_their_paths(server: MemoryServer, source: RemoteSource) -> None:
    found = source.read("a.txt", "d/b")

    assert codes(found) == [b"apples", b"pears"]
    assert isinstance(found[1], Read)
    assert found[1].headers == ((b"Searchcrawl-Value", b"file:path=/srv/d/b"),)
    assert (server.opened, server.closed) == (1, 1)


def test_files_when_they_are_not_there_then_are_gone_and_the_root_is_looked_at_once(
    server: MemoryServer, source: RemoteSource
) -> None:
    assert codes(source.read("n1", "n2", "d/n3", "a.txt", is_listed=False))[:3] == [Code.NO_LONGER_LISTED] * 3
    assert [way for what, way in server.asked if what == "list"] == [()]
    assert codes(source.read("n1", is_listed=True)) == [Code.NO_LONGER_LISTED]


def test_file_when_its_listing_does_not_name_it_then_rules_about_names_are_asked(
    server: MemoryServer, source: RemoteSource
) -> None:
    server.things[(b"link",)] = Thing(b"", False, barred="is a link")
    found = source.read("d/old", "x~", "link", "d", "a.txt", is_listed=False)

    assert codes(found) == [Code.NO_LONGER_LISTED] * 4 + [b"apples"]
    assert [each.error for each in found if isinstance(each, Unread)] == [
        "left out by sftp://nas/srv/d/.searchignore line 1: old",
        "left out by file.versions: versions = false",
        "is a link",
        "is a folder",
    ]


@pytest.mark.parametrize("lost", ["empty", "unmarked", "away"])
def test_file_when_its_root_is_lost_then_nobody_can_say(
    tmp_path: Path, server: MemoryServer, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    source = RemoteSource(tmp_path, server, monkeypatch, **({"marker": ".here"} if lost == "unmarked" else {}))
    if lost == "away":
        server.refuses = RemoteFailure("wrong password", code=401)
    elif lost == "empty":
        server.things.clear()
    (found,) = source.read("n1", is_listed=False)

    assert isinstance(found, Unread)
    assert (found.code, found.transient) == (Code.IO_ERROR, True)


@pytest.mark.parametrize(
    ("code", "expected"),
    [(403, 403), (503, 503), (404, Code.READ_ERROR), (410, Code.READ_ERROR), (401, Code.IO_ERROR), (958, 958)],
)
def test_file_when_it_cannot_be_read_then_its_code_is_no_evidence(
    server: MemoryServer, source: RemoteSource, code: int, expected: int
) -> None:
    server.fail("a.txt", code)
    assert codes(source.read("a.txt")) == [expected]


def test_server_when_it_is_gone_while_files_are_read_then_is_not_asked_for_each(
    server: MemoryServer, source: RemoteSource
) -> None:
    server.fail("a.txt", Code.TIMEOUT, transient=True)
    assert codes(source.read("x", "a.txt", "d/b", "n1")) == [b"", *[Code.TIMEOUT] * 3]
    assert server.asked == [("read", (b"x",)), ("read", (b"a.txt",))]


def test_file_when_it_is_said_to_be_absent_and_is_there_then_nobody_can_say(
    server: MemoryServer, source: RemoteSource
) -> None:
    server.fail("a.txt", 404, is_absent=True, times=1)
    assert codes(source.read("a.txt")) == [Code.READ_ERROR]


def test_file_when_it_is_too_large_then_is_not_read(
    tmp_path: Path, server: MemoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = RemoteSource(tmp_path, server, monkeypatch, more="[fetch]\nmax_bytes = 5")
    assert codes(source.read("a.txt", "d/b")) == [Code.TOO_LARGE, b"pears"]


@pytest.mark.parametrize("name", ["..%00/etc/passwd", "..%2F..%2Fetc%2Fpasswd", "a%00%00", "d/%00/b", ".%00/a.txt"])
def test_url_when_its_names_are_places_then_the_server_is_not_asked_for_it(
    server: MemoryServer, source: RemoteSource, name: str
) -> None:
    from searchcrawl.kinds.file.reader import FileReader
    from searchcrawl.listing.model import ReadRequest

    reader = FileReader(source.source, source.project, source.marks)
    found = reader.read([ReadRequest(f"{source.url}{name}", False)])
    reader.close()

    assert codes(list(found)) == [Code.NO_LONGER_LISTED]
    assert {what for what, _ in server.asked} == {"list"}


def test_url_when_it_is_in_no_root_then_is_gone_and_no_server_is_asked(
    server: MemoryServer, source: RemoteSource
) -> None:
    from searchcrawl.kinds.file.reader import FileReader
    from searchcrawl.listing.model import ReadRequest

    reader = FileReader(source.source, source.project, source.marks)
    urls = ["sftp://other/srv/a.txt", "sftp://nas/srvx/a.txt", "sftp://nas:23/srv/a.txt", "smb://nas/srv/a.txt"]
    found = reader.read([ReadRequest(url, False) for url in urls])
    reader.close()

    assert codes(list(found)) == [Code.NO_LONGER_LISTED] * 4
    assert server.asked == []
