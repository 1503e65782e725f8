from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import IndexMisconfigured, IndexUnavailable
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import SearchIndex, SearchQuery
from tests.index_documents import batch, document, found, listed

#: Delivers one document a batch: python -c … FOLDER SOURCE BATCHES
DELIVERING = """
import pathlib, sys
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import Batch
from searchcrawl.items import IndexedDocument

receiver = LocalReceiver(pathlib.Path(sys.argv[1]))
source = sys.argv[2]
for number in range(1, int(sys.argv[3]) + 1):
    fields = {"url": f"http://a.example/{number}", "content": "delivered by a process", "checksum": "x"}
    document = IndexedDocument(id=f"{source}:{number:03}", fields=fields)
    (receipt,) = receiver.deliver(Batch(number=number, source=source, crawl_version=number, documents=[document]))
    assert receipt.accepted
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "var" / "index"


@pytest.fixture
def receiver(folder: Path) -> Iterator[LocalReceiver]:
    made = LocalReceiver(folder, lock_timeout_seconds=0.2)
    yield made
    made.close()


def segments(folder: Path) -> list[Mapping[str, Any]]:
    kept: list[Mapping[str, Any]] = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["segments"]
    return kept


def deliver_elsewhere(folder: Path, source: str, batches: int, **environment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", DELIVERING, str(folder), source, str(batches)]
    return subprocess.Popen(command, env={**os.environ, **environment})


def test_receiver_when_asked_what_it_is_then_it_is_a_search_index(receiver: LocalReceiver) -> None:
    assert isinstance(receiver, SearchIndex)


def test_search_when_there_is_no_index_yet_then_there_are_no_hits_and_no_folder(
    receiver: LocalReceiver, folder: Path
) -> None:
    receiver.ping()
    answer = receiver.search(SearchQuery(words="oracle", facets=["host"], sort="-last_modified"))

    assert (answer.total, answer.hits, answer.facets) == (0, (), {"host": {}})
    assert list(receiver.scan("demo")) == []
    assert not folder.exists()


def test_purge_when_there_are_tombstones_then_nothing_deleted_is_left(receiver: LocalReceiver, folder: Path) -> None:
    receiver.deliver(batch(*(document(str(number), content="text") for number in range(20))))
    receiver.deliver(batch(document("1", content="changed"), version=2, removed=("2", "3")))
    before = {hit.id: hit.fields for hit in receiver.search(SearchQuery(words="*", rows=50)).hits}

    purged = receiver.purge()

    after = {hit.id: hit.fields for hit in receiver.search(SearchQuery(words="*", rows=50)).hits}
    assert (purged, len(after)) == (2, 18)
    assert after == before
    assert [(each["max_doc"], each["deletes"]) for each in segments(folder)] == [(18, None)]
    assert (listed(receiver, "changed"), receiver.purge()) == (["1"], 0)


def test_deliver_when_two_processes_deliver_at_once_then_all_documents_are_there(
    folder: Path, receiver: LocalReceiver
) -> None:
    processes = [deliver_elsewhere(folder, source, 15) for source in ("one", "two")]

    searches = 0
    while any(process.poll() is None for process in processes):
        assert receiver.search(SearchQuery(words="delivered")).total <= 30
        searches += 1

    assert [process.wait() for process in processes] == [0, 0]
    assert searches > 0
    assert [entry.id for entry in receiver.scan(None)] == [
        f"{source}:{number:03}" for source in ("one", "two") for number in range(1, 16)
    ]


def test_deliver_when_the_process_is_killed_right_after_then_what_has_a_receipt_is_found(
    folder: Path, receiver: LocalReceiver
) -> None:
    ending = "\nimport os, signal\nos.kill(os.getpid(), signal.SIGKILL)"

    killed = subprocess.run([sys.executable, "-c", DELIVERING + ending, str(folder), "demo", "3"], check=False)

    assert killed.returncode == -9
    assert found(receiver, "delivered") == {"demo:001", "demo:002", "demo:003"}


@pytest.mark.parametrize(("batches", "point", "kept"), [(3, ":3", {"demo:001", "demo:002"}), (1, "", set())])
def test_deliver_when_the_process_is_killed_before_the_commit_then_the_index_is_as_before_and_free(
    folder: Path, receiver: LocalReceiver, batches: int, point: str, kept: set[str]
) -> None:
    killed = deliver_elsewhere(folder, "demo", batches, SEARCHCRAWL_FAILPOINT=f"batch.post.mid{point}").wait()
    before = found(receiver, "*")

    receiver.deliver(batch(document("next", content="text"), version=9))

    assert killed == -9
    assert (before, found(receiver, "*")) == (kept, {*kept, "next"})


def test_deliver_when_a_process_was_killed_just_before_the_commit_took_effect_then_its_leavings_are_no_obstacle(
    folder: Path, receiver: LocalReceiver
) -> None:
    receiver.deliver(batch(document("1", content="old"), document("2", content="stays")))
    committed = (folder / "meta.json").read_bytes()
    receiver.deliver(batch(document("1", content="new"), version=2))
    # As if the process had died with all files written, but the list of those that count.
    (folder / "meta.json").write_bytes(committed)
    (folder / ".tmpXXXXXX").write_bytes(committed)

    again = LocalReceiver(folder)
    before = listed(again, "old")
    again.deliver(batch(document("1", content="new"), version=2))

    assert (before, listed(again, "new"), found(again, "*")) == (["1"], ["1"], {"1", "2"})
    assert not (folder / ".tmpXXXXXX").exists()


def test_deliver_when_another_process_holds_the_index_too_long_then_it_is_unavailable(
    folder: Path, receiver: LocalReceiver
) -> None:
    receiver.deliver(batch(document("1", content="text")))

    with (folder / "searchcrawl.lock").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(IndexUnavailable, match="another process"):
            receiver.deliver(batch(document("2", content="text"), version=2))
        searched = listed(receiver, "text")
    receiver.deliver(batch(document("2", content="text"), version=2))

    assert (searched, found(receiver, "text")) == (["1"], {"1", "2"})


def test_deliver_when_the_disk_is_full_then_the_batch_is_kept_and_goes_in_later(folder: Path) -> None:
    program = """
import pathlib, resource, sys
from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.local.receiver import LocalReceiver
from searchcrawl.index.receiver import Batch, SearchQuery
from searchcrawl.items import IndexedDocument

receiver = LocalReceiver(pathlib.Path(sys.argv[1]), lock_timeout_seconds=0)
many = [IndexedDocument(id=f"demo:{n}", fields={"content": f"w{n * 7919} " * 50}) for n in range(400)]
receiver.deliver(Batch(number=1, source="demo", crawl_version=1, documents=many[:1]))
full = Batch(number=2, source="demo", crawl_version=2, documents=many)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    receiver.deliver(full)
except IndexUnavailable as error:
    print("kept:", error)
print("still:", receiver.search(SearchQuery(words="*")).total)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
receiver.deliver(full)
print("then:", receiver.search(SearchQuery(words="*")).total)
"""

    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=False)

    kept, *rest = done.stdout.splitlines() or [done.stderr]
    assert kept.startswith(f"kept: {folder}: ")
    assert rest == ["still: 1", "then: 400"]


def test_deliver_when_the_folder_holds_something_else_then_it_is_refused_and_left_alone(
    folder: Path, receiver: LocalReceiver
) -> None:
    folder.mkdir(parents=True)
    (folder / "letter.txt").write_text("dear", encoding="utf-8")

    for act in (receiver.ping, receiver.purge, lambda: receiver.deliver(batch(document("1")))):
        with pytest.raises(IndexMisconfigured, match=r"not an index \(it holds letter\.txt\)"):
            act()

    assert [path.name for path in folder.iterdir()] == ["letter.txt"]


def test_ping_when_the_path_is_a_file_then_it_says_so(folder: Path, receiver: LocalReceiver) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("a file", encoding="utf-8")

    with pytest.raises(IndexMisconfigured, match="not a folder"):
        receiver.ping()


@pytest.mark.parametrize("damage", ["schema", "json"])
def test_index_when_it_is_of_another_release_or_damaged_then_it_says_what_to_do(
    folder: Path, receiver: LocalReceiver, damage: str
) -> None:
    receiver.deliver(batch(document("1", content="text")))
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    meta["schema"][0]["name"] = "identity"
    (folder / "meta.json").write_text(json.dumps(meta) if damage == "schema" else "{", encoding="utf-8")
    other = LocalReceiver(folder)

    for act in (other.ping, lambda: other.search(SearchQuery(words="*")), lambda: list(other.scan(None))):
        with pytest.raises(IndexMisconfigured, match="searchcrawl resend"):
            act()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can take other users' rights")
def test_index_when_its_files_belong_to_another_user_then_nobody_is_told_to_move_it_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    with closing(LocalReceiver(Path("index"))) as written:
        written.deliver(batch(document("1", content="text")))
    for file in Path("index").iterdir():
        file.chmod(0o600)
    Path("index").chmod(0o755)
    other = LocalReceiver(Path("index"))

    os.seteuid(65534)
    try:
        for act in (other.ping, lambda: other.search(SearchQuery(words="*")), lambda: list(other.scan(None))):
            with pytest.raises(IndexMisconfigured, match="Permission denied") as refused:
                act()
            assert "move the folder away" not in str(refused.value)
    finally:
        os.seteuid(0)


def test_receiver_when_the_folder_is_removed_while_it_is_open_then_it_begins_anew(
    folder: Path, receiver: LocalReceiver
) -> None:
    receiver.deliver(batch(document("1", content="text"), version=5))
    folder.rename(folder.with_name("old"))
    missing = listed(receiver, "*")

    receiver.deliver(batch(document("2", content="text")))

    assert (missing, listed(receiver, "*")) == ([], ["2"])


def test_close_when_called_twice_then_the_next_call_opens_again(receiver: LocalReceiver) -> None:
    receiver.deliver(batch(document("1", content="text")))

    receiver.close()
    receiver.close()

    assert listed(receiver, "text") == ["1"]


def test_search_when_the_page_is_far_beyond_the_hits_then_the_total_is_still_told_of_letters_of_half_width_too(
    receiver: LocalReceiver,
) -> None:
    receiver.deliver(batch(document("ja", content="これは日本語の検索エンジンです。")))

    answer = receiver.search(SearchQuery(words="ｴﾝｼﾞﾝ", start=10**12, rows=10**9))

    assert (answer.total, list(answer.hits)) == (1, [])
