"""The walk over a root on a server: what is listed, left out, tried again, and never taken for gone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.codes import Code
from searchcrawl.exceptions import ConfigurationError
from searchcrawl.kinds.file.remote.model import RemoteFailure, Thing, Way
from searchcrawl.politeness import backoff
from tests.unit.kinds.file.remote.support_server import ROOT, MemoryServer, RemoteSource

Build = Callable[..., RemoteSource]


@pytest.fixture
def server() -> MemoryServer:
    return MemoryServer()


@pytest.fixture
def build(tmp_path: Path, server: MemoryServer, monkeypatch: pytest.MonkeyPatch) -> Build:
    monkeypatch.setattr(backoff, "retry_pause_seconds", lambda attempt, asked=None: 0.0)

    def make(**table: Any) -> RemoteSource:
        return RemoteSource(tmp_path, server, monkeypatch, **table)

    return make


def names(urls: Any) -> list[str]:
    return sorted(url.removeprefix(f"{ROOT}/") for url in urls)


def test_walk_when_all_can_be_read_then_each_folder_is_listed_whole(server: MemoryServer, build: Build) -> None:
    server.fill({"a.txt": "1", "b/ü.txt": "2", "b/c/d": "3"})
    found = build().list()

    assert names(found.urls) == ["a.txt", "b/%C3%BC.txt", "b/c/d"]
    assert {url: end.whole for url, end in found.ends.items()} == {
        f"{ROOT}/{name}": True for name in ("", "b/", "b/c/")
    }
    assert (server.opened, server.closed) == (1, 1)
    assert all(what == "list" for what, way in server.asked if way)


def test_walk_when_the_server_names_what_is_no_name_then_nothing_is_asked_for_by_it(
    server: MemoryServer, build: Build
) -> None:
    server.things |= {(b"..",): None, (b".",): None, (b"../../etc/passwd",): b"x", (b"a\0b",): b"x", (b"ok",): b"x"}
    found = build().list()

    assert names(found.urls) == ["ok"]
    assert {way for what, way in server.asked if what == "list"} == {()}
    assert set(found.refusals.values()) == {"file.roots: its name is none of a file"}


def test_names_when_hidden_or_versions_or_ignored_then_are_left_out_as_in_local_folders(
    server: MemoryServer, build: Build
) -> None:
    server.fill(
        {"x": "1", "x~": "1", "y~": "1", ".h": "1", "#x#": "1", "n.~1~": "1", "~snapshot/a": "1", ".git/a": "1"}
    )
    server.fill({"d/.searchignore": "old\nsub/\n", "d/old": "1", "d/e/old": "1", "d/sub/a": "1", "d/new": "1"})
    server.things[(b"link",)] = Thing(b"", False, barred="is a link")
    found = build().list()

    assert names(found.urls) == ["d/new", "x", "y~"]
    assert {name.removeprefix(f"{ROOT}/"): rule for name, rule in found.refusals.items() if "~" in name or "old" in name or "link" in name} == {
        "n.~1~": "file.versions: versions = false",
        "x~": "file.versions: versions = false",
        "~snapshot/": "file.versions: versions = false",
        "d/old": f"{ROOT}/d/.searchignore line 1: old",
        "d/e/old": f"{ROOT}/d/.searchignore line 1: old",
        "link": "file.roots: is a link",
    }  # fmt: skip
    assert names(build(versions=True, hidden=True).list().urls)[:2] == ["%23x%23", ".h"]


def test_names_when_the_folder_is_larger_than_a_page_then_are_asked_for_one_by_one(
    server: MemoryServer, build: Build
) -> None:
    server.fill({f"f{number}": "1" for number in range(1500)} | {"f1~": "1", "f1400~": "1", "z~": "1", "a/b": "1"})
    server.fill({".searchignore": "f7*"})
    server.page = 170
    found = build().list()

    assert not {"f1~", "f1400~", "f7", "f777"} & {*names(found.urls)}
    assert {"z~", "f1", "f1499", "a/b"} <= {*names(found.urls)}
    assert max(len(part.entries) + len(part.children) for part in found.parts) <= 1000
    assert [way for what, way in server.asked if what == "look" and way] == [
        (b".searchignore",), (b"f1400",), (b"z",),
    ]  # fmt: skip


def test_scope_when_it_names_paths_sizes_and_depth_then_holds_on_servers(server: MemoryServer, build: Build) -> None:
    server.fill({"a/x.txt": "12345", "a/b/y": "1", "c/z": "1", "a/old/w": "1"})
    scope = 'include_paths = ["a/"]\nexclude_paths = ["/srv/a/old"]\nmin_bytes = 2'
    found = build(scope=scope).list()

    assert names(found.urls) == ["a/x.txt"]
    assert found.refusals[f"{ROOT}/a/b/y"] == "scope.min_bytes: min_bytes = 2"
    assert found.refusals[f"{ROOT}/a/old/"].startswith("scope.exclude_paths")
    assert (("list", (b"c",))) not in server.asked
    assert names(build(scope="depth = 1").list().urls) == []


@pytest.mark.parametrize(("code", "transient"), [(403, False), (503, True)])
def test_folder_when_it_cannot_be_read_then_is_a_failure_and_others_are_whole(
    server: MemoryServer, build: Build, code: int, transient: bool
) -> None:
    server.fill({"a/x": "1", "b/y": "1"})
    server.fail("a", code, transient=transient)
    found = build().list()

    assert found.failures == {f"{ROOT}/a/": (code, f"failed with {code}")}
    assert names(found.urls) == ["b/y"]
    assert found.ends[f"{ROOT}/"].whole
    assert server.asked.count(("list", (b"a",))) == (4 if transient else 1)


def test_folder_when_it_fails_in_the_middle_then_is_read_again_from_its_beginning(
    server: MemoryServer, build: Build
) -> None:
    server.fill({f"d/f{number}": "1" for number in range(2500)} | {"d/e/x": "1"})
    failed = list[Way]()

    def fail_once(way: Way, number: int) -> None:
        if number == 2 and not failed:
            failed.append(way)
            raise RemoteFailure("lost", code=Code.IO_ERROR, transient=True)

    server.on_page = fail_once
    found = build().list()

    assert failed == [(b"d",)]
    assert found.failures == {}
    assert len(found.urls) == 2501
    assert [part.url for part in found.parts if part.end is not None].count(f"{ROOT}/d/e/") == 1


def test_folder_when_its_parts_are_repeated_and_out_of_order_then_all_is_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Repeating(MemoryServer):
        def list_folder(self, way: Way) -> Any:
            pages = list(super().list_folder(way))
            yield from reversed(pages)
            yield from pages

    server = Repeating()
    server.page = 3
    server.fill({f"d{number}/f{other}": "1" for number in range(5) for other in range(5)})
    found = RemoteSource(tmp_path, server, monkeypatch).list()

    assert len(found.urls) == 25
    assert [part.url for part in found.parts if part.end is not None].count(f"{ROOT}/d3/") == 1


def test_server_when_it_is_gone_then_the_rest_is_left_and_the_listing_failed(
    server: MemoryServer, build: Build
) -> None:
    server.fill({f"d{number:02}/x": "1" for number in range(40)})
    for number in range(40):
        server.fail(f"d{number:02}", Code.CONNECTION_REFUSED, transient=True)
    found = build().list()

    assert [code for code, _ in found.failures.values()] == [Code.CONNECTION_REFUSED] * 5
    assert len(found.ends) == 6


def test_root_when_it_cannot_be_opened_then_is_a_failure(server: MemoryServer, build: Build) -> None:
    server.fill({"x": "1"})
    server.refuses = RemoteFailure("wrong password", code=401)
    found = build().list()
    assert found.failures == {f"{ROOT}/": (Code.LOGIN_FAILED, "wrong password")}

    server.refuses = RemoteFailure("nobody answers", code=Code.TIMEOUT, transient=True)
    assert build().list().failures == {f"{ROOT}/": (Code.TIMEOUT, "nobody answers")}


def test_root_when_it_is_empty_then_is_a_failure_only_if_it_was_not(server: MemoryServer, build: Build) -> None:
    source = build()
    assert source.list().ends[f"{ROOT}/"].whole
    server.fill({"x": "1"})
    source.list()
    server.things.clear()
    (failure,) = source.list().failures.values()
    assert failure[0] == Code.IO_ERROR
    assert "is empty, and was not in the last run" in str(failure[1])


def test_root_when_it_lacks_its_marker_then_is_a_failure(server: MemoryServer, build: Build) -> None:
    server.fill({"x": "1"})
    source = build(marker=".here")
    ((code, error),) = source.list().failures.values()
    assert (code, error) == (Code.IO_ERROR, f"{ROOT} has no .here in it: is it mounted?")
    server.fill({".here": ""})
    assert names(source.list().urls) == ["x"]


def test_folder_when_it_goes_while_its_parent_is_read_then_is_no_failure(server: MemoryServer, build: Build) -> None:
    server.fill({"a/x": "1", "b/c/y": "1", "z": "1"})

    def remove(way: Way, number: int) -> None:
        if way == (b"b",):
            for each in [(b"b", b"c", b"y"), (b"b", b"c"), (b"b",)]:
                del server.things[each]
            server.on_page = lambda way, number: None

    server.on_page = remove
    found = build().list()

    assert found.failures == {}
    assert f"{ROOT}/b/c/" not in found.ends


def test_folder_when_it_is_named_and_not_there_then_is_a_failure(server: MemoryServer, build: Build) -> None:
    server.fill({"a/x": "1", "z": "1"})
    server.fail("a", 404, is_absent=True)
    assert build().list().failures == {f"{ROOT}/a/": (404, "failed with 404")}


class _Loops(MemoryServer):
    """Each folder is in itself under the name ``self``."""

    numbered = False

    def node(self, way: Way) -> bytes:
        return b"/".join(name for name in (b"root", *way) if name != b"self") if self.numbered else b""

    def list_folder(self, way: Way) -> Any:
        real = tuple(name for name in way if name != b"self")
        for page in super().list_folder(real):
            yield [each for each in page if each.name != b"self"] + [Thing(b"self", True, node=self.node(real))]


@pytest.mark.parametrize("numbered", [True, False])
def test_folder_when_it_is_in_itself_then_the_walk_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbered: bool
) -> None:
    server = _Loops()
    server.numbered = numbered
    server.fill({"x": "1", "a/y": "2"})
    found = RemoteSource(tmp_path, server, monkeypatch).list()

    assert found.failures == {}
    assert {"x", "a/y"} <= {*names(found.urls)}
    assert "file.roots: leads to a folder that it is in" in found.refusals.values()
    assert len(found.urls) == (2 if numbered else len(found.urls)) < 40


def test_walk_when_the_run_stops_then_ends_early(server: MemoryServer, build: Build) -> None:
    server.fill({f"d{number}/x": "1" for number in range(40)})
    asked = iter(range(1000))
    found = build().list(lambda: next(asked) > 10)

    assert 0 < len(found.ends) < 40
    assert not found.failures


def test_protocol_when_its_library_is_missing_then_the_error_names_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = RemoteSource(tmp_path, MemoryServer(), monkeypatch)
    for name in ("sftp", "ssh_session"):
        monkeypatch.delitem(sys.modules, f"searchcrawl.kinds.file.remote.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "asyncssh", None)
    with pytest.raises(ConfigurationError, match=r"file.roots\[0\]: needs asyncssh: pip install 'searchcrawl\[sftp\]'"):
        source.list()
