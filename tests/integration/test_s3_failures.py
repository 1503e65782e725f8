"""What a server of S3 may answer, and what becomes of it: no answer but that of a missing object says that something is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from searchcrawl.codes import Code
from searchcrawl.kinds.file.config import FileTable
from searchcrawl.kinds.file.remote.connecting import connect
from searchcrawl.kinds.file.remote.model import Connection, RemoteFailure
from searchcrawl.kinds.file.roots import list_roots
from searchcrawl.sources.fetch_tables import Fetch
from tests.certificates import write_certificate
from tests.s3_server import KEY_ID, REGION, SECRET, Answer, Asked, S3Server, build_error
from tests.tls_relay import TlsRelay

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_REGION")


@pytest.fixture(scope="module")
def running() -> Iterator[S3Server]:
    """A server with a bucket."""
    with S3Server() as server:
        server.fill("reports", {"a.txt": b"apples", "b/c.txt": b"pears"})
        yield server


@pytest.fixture
def s3(running: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[S3Server]:
    """The same, and nothing in the environment that lets in."""
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    running.restore()
    yield running
    running.restore()


def open_bucket(s3: S3Server, root: str = "s3://reports/", **own: Any) -> Connection:
    values = {"endpoint": s3.url, "username": KEY_ID, "password": SECRET, **own}
    fetch = Fetch.model_validate({"timeout_seconds": 10.0, **values.pop("fetch", {})})
    table = FileTable.model_validate({"roots": [root], **{name: value for name, value in values.items() if value}})
    source: Any = SimpleNamespace(own=table, folder=Path("/"), fetch=fetch)
    return connect(source, list_roots(source)[0], "tests")


def fail(work: Callable[[], Any]) -> RemoteFailure:
    with pytest.raises(RemoteFailure) as caught:
        work()
    return caught.value


@pytest.mark.parametrize(
    ("answer", "code", "transient"),
    [
        (build_error(403, "AccessDenied"), 403, False),
        (build_error(403, "InvalidObjectState"), 403, False),
        (build_error(400, "ExpiredToken"), 401, False),
        (build_error(403, "RequestTimeTooSkewed"), 401, False),
        (build_error(404, "NoSuchBucket"), Code.IO_ERROR, False),
        (build_error(410, "Gone"), Code.IO_ERROR, False),
        (build_error(301, "PermanentRedirect"), Code.IO_ERROR, False),
        (build_error(503, "SlowDown"), 503, True),
        (build_error(200, "InternalError"), 500, True),
        (Answer(500, b"<html>"), 500, True),
    ],
    ids=lambda each: each.body.decode()[:60] if isinstance(each, Answer) else None,
)
def test_answer_when_it_is_an_error_then_says_nothing_of_what_is_there(
    s3: S3Server, answer: Answer, code: int, transient: bool
) -> None:
    with closing(open_bucket(s3)) as bucket:
        s3.before = lambda asked: answer
        failures = [fail(lambda: list(bucket.list_folder((b"b",))))]
        # Otherwise it is an object.
        if answer.status >= 300:
            failures.append(fail(lambda: bucket.read((b"a.txt",), 100)))
            assert not fail(lambda: bucket.look((b"a.txt",))).is_absent

    assert {(int(each.code), each.transient, each.is_absent) for each in failures} == {(code, transient, False)}


def test_key_when_it_is_wrong_or_missing_then_the_failure_says_so(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = fail(lambda: open_bucket(s3, password="another secret"))
    half = fail(lambda: open_bucket(s3, password=None))
    none = fail(lambda: open_bucket(s3, username=None, password=None))
    monkeypatch.setenv("AWS_PROFILE", "missing")
    profile = fail(lambda: open_bucket(s3, username=None, password=None))

    assert [int(each.code) for each in (wrong, half, none, profile)] == [401, 401, 403, 401]
    assert "SignatureDoesNotMatch" in str(wrong)
    assert "file.username and file.password" in str(half)
    assert "asked without a key" in str(none)
    assert "missing" in str(profile)
    assert not any(each.is_absent or each.transient for each in (wrong, half, none, profile))


def test_bucket_when_it_is_open_to_all_then_no_key_is_needed(s3: S3Server) -> None:
    s3.fill("reports", {"b/c.txt": b"pears"}, ACL="public-read")
    s3.is_open = True
    with closing(open_bucket(s3, username=None, password=None)) as bucket:
        assert bucket.read((b"b", b"c.txt"), 100).body == b"pears"


def test_bucket_when_it_is_in_another_region_then_is_asked_there(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")

    def redirect(asked: Asked) -> Answer | None:
        elsewhere = build_error(301, "PermanentRedirect", **{"x-amz-bucket-region": REGION})
        return elsewhere if asked.region != REGION else None

    s3.before = redirect
    with closing(open_bucket(s3)) as bucket:
        assert [[thing.name for thing in page] for page in bucket.list_folder(())] == [[b"a.txt", b"b"]]
        assert bucket.look((b"a.txt",)).size == 6
        assert bucket.read((b"b", b"c.txt"), 100).body == b"pears"


def test_endpoint_when_it_has_tls_then_its_certificate_is_asked(s3: S3Server, tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path, host="localhost")
    with TlsRelay(int(s3.url.rpartition(":")[2]), certificate) as relay:
        url = f"https://localhost:{relay.port}"
        unknown = fail(lambda: open_bucket(s3, endpoint=url))
        for fetch in ({"ca_file": str(certificate)}, {"verify_certificates": False}):
            with closing(open_bucket(s3, endpoint=url, fetch=fetch)) as bucket:
                assert bucket.read((b"a.txt",), 100).body == b"apples"

    assert unknown.code == Code.CERTIFICATE


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        (b"<IsTruncated>false</IsTruncated>", b""),
        (b"<IsTruncated>false</IsTruncated>", b"<IsTruncated>true</IsTruncated>"),
        (b"<Size>5</Size>", b"<Size>many</Size>"),
        (b"<Key>b/", b"<Key>elsewhere/"),
        (b"ListBucketResult", b"ListAllMyBucketsResult"),
        (b"</ListBucketResult>", b""),
        (b"</ListBucketResult>", b" " * 34_000_000 + b"</ListBucketResult>"),
    ],
    ids=lambda each: each.decode()[:40].strip(),
)
def test_page_when_it_is_none_then_the_folder_is_not_known(s3: S3Server, written: bytes, instead: bytes) -> None:
    with closing(open_bucket(s3)) as bucket:
        s3.after = lambda asked, answer: replace(answer, body=answer.body.replace(written, instead))
        failure = fail(lambda: list(bucket.list_folder((b"b",))))

    assert failure.code in {Code.READ_ERROR, Code.IO_ERROR, 500}
    assert failure.transient
    assert not failure.is_absent


def test_server_when_it_does_not_sum_up_folders_or_escape_keys_then_is_read_all_the_same(s3: S3Server) -> None:
    def drop(asked: Asked) -> Answer | None:
        for name in ("delimiter", "encoding-type"):
            asked.query.pop(name, None)
        return None

    with closing(open_bucket(s3)) as bucket:
        s3.before = drop
        things = [thing for page in bucket.list_folder(()) for thing in page]

    assert [(thing.name, thing.is_folder) for thing in things] == [(b"a.txt", False), (b"b", True)]


def test_things_when_they_are_looked_at_then_are_what_a_listing_says_of_them(s3: S3Server) -> None:
    with closing(open_bucket(s3)) as bucket:
        listed = {thing.name: thing for page in bucket.list_folder(()) for thing in page}
        assert bucket.look((b"a.txt",)) == listed[b"a.txt"]
        assert bucket.look((b"b",)) == listed[b"b"]
        assert bucket.look(()).is_folder
        gone = [
            fail(lambda way=way: bucket.look(way)) for way in [(b"x",), (b"b", b"x"), (b"a",), (b"\xff",), (b"nul\0x",)]
        ]
        gone += [fail(lambda: bucket.read((b"x",), 100)), fail(lambda: bucket.read((b"\xff",), 100))]
        assert all(each.is_absent for each in gone)
    assert fail(lambda: open_bucket(s3, "s3://reports/none")).is_absent
    with closing(open_bucket(s3, "s3://reports/b")) as bucket:
        assert [thing.name for page in bucket.list_folder(()) for thing in page] == [b"c.txt"]
