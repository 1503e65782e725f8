"""Buckets of S3 as a source: what is new, changed and gone, versions, hostile keys, and what is never taken for gone (A1)."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from searchcrawl import urls
from tests.acceptance.support_files import FileProject
from tests.acceptance.support_s3 import PASSWORD, S3Project
from tests.crawl_forks import COMMANDS
from tests.s3_server import SECRET, Answer, Asked, S3Server, build_error, turn_entries

FILES: dict[str, str | bytes] = {
    "a.txt": "apples are red and good to eat",
    "b.html": "<title>Pears</title><p>pears are green and sweet",
    "c/d.txt": "plums are blue, and grow on trees",
    "c/e/f.txt": "cherries are dark red, and small",
}
Make = Callable[..., S3Project]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    """A server of buckets."""
    with S3Server() as server:
        yield server


@pytest.fixture
def make(s3: S3Server, tmp_path: Path) -> Iterator[Make]:
    """Makes a project with a bucket of its own that has these objects below the prefix."""
    s3.restore()

    def make(objects: dict[str, str | bytes] = FILES, *, prefix: str = "", **tables: Any) -> S3Project:
        bucket = f"bucket-{tmp_path.name.replace('_', '-')[-50:].strip('-')}".lower()
        s3.owner.create_bucket(Bucket=bucket)
        project = S3Project(tmp_path, s3, bucket, prefix=prefix, **tables)
        project.put(objects)
        return project

    yield make
    s3.restore()


def count_reads(s3: S3Server) -> int:
    return len(s3.list_seen(lambda asked: asked.is_reading and not asked.path.endswith("/.searchignore")))


def test_bucket_when_crawled_then_is_found_as_a_local_tree_and_later_runs_read_what_differs(
    make: Make, s3: S3Server, tmp_path: Path
) -> None:
    objects: dict[str, str | bytes] = {
        **FILES,
        "~$lock.docx": "lock",
        ".hidden/x.txt": "hidden things",
        "x/.searchignore": "*.bak\n",
        "x/y.bak": "left out by a rule",
        "x/y.txt": "let in by none",
        "x/y.txt.~1~": "an older version of it",
        "ä ö+ü/%20&.txt": "names with letters",
        "empty.txt": "",
    }
    project = make({**objects, "folder/": "", "c/": ""}, prefix="docs/2026/")
    local = FileProject(tmp_path / "local")
    local.fill(objects)
    first, beside = project.crawl(), local.crawl()
    reads, s3.page = count_reads(s3), 2
    second = project.crawl()

    assert {project.identify(name) for name in local.indexed()} == {
        f"{project.url}/{name}" for name in project.indexed()
    }
    assert (first["indexed"], first["new"]) == (beside["indexed"], beside["new"])
    assert project.found("pears") == ["b.html"]
    assert (second["fetched"], second["indexed"], second["deleted"], count_reads(s3)) == (0, 0, 0, reads)

    project.put({"new.txt": "a new object about quinces", "a.txt": "apples are yellow now"})
    project.delete("c/d.txt")
    third = project.crawl()
    assert (third["new"], third["changed"], third["deleted"], count_reads(s3)) == (1, 1, 1, reads + 2)
    assert project.found("quinces OR yellow") == ["a.txt", "new.txt"]
    assert project.rows()["c/d.txt"][0] == 967


def test_bucket_with_versions_when_they_are_written_deleted_and_put_back_then_the_current_one_counts(
    make: Make, s3: S3Server
) -> None:
    project = make({"other.txt": "medlars are brown"})
    s3.owner.put_bucket_versioning(Bucket=project.bucket, VersioningConfiguration={"Status": "Enabled"})
    project.put({"a.txt": "the first version is about quinces"})
    project.put({"a.txt": "the second version is about pears"})
    project.crawl()
    assert project.found("quinces OR pears") == project.found("pears") == ["a.txt"]

    project.delete("a.txt")
    assert project.crawl()["deleted"] == 1
    versions = s3.owner.list_object_versions(Bucket=project.bucket, Prefix="a.txt")
    marks = [(each["Key"], each["VersionId"]) for each in versions["DeleteMarkers"]]
    latest = versions["Versions"][0]["VersionId"]
    for version in [marks[0][1], latest]:
        s3.owner.delete_object(Bucket=project.bucket, Key="a.txt", VersionId=version)
    project.crawl()
    assert project.found("quinces OR pears") == project.found("quinces") == ["a.txt"]


def test_keys_when_they_are_no_paths_then_each_is_a_document_with_an_identity_of_its_own(make: Make) -> None:
    keys = [
        "a//b", "/x", "//y", "../x", "e/..", "e/../f", "./g", "h/./i", "e//../z", "folder/", "%2e", "%2F", "back\\slash",
        "plus+ and space", "q?x#y", "tab\tand\x01\x1f\x7f", "cr\r", "caf\u00e9", "cafe\u0301", "Case", "case", "..", "//", "<&>'\"!/x",
        "n" * 1024, "\U0001f600/\ufffe", "a", "a/b",
    ]  # fmt: skip
    project = make({}, file={"hidden": True})
    project.put({key: f"what is in number {number}" for number, key in enumerate(keys)}, ContentType="text/plain")
    project.crawl()
    rows, indexed = project.rows(), project.indexed()
    project.delete("../x", "folder/", "a//b")
    counts = project.crawl()

    identities = {project.identify(key) for key in keys}
    assert {f"{project.url}/{name}" for name in rows} == {f"{project.url}/{name}" for name in indexed} == identities
    assert len(identities) == len(keys)
    assert {code for code, _ in rows.values()} == {200}
    assert all(urls.resolve(identity, listed=True) == identity for identity in identities)
    assert (counts["deleted"], counts["fetched"]) == (3, 3)
    assert "in the index" in project.command("explain", project.identify("e/../f"))


def test_key_when_it_is_no_text_then_is_left_out_with_the_reason(make: Make, s3: S3Server) -> None:
    project = make({**FILES, "bad.txt": "cannot be asked for", "worse/x.txt": "nor can this"})
    s3.after = lambda asked, answer: replace(
        answer,
        body=answer.body.replace(b"<Key>bad.txt", b"<Key>b%FFd.txt").replace(b"<Prefix>worse/", b"<Prefix>w%FF/"),
    )
    project.crawl()

    assert project.indexed() == sorted(FILES)
    assert project.rows()["b%FFd.txt"] == (955, "file.roots: its name is not UTF-8")
    assert "its name is not UTF-8" in project.command("explain", f"{project.url}/b%FFd.txt")
    assert "its name is not UTF-8" in project.command("explain", f"{project.url}/w%FF/x.txt")


def test_objects_when_they_say_what_they_are_then_their_types_and_codings_count(make: Make) -> None:
    project = make({})
    project.put({"page": "<title>Quinces</title><p>they ripen"}, ContentType="text/html; charset=utf-8")
    project.put({"packed.txt": gzip.compress(b"medlars are packed")}, ContentType="text/plain", ContentEncoding="gzip")
    project.put({"large.txt": b"x" * 2_000_000, "bomb.txt": gzip.compress(bytes(9_000_000))}, ContentEncoding="gzip")
    project.edit(fetch={"max_bytes": 1_000_000})
    project.crawl()

    assert project.found("title:quinces") == ["page"]
    assert project.found("medlars") == ["packed.txt"]
    assert [project.rows()[name][0] for name in ("large.txt", "bomb.txt")] == [960, 960]


@pytest.mark.parametrize(
    ("is_met", "is_cut"),
    [
        pytest.param(lambda asked: asked.query.get("prefix") == "g/", False, id="listing"),
        pytest.param(
            lambda asked: "continuation-token" in asked.query, False, id="second page", marks=pytest.mark.extended
        ),
        pytest.param(lambda asked: asked.is_reading, False, id="reading", marks=pytest.mark.extended),
        pytest.param(lambda asked: asked.is_reading, True, id="body"),
    ],
)
def test_server_when_it_stops_then_nothing_leaves_and_the_next_run_is_whole(
    make: Make, s3: S3Server, is_met: Callable[[Asked], bool], is_cut: bool
) -> None:
    project = make({**FILES, **{f"g/{number}.txt": f"this is number {number} of many" for number in range(5)}})
    project.edit(fetch={"retries": 0})
    project.crawl()
    project.put({f"g/{number}.txt": f"this is number {number} of others" for number in range(3)})
    project.delete("c/d.txt")
    known, stopped = project.indexed(), threading.Event()

    def stop(asked: Asked) -> Answer | None:
        is_now = is_met(asked) and not stopped.is_set()
        if stopped.is_set() or (is_now and not is_cut):
            stopped.set()
            raise ConnectionAbortedError
        return None

    def cut(asked: Asked, answer: Answer) -> Answer:
        if is_met(asked) and is_cut:
            stopped.set()
            return replace(answer, missing=1)
        return answer

    s3.page, s3.before, s3.after = 4, stop, cut
    project.crawl(code=3)
    after = project.indexed()
    s3.restore()
    project.crawl()

    assert stopped.is_set()
    there = {*known} - {"c/d.txt"}
    assert there <= {*after}
    assert {*project.indexed()} == there
    assert set(project.found("others")) == {f"g/{number}.txt" for number in range(3)}


def test_bucket_when_it_is_empty_or_gone_then_nothing_leaves(make: Make, s3: S3Server) -> None:
    project = make()
    project.crawl()
    project.delete(*FILES)
    empty = project.crawl(code=3)
    s3.owner.delete_bucket(Bucket=project.bucket)
    gone = project.crawl(code=3)

    assert (empty["deleted"], gone["deleted"]) == (0, 0)
    assert project.indexed() == sorted(FILES)
    assert f"{project.url}/ could not be listed" in project.command("status", "files")


def test_objects_when_most_are_gone_then_the_limits_hold_them(make: Make) -> None:
    names = [f"g/{number}.txt" for number in range(20)]
    project = make({**FILES, **{name: f"this is {name} of many" for name in names}})
    project.crawl()
    project.delete(*names[:14])
    counts = project.crawl(code=9)
    held = len(project.indexed())
    project.command("quarantine", "approve", "files")

    assert (counts["deleted"], held) == (0, 24)
    assert project.indexed() == sorted([*FILES, *names[14:]])


def test_credentials_when_they_are_wrong_or_old_then_nothing_leaves_and_no_secret_is_shown(make: Make) -> None:
    project = make()
    project.crawl()
    wrong = project.crawl(code=3, **{PASSWORD: "not-the-secret-of-it"})
    checked = COMMANDS.run(project.folder, "sources", "check", **{PASSWORD: "not-the-secret-of-it"}).stderr
    status = project.command("status", "files")
    project.edit(file={"username": None, "password": None})
    keys = {"AWS_ACCESS_KEY_ID": "AKIAQUINCES", "AWS_SECRET_ACCESS_KEY": SECRET}
    old = project.crawl(code=3, AWS_SESSION_TOKEN="expired", **keys)

    assert (wrong["deleted"], old["deleted"]) == (0, 0)
    assert project.indexed() == sorted(FILES)
    for text in (checked, status):
        assert "SignatureDoesNotMatch" in text
    kept = b"".join(path.read_bytes() for path in project.folder.rglob("*") if path.is_file())
    for secret in (SECRET, "not-the-secret-of-it", "Signature="):
        assert secret.encode() not in kept
        assert secret not in checked + status


def test_pages_when_they_fail_once_come_again_or_are_out_of_order_then_nothing_is_lost(
    make: Make, s3: S3Server
) -> None:
    names = [f"g/{number}.txt" for number in range(8)]
    project = make({**FILES, **{name: f"this is {name} of many" for name in names}})
    s3.page = 3
    seen: list[str] = []

    def fail_once(asked: Asked) -> Answer | None:
        page = asked.query.get("continuation-token", "")
        seen.append(page)
        return build_error(503, "SlowDown") if page and seen.count(page) == 1 else None

    s3.before = fail_once
    first = project.crawl()
    s3.restore()
    s3.page = 3
    s3.after = lambda asked, answer: replace(answer, body=turn_entries(answer.body))
    turned = project.crawl()
    s3.page, answers = 3, list[Answer]()

    def repeat(asked: Asked, answer: Answer) -> Answer:
        if asked.query.get("prefix") == "g/":
            answers.append(answer)
            return answers[0]
        return answer

    s3.after = repeat
    again = project.crawl(code=3)

    assert (first["indexed"], turned["fetched"], turned["deleted"], again["deleted"]) == (12, 0, 0, 0)
    assert project.indexed() == sorted([*FILES, *names])
    assert "says a page of its listing again" in project.command("status", "files")


def test_folders_when_a_server_tells_objects_in_order_then_one_request_brings_those_of_many(
    make: Make, s3: S3Server
) -> None:
    names = [f"{number}/in/{file}.txt" for number in range(12) for file in "ab"]
    odd = [
        "a-1/x.txt",
        "a/x.txt",
        "a.txt",
        "a//x.txt",
        "a/b/c/d.txt",
        "a0.txt",
        "\U0001f600/x.txt",
        "/x.txt",
        "../x.txt",
    ]
    files = {name: f"this is {name} of many" for name in [*names, *odd, *(f"big/{number}.txt" for number in range(9))]}
    project = make(files, prefix="docs/", file={"hidden": True})
    project.put({"../beside.txt": "not in the root"})
    s3.software, s3.page = "AmazonS3", 8
    first = project.crawl()
    requests = len(s3.list_seen(lambda asked: asked.is_listing))
    found = {f"{project.url}/{name}" for name in project.indexed()}
    project.delete("a/b/c/d.txt", "7/in/a.txt", "7/in/b.txt")
    project.put({"7/new.txt": "a new object about quinces"})
    second = project.crawl()

    assert found == {project.identify(name) for name in files} | {project.identify("../beside.txt")}
    assert first["indexed"] == len(files) + 1
    # There are 36 folders.
    assert requests < 30
    assert (second["deleted"], second["new"]) == (3, 1)
    assert project.found("quinces") == ["7/new.txt"]
