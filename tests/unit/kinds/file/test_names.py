"""Identities of files: each path has one, and leads back to its bytes."""

from __future__ import annotations

import os
import random

import pytest

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.kinds.file import names
from searchcrawl.rules.archives import MARK
from searchcrawl.rules.rewriting import DisplayMap

PATHS = [
    b"/",
    b"/C|/x",
    b"/C:/x",
    b"/c%7C/..x",
    b"/a/%2e/b",
    b"/a/%2e%2e",
    b"/a/...",
    b"/a\\..\\b",
    b"/a\nb\tc\r",
    b"/ a /b ",
    b"/a?b#c;d",
    b"/a.zip!/x",
    b"/localhost/x",
    b"/\xff\xfe\x80",
    "/Österreich".encode(),
    "/O\u0308sterreich".encode(),
    b"/" + b"n" * 255,
    b"/" + b"/".join([b"deep"] * 2000),
]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: repr(path[:20]))
def test_identity_when_made_of_a_path_then_leads_back_and_stays_as_it_is(path: bytes) -> None:
    identity = names.to_identity(path)

    assert names.to_path(identity) == path
    assert urls.resolve(identity, listed=True) == identity
    assert urls.host(identity) == "localhost"


def test_identities_when_paths_are_random_bytes_then_differ_and_lead_back() -> None:
    seed = random.Random(5)
    paths = {b"/" + bytes(seed.choice(range(1, 256)) for _ in range(seed.randint(1, 40))) for _ in range(2000)}
    paths = {path.rstrip(b"/") or b"/" for path in paths if not path.startswith(b"//")}

    identities = {names.to_identity(path) for path in paths}

    assert len(identities) == len(paths)
    assert {names.to_path(identity) for identity in identities} == paths
    assert all(urls.resolve(identity, listed=True) == identity for identity in identities)
    assert not any(MARK in identity for identity in identities)


def test_identity_when_it_is_a_folder_then_ends_in_one_slash() -> None:
    assert names.to_identity(b"/srv/a b", is_folder=True) == "file:///srv/a%20b/"
    assert names.to_identity(b"/", is_folder=True) == "file:///"
    assert names.to_path("file:///srv/a%20b/") == b"/srv/a b"


@pytest.mark.parametrize("url", ["http://a.test/x", "file://nas/x", "file:x", "file:///a%00b", "row://x/y"])
def test_path_when_the_url_names_no_file_here_then_refused(url: str) -> None:
    with pytest.raises(InvalidUrl):
        names.to_path(url)


def test_path_when_a_name_is_written_in_another_way_then_is_the_same() -> None:
    assert names.to_path("file://localhost/a'b%7e(1)!.txt") == b"/a'b~(1)!.txt"


@pytest.mark.parametrize(
    ("path", "root", "way"),
    [
        (b"/srv/a/b", b"/srv", [b"a", b"b"]),
        (b"/srv", b"/srv", []),
        (b"/a", b"/", [b"a"]),
        (b"/srvx/a", b"/srv", None),
        (b"/srv/../etc", b"/srv", None),
        (b"/srv//a", b"/srv", None),
        (b"/srv/./a", b"/srv", None),
    ],
)
def test_split_when_a_path_is_below_a_root_then_has_the_names(
    path: bytes, root: bytes, way: list[bytes] | None
) -> None:
    assert names.split(path, root) == way


def test_show_when_a_name_is_no_text_then_is_text() -> None:
    assert names.show(b"a\xff") == "a\ufffd"
    assert names.join(b"/srv", "docs//x/") == b"/srv/docs/x"
    assert names.join(b"/srv", "//etc") == b"/etc"
    assert os.fsdecode(names.join(b"/srv", ".")) == "/srv"


NAMES = [
    (b"",),
    (b".", b"..", b"x"),
    (b"a", b"", b"", b"b"),
    (b"..",),
    (b"...", b"..a", b"%2e%2e", b"%00"),
    (b"a/b", b"\\x", b"C:", b"x.zip!", b"y"),
    (b"\xff\x80", "ü".encode(), b"\n\t ", b"?#;&=+"),
]


@pytest.mark.parametrize("scheme", ["sftp", "smb", "dav", "davs", "s3"])
@pytest.mark.parametrize("way", NAMES, ids=repr)
def test_identity_when_on_a_server_then_leads_back_to_its_names_and_stays_as_it_is(
    scheme: str, way: tuple[bytes, ...]
) -> None:
    identity = f"{scheme}://nas.example/{'/'.join(map(urls.escape_name, way))}"

    assert names.split_remote(identity) == (scheme, "nas.example", way)
    assert names.split_remote(f"{identity}/")[2] == way
    assert urls.resolve(identity, listed=True) == urls.resolve_typed(identity) == identity
    assert MARK not in identity
    assert names.is_remote(identity)


def test_identity_when_somebody_types_it_in_another_way_then_is_the_same() -> None:
    assert urls.resolve_typed("SFTP://Nas:22/a b//ü!.txt") == "sftp://nas/a%20b/%C3%BC%21.txt"
    assert urls.resolve_typed("s3://bucket/a//b.txt") == "s3://bucket/a/%00/b.txt"
    assert urls.resolve_typed("smb://nas/s/box.zip!/in/x y") == "smb://nas/s/box.zip!/in/x%20y"
    assert urls.host_and_port("sftp://nas/x") == "nas:22"
    assert urls.host_and_port("dav://nas:8080/x") == "nas:8080"


def test_display_when_its_prefix_is_written_in_another_way_then_is_shown() -> None:
    pairs = ("file:///srv/My (Docs)/", "https://files.example/"), ("SFTP://Nas:22/ü(!)/", "https://nas.example/")
    display = DisplayMap(pairs)

    assert display.show(names.to_identity(b"/srv/My (Docs)/a b")) == "https://files.example/a%20b"
    assert display.show("sftp://nas/%C3%BC%28%21%29/x") == "https://nas.example/x"
