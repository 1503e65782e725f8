"""Folders of real WebDAV servers: the same as those of this machine, and nothing leaves because the server is away (A1, A9)."""

from __future__ import annotations

import os
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests import webdav_server
from tests.acceptance.support_files import STRANGE, FileProject
from tests.crawl_forks import COMMANDS
from tests.webdav_server import PASSWORD, USER, Wsgidav, start_apache, start_wsgidav

FILES: dict[str, str | bytes] = {
    "a.txt": "apples are red and good to eat",
    "b.html": "<title>Pears</title><p>pears are green and sweet",
    "c/d.txt": "plums are blue, and grow on trees",
    "c/e/f.txt": "cherries are dark red, and small",
}
MANY = {f"g/{number}/x.txt": f"this is file number {number} of many others" for number in range(20)}
#: Where the root is on the server.
TOP = "/root"
#: One such name makes wsgidav fail for its whole folder.
_NO_TEXT = STRANGE[0]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Wsgidav]:
    with start_wsgidav(tmp_path, login="digest") as found:
        yield found


@pytest.fixture
def files(tmp_path: Path, server: Wsgidav) -> FileProject:
    access = {"username": USER, "password": PASSWORD}
    project = FileProject(tmp_path, served=f"{server.url}/root", access=access)
    project.fill(FILES)
    return project


@pytest.mark.parametrize("kind", [pytest.param("wsgidav", marks=pytest.mark.extended), "apache"])
def test_tree_when_a_server_shows_it_then_has_the_same_hits_as_the_tree_itself(
    tmp_path: Path, kind: str, part_missing: Callable[[str], NoReturn]
) -> None:
    try:
        server = start_wsgidav(tmp_path) if kind == "wsgidav" else start_apache()
    except webdav_server.PartMissing as error:
        part_missing(str(error))
    with server:
        files = FileProject(server.root, served=f"{server.url}/root")
        files.fill(FILES)
        strange = files.fill_strange([name for name in STRANGE if kind == "apache" or name != _NO_TEXT])
        outside = tmp_path / "outside"
        outside.mkdir()
        (outside / "canary.txt").write_text("canary of nobodys business")
        for place in ("link", "c/link"):
            (files.root / place).symlink_to(outside)
        os.mkfifo(files.root / "pipe.txt")
        files.fill(
            {"old.txt~": "", "old.txt": "text", ".searchignore": "*.bak\n", "z.bak": "", ".hidden/x.txt": "hidden"}
        )
        files.fill({"~$x.docx": "lock", "empty.txt": "", "x.tmp": "temporary"})
        with zipfile.ZipFile(files.root / "box.zip", "w") as archive:
            archive.writestr("in/x.txt", "quinces are in the box")
        first = files.crawl()
        read = server.count("GET")
        second = files.crawl()

        local = FileProject(tmp_path / "local")
        local.root.rmdir()
        local.root.symlink_to(files.root)
        local.crawl()
        expected = sorted([*FILES, *strange, "old.txt", "box.zip!/in/x.txt"])
        assert files.indexed() == files.found() == local.indexed() == expected
        assert first["indexed"] == len(expected)
        assert (second["fetched"], second["indexed"], second["discovered"], second["deleted"]) == (0, 0, 0, 0)
        # What is left out in a folder is read with each listing of it.
        assert server.count("GET") == read + 1
        assert files.found("canary") == files.found("hidden") == []
        assert files.rows()["z.bak"] == (955, f"{files.url}/.searchignore line 1: *.bak")
        assert "in the index" in files.command("explain", files.identify("a.txt"))
        assert "apples are red" in files.command("test", files.identify("a.txt"), "--source", "files")


def test_files_when_some_are_new_changed_and_gone_then_these_alone_are_read(
    files: FileProject, server: Wsgidav
) -> None:
    files.fill(MANY)
    files.crawl()
    server.requests.clear()
    files.fill({"new.txt": "a new file about quinces", "a.txt": "apples are yellow now"})
    (files.root / "c" / "d.txt").unlink()
    counts = files.crawl()

    # What is gone was looked for once more.
    assert (counts["new"], counts["changed"], counts["deleted"], counts["fetched"]) == (1, 1, 1, 3)
    assert sorted({path for method, path in server.requests if method == "GET"}) == [f"{TOP}/a.txt", f"{TOP}/new.txt"]
    assert files.found("quinces OR yellow") == ["a.txt", "new.txt"]
    assert files.rows()["c/d.txt"][0] == 967

    (files.root / "g").rename(files.root / "h")
    files.crawl()
    assert len([name for name in files.indexed() if name.startswith("h/")]) == len(MANY)
    assert len(files.indexed()) == len(MANY) + 4
    for number in range(12):
        (files.root / "h" / str(number) / "x.txt").unlink()
    held = files.crawl(code=9)
    assert (held["deleted"], len(files.indexed())) == (0, len(MANY) + 4)
    files.command("quarantine", "approve", "files")
    assert len(files.indexed()) == len(MANY) + 4 - 12


def test_plan_when_attributes_are_edited_then_the_server_is_not_asked(files: FileProject, server: Wsgidav) -> None:
    files.crawl()
    server.requests.clear()
    files.edit(attributes={"file:path": "path"})
    planned = files.ask("plan", "files")
    files.command("apply", planned["plan"])

    assert server.requests == []
    hits = files.ask("search", "plums", "--source", "files", "--filter", f"path:{TOP}/c/d.txt")["hits"]
    assert [hit["url"] for hit in hits] == [files.identify("c/d.txt")]


def test_password_when_it_is_wrong_then_is_in_no_message_and_nothing_leaves(
    files: FileProject, server: Wsgidav
) -> None:
    files.crawl()
    secret = "very-secret-pass-word"
    files.edit(file={"password": secret})
    server.requests.clear()
    counts = files.crawl(code=3, settled=False)
    ended = COMMANDS.run(files.folder, "sources", "check")
    checked = ended.stdout + ended.stderr

    assert counts["deleted"] == counts["discovered"] == 0
    assert files.indexed() == sorted(FILES)
    # The crawl and the check send it once each, after a request without it.
    assert [method for method, _ in server.requests] == ["PROPFIND"] * 4
    assert "the server refuses file.username with this password" in files.command("status", "files")
    assert ended.returncode == 4
    assert "lets nobody in with these credentials" in checked
    assert secret not in checked + files.command("status", "files")
    stored = [path for path in files.folder.rglob("*") if path.is_file() and path.name != "files.toml"]
    assert [path for path in stored if secret.encode() in path.read_bytes()] == []


PAGE = b"<html><title>Log in</title><form><input type=password></form></html>"


@pytest.mark.parametrize("lost", ["stopped", "login page"])
def test_root_when_it_is_not_there_then_nothing_leaves_and_the_next_run_is_whole(
    files: FileProject, server: Wsgidav, lost: str
) -> None:
    files.crawl()
    if lost == "stopped":
        server.stop()
    else:
        server.instead = lambda method, path: ("200 OK", [("Content-Type", "text/html")], PAGE)
    counts = files.crawl(code=3, settled=False)
    said, after_loss = files.command("status", "files"), files.indexed()
    if lost == "stopped":
        server.start()
    server.instead = lambda method, path: None
    again = files.crawl()

    assert (counts["deleted"], counts["discovered"]) == (0, 0)
    assert after_loss == sorted(FILES)
    assert f"{files.url}/ could not be listed" in said
    assert (again["deleted"], again["fetched"]) == (0, 0)


def test_folder_when_the_server_fails_for_it_then_it_alone_is_a_failure(files: FileProject, server: Wsgidav) -> None:
    files.fill(MANY)
    files.crawl()
    for number in (7, 9):
        (files.root / "g" / str(number) / "x.txt").unlink()

    def fail(method: str, path: str) -> tuple[str, list[tuple[str, str]], bytes] | None:
        return ("503 Busy", [("Retry-After", "0")], b"") if path == f"{TOP}/g/7/" else None

    server.instead = fail
    counts = files.crawl(code=3)

    assert counts["deleted"] == 1
    assert "g/7/x.txt" in files.indexed()
    assert "g/9/x.txt" not in files.indexed()
    assert f"{files.url}/g/7/ could not be listed" in files.command("status", "files")


@pytest.mark.parametrize("method", ["PROPFIND", "GET"])
def test_server_when_it_stops_in_listing_or_reading_then_nothing_leaves_and_the_next_run_is_whole(
    files: FileProject, server: Wsgidav, method: str
) -> None:
    files.fill(MANY)
    files.crawl()
    known = files.indexed()
    (files.root / "c" / "d.txt").unlink()
    (files.root / "g" / "5" / "x.txt").unlink()
    files.fill({f"h/{number}/x.txt": f"this is file number {number} of the others" for number in range(40)})
    server.requests.clear()

    def stop(asked: str, path: str) -> None:
        if asked == method and server.count(method) == 20:
            threading.Thread(target=server.stop).start()

    server.instead = stop
    files.edit(fetch={"retries": 1})
    files.crawl(code=3)
    after_loss = files.indexed()
    server.instead = lambda asked, path: None
    server.start()
    files.crawl()

    gone = {"c/d.txt", "g/5/x.txt"}
    assert {*known} - gone <= {*after_loss}
    assert {*files.indexed()} == {*known, *(f"h/{number}/x.txt" for number in range(40))} - gone
