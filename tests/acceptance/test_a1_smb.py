"""Shares of SMB as a source, read from a real Samba: what is new, changed and gone, and what is never taken for being gone (A1, A9)."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NoReturn

import pytest

from searchcrawl.store.states import FetchState
from tests import smb_server
from tests.acceptance.support_files import FileProject
from tests.acceptance.support_smb import SmbProject
from tests.crawl_forks import COMMANDS, Forks, started
from tests.read_watch import ReadWatch
from tests.smb_server import PASSWORD, USER, RunningSmb
from tests.stored_rows import query_columns

FILES: Final[dict[str, str | bytes]] = {
    "a.txt": "apples are red and good to eat",
    "b.html": "<title>Pears</title><p>pears are green and sweet",
    "c/d.txt": "plums are blue, and grow on trees",
    "c/e/f.txt": "cherries are dark red, and small",
}


@pytest.fixture(scope="module")
def running(part_missing: Callable[[str], NoReturn]) -> Iterator[RunningSmb]:
    """A server; a test that ends it starts it again."""
    try:
        server = smb_server.start_smb(users=(USER, "root"))
    except smb_server.PartMissing as error:
        part_missing(str(error))
    with server:
        yield server


@pytest.fixture
def server(running: RunningSmb) -> RunningSmb:
    """The server with an empty share."""
    shutil.rmtree(running.root)
    running.root.mkdir()
    running.root.chmod(0o755)
    return running


@pytest.fixture
def files(tmp_path: Path, server: RunningSmb) -> SmbProject:
    project = SmbProject(tmp_path, server)
    project.fill(FILES)
    return project


def test_share_when_crawled_then_has_the_hits_of_the_same_tree_here_less_what_the_protocol_hides(
    files: SmbProject, tmp_path: Path
) -> None:
    odd: dict[str, str | bytes] = {
        "Ärger & Söhne/ü.txt": "names that are no ASCII",
        "deep/" * 30 + "end.txt": "the end of a long way",
        "%41%2e.txt": "a name with escapes in it",
        "spaces at the end of it /x.txt": "a folder with a space",
        ".hidden/x.txt": "hidden",
        "~$draft.docx": "left out",
        "note.txt~": "no older version of anything",
        "off/x.txt": "ignored",
        ".searchignore": "off/\n",
        "empty.txt": "",
        "con:x|y?.txt": "a name that Windows cannot have",
    }
    files.fill(odd)
    (files.root / os.fsdecode(b"bytes\xff.txt")).write_text("a name that is no text")
    (files.root / "out").symlink_to("/etc")
    (files.root / "self").symlink_to(".")
    os.mkfifo(files.root / "pipe")
    here = FileProject(tmp_path / "here", file={"roots": [str(files.root)]})
    here.root, here.url = files.root, files.root.as_uri()
    here.crawl()
    files.crawl()

    ours, theirs = set(here.found()), set(files.found())
    renamed = {"con:x|y?.txt", "spaces at the end of it /x.txt"}
    assert theirs & ours == ours - renamed - {os.fsdecode(b"bytes\xff.txt")}
    # What Windows cannot have has another name.
    assert sorted(files.found("windows AND cannot") + files.found("folder AND space")) == sorted(theirs - ours)
    assert len(theirs - ours) == len(renamed)
    assert files.found("sweet") == ["b.html"]
    assert "leads to a folder that it is in" in files.command("explain", files.identify("self/a.txt"))


def test_share_when_crawled_again_then_only_what_is_new_changed_and_gone_is_read(files: SmbProject) -> None:
    files.fill({f"more/{number}.txt": f"this is file number {number} of many others" for number in range(60)})
    first = files.crawl()
    same = files.crawl()
    files.fill({"new.txt": "a new file about quinces", "a.txt": "apples are yellow now"})
    (files.root / "c" / "d.txt").unlink()
    (files.root / "more" / "1.txt").rename(files.root / "more" / "1.TXT")
    counts = files.crawl()
    after = files.crawl()

    assert (first["new"], first["indexed"]) == (64, 64)
    assert (same["fetched"], same["indexed"], same["deleted"]) == (0, 0, 0)
    # What is gone was looked for once more: the server would have opened 1.TXT for 1.txt.
    assert (counts["changed"], counts["fetched"]) == (1, 5)
    assert files.found("quinces OR yellow") == ["a.txt", "new.txt"]
    assert files.rows()["c/d.txt"][0] == 967
    assert {"more/1.TXT", "more/1.txt"} & {*files.indexed()} == {"more/1.TXT"}
    assert after["fetched"] == 0


def test_file_when_its_permissions_alone_change_then_the_next_run_says_so(files: SmbProject) -> None:
    def sees(user: str) -> bool:
        return files.ask("search", "apples", "--as-user", user)["total"] == 1

    files.crawl()
    before = sees("mia")
    with ReadWatch(files.root) as watch:
        (files.root / "a.txt").chmod(0o600)
        shutil.chown(files.root / "a.txt", USER)
        counts = files.crawl()
        after = sees("mia")
        (files.root / "a.txt").chmod(0o644)
        files.crawl()
        again = sees("mia")
        files.root.chmod(0o750)
        shutil.chown(files.root, USER)
        files.crawl()
        below = sees("mia")
        read = watch.take()

    assert (before, after, again, below) == (True, False, True, False)
    assert (counts["fetched"], read) == (1, [])
    assert {row[0] for row in files.rows().values()} == {200}
    assert files.crawl()["fetched"] == 0


def test_server_when_it_is_gone_at_the_listing_then_nothing_leaves_and_the_next_run_is_whole(files: SmbProject) -> None:
    files.crawl()
    (files.root / "a.txt").unlink()
    files.server.kill()
    gone = files.crawl(code=3)
    status = files.command("status", "files")
    held = files.indexed()
    files.server.start()
    back = files.crawl()

    assert (gone["deleted"], gone["discovered"]) == (0, 0)
    assert held == sorted(FILES)
    assert f"{files.url}/ could not be listed" in status
    assert back["deleted"] == 1
    assert files.indexed() == sorted({*FILES} - {"a.txt"})


def test_server_when_it_is_gone_in_the_middle_of_the_listing_then_nothing_leaves_that_is_there(
    files: SmbProject, forks: Forks
) -> None:
    files.fill({f"g/{number}/x.txt": f"this is file number {number} of many" for number in range(30)})
    files.crawl()
    known = set(files.indexed())
    (files.root / "c" / "d.txt").unlink()
    others = {f"h/{number}/x.txt": f"this is file number {number} of the others" for number in range(30)}
    files.fill(others)
    files.settle()
    files.edit(fetch={"delay_seconds": 0.1, "retries": 0})
    with started(forks.start(files.folder, "crawl", "files")) as crawling:
        crawling.until(lambda: sum(row[0] == 200 for name, row in files.rows().items() if name.startswith("h/")) > 2)
        files.server.kill()
        code = crawling.wait()
    left = set(files.indexed())
    files.server.start()
    files.edit()
    files.crawl()

    assert code == 3
    assert known - {"c/d.txt"} <= left
    assert len(left - known) < len(others)
    assert set(files.indexed()) == known - {"c/d.txt"} | {*others}


@pytest.mark.extended
def test_server_when_it_is_started_anew_in_the_reading_then_the_rest_is_read(files: SmbProject, forks: Forks) -> None:
    many = {f"g/{number}.txt": f"this is file number {number} of many" for number in range(40)}
    files.fill(many)
    files.settle()
    files.edit(fetch={"delay_seconds": 0.05, "retries": 0})
    with started(forks.start(files.folder, "crawl", "files")) as crawling:
        crawling.until(lambda: 0 < count_unread(files) < 30)
        files.server.kill()
        files.server.start()
        code = crawling.wait()
    files.edit()
    files.crawl()

    assert code in {0, 3}
    assert files.indexed() == sorted({**FILES, **many})


def test_server_when_it_is_gone_in_the_reading_then_nothing_leaves(files: SmbProject, forks: Forks) -> None:
    many = {f"g/{number}.txt": f"this is file number {number} of many" for number in range(40)}
    files.fill(many)
    files.crawl()
    files.fill({name: f"{text}, and another text" for name, text in many.items()})
    files.settle()
    files.edit(fetch={"delay_seconds": 0.05, "retries": 0})
    with started(forks.start(files.folder, "crawl", "files")) as crawling:
        crawling.until(lambda: 0 < count_unread(files) < 30)
        files.server.kill()
        code = crawling.wait()
    left = files.indexed()
    files.server.start()
    files.edit()
    files.crawl()

    assert code == 3
    assert left == sorted({**FILES, **many})
    assert len(files.found("another")) == len(many)


def count_unread(files: SmbProject) -> int:
    query = f"SELECT count(*) AS unread FROM urls WHERE fetch_state <> {int(FetchState.SETTLED)}"
    # There is no store at first.
    return sum(int(row["unread"]) for row in query_columns(files.folder, query))


def test_server_when_it_does_not_answer_then_the_run_ends_in_time_and_nothing_leaves(files: SmbProject) -> None:
    files.crawl()
    files.edit(fetch={"timeout_seconds": 1.0})
    files.server.signal(signal.SIGSTOP)
    try:
        counts = files.crawl(code=3)
    finally:
        files.server.signal(signal.SIGCONT)
    again = files.crawl()

    assert (counts["deleted"], again["deleted"], again["fetched"]) == (0, 0, 0)
    assert files.indexed() == sorted(FILES)


def test_login_when_it_is_refused_then_nothing_leaves_and_no_message_has_the_password(files: SmbProject) -> None:
    files.crawl()
    secret = "not-the-p4ssword"
    files.edit(file={"password": secret})
    counts = files.crawl(code=3)
    checked = COMMANDS.run(files.folder, "sources", "check")
    said = files.command("status", "files") + checked.stdout + checked.stderr
    kept = b"".join(path.read_bytes() for path in files.folder.rglob("*") if path.is_file() and path.suffix != ".toml")

    assert counts["deleted"] == 0
    assert files.indexed() == sorted(FILES)
    assert "wrong name or password" in said
    assert secret not in said
    assert secret.encode() not in kept
    assert PASSWORD.encode() not in kept


def test_folder_when_it_cannot_be_read_then_what_is_in_it_stays(files: SmbProject) -> None:
    files.crawl()
    (files.root / "c").chmod(0o700)
    (files.root / "a.txt").unlink()
    counts = files.crawl(code=3)
    status = files.command("status", "files")
    held = files.indexed()
    (files.root / "c").chmod(0o755)
    files.crawl()

    # The other folder was read whole.
    assert counts["deleted"] == 1
    assert held == ["b.html", "c/d.txt", "c/e/f.txt"]
    assert f"{files.url}/c/" in status
    assert files.indexed() == held


def test_share_when_a_third_of_it_is_gone_then_it_is_held_until_somebody_approves(files: SmbProject) -> None:
    files.fill({f"g/{number}.txt": f"this is file number {number} of many" for number in range(60)})
    files.crawl()
    for number in range(20):
        (files.root / "g" / f"{number}.txt").unlink()
    counts = files.crawl(code=9)
    held = len(files.indexed())
    files.command("quarantine", "approve", "files")

    assert (counts["deleted"], held) == (0, 64)
    assert len(files.indexed()) == 44


def test_file_when_another_program_holds_it_then_it_stays_and_is_read_later(files: SmbProject) -> None:
    files.crawl()
    files.fill({"a.txt": "apples are yellow now"})
    files.settle()
    with files.server.hold("a.txt"):
        files.crawl(code=0)
        code, _ = files.rows()["a.txt"]
        held = files.found("apples")
    files.crawl()

    assert code == 958
    assert held == ["a.txt"]
    assert files.found("yellow") == ["a.txt"]


@pytest.mark.extended
def test_root_when_it_is_empty_or_gone_then_nothing_leaves(server: RunningSmb, tmp_path: Path) -> None:
    files = SmbProject(tmp_path, server, below="team")
    files.fill(FILES)
    files.crawl()
    files.root.rename(server.root / "elsewhere")
    gone = files.crawl(code=3, settled=False)
    files.root.mkdir()
    empty = files.crawl(code=3, settled=False)
    files.root.rmdir()
    (server.root / "elsewhere").rename(files.root)
    back = files.crawl()

    assert [run["deleted"] for run in (gone, empty, back)] == [0, 0, 0]
    assert files.indexed() == sorted(FILES)


def test_share_when_a_part_of_it_is_on_another_server_then_that_is_not_asked(
    server: RunningSmb, tmp_path: Path
) -> None:
    referring = server.folder / "referring"
    (referring / "here.txt").write_text("apples of this server")
    (referring / "there").symlink_to(r"msdfs:127.0.0.1\share")
    (server.root / "away.txt").write_text("apples of another server")
    files = SmbProject(tmp_path, server, share="referring")
    files.crawl()

    assert files.indexed() == ["here.txt"]
    assert "leads elsewhere" in files.command("explain", f"{files.url}/there/away.txt")


@pytest.mark.extended
def test_share_when_the_server_wants_encryption_or_has_an_old_dialect_then_is_read(
    tmp_path: Path, part_missing: Callable[[str], NoReturn]
) -> None:
    for number, more in enumerate(("smb encrypt = required", "server max protocol = SMB2_10")):
        try:
            running = smb_server.start_smb(more)
        except smb_server.PartMissing as error:
            part_missing(str(error))
        with running as server:
            files = SmbProject(tmp_path / str(number), server)
            files.fill({**FILES, "long.txt": "apples " * 50_000})
            files.crawl(settled=False)

            assert files.indexed() == sorted([*FILES, "long.txt"])


@pytest.mark.parametrize(
    ("below", "file", "code", "message"),
    [
        ("share", {"username": None, "password": None}, 4, "the server lets nobody in with these credentials"),
        ("share", {"password": None}, 4, "the server lets nobody in with these credentials"),
        ("share/nowhere", {}, 0, "no such file"),
        ("nothing", {}, 4, "the server has no such share"),
        ("share", {"username": rf"TESTS\{USER}"}, 0, ""),
        ("share", {}, 0, ""),
    ],
)
def test_check_when_a_share_can_or_cannot_be_read_then_says_so(
    files: SmbProject, below: str, file: dict[str, str | None], code: int, message: str
) -> None:
    files.edit(file={"roots": [f"smb://127.0.0.1:{files.server.port}/{below}/"], **file})
    checked = COMMANDS.run(files.folder, "sources", "check")

    assert checked.returncode == code, checked.stderr
    assert message in checked.stdout + checked.stderr
    assert message or "file.roots" not in checked.stdout + checked.stderr
