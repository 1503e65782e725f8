"""What forbids an archive forbids its files, whatever they are called (C8, B4)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from searchcrawl.rules.archives import MAX_DEPTH, list_archives
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.decision import NO_INCLUDE, Decision
from searchcrawl.rules.forgotten import FILE, KEY, Forgotten
from searchcrawl.rules.rewriting import DisplayMap
from searchcrawl.rules.url_rules import HostScope

HOST: Final = "http://acme.test"
ARCHIVE: Final = f"{HOST}/docs/n.zip"
INNER: Final = f"{ARCHIVE}!/in.tar.gz"
IN_FILE: Final = f"{INNER}!/folder/a.txt"


def refused_by(url: str, *, in_archive: bool = False, **rules: Any) -> list[tuple[str, str]]:
    boundary = Boundary(**{"include_hosts": ["acme.test"], **rules})
    return [(found.key, found.rule) for found in boundary.list_refusals(url, 1, in_archive=in_archive)]


@pytest.mark.parametrize(
    ("url", "archives"),
    [
        (ARCHIVE, []),
        (f"{ARCHIVE}!/a.txt", ["/docs/n.zip"]),
        (IN_FILE, ["/docs/n.zip", "/docs/n.zip!/in.tar.gz"]),
        (f"{HOST}/folder!/page.html", []),
        (f"{HOST}/jar!/x/PACK.ZIP?v=1!/a.txt", ["/jar!/x/PACK.ZIP?v=1"]),
        (f"{HOST}/get?f=n.zip!/a.txt", []),
        (f"{HOST}/get?f=n.zip!/in.zip!/a.txt", ["/get?f=n.zip!/in.zip"]),
        (f"{HOST}!/a.txt", []),
    ],
)
def test_list_archives_when_a_url_has_marks_then_those_called_so_are_named(url: str, archives: list[str]) -> None:
    assert list_archives(url) == [f"{HOST}{archive}" for archive in archives]


def test_list_archives_when_a_file_was_read_from_one_then_the_outermost_is_called_anyhow() -> None:
    found = list_archives(f"{HOST}/download/5!/in.zip!/folder!/a.txt", in_archive=True)

    assert found == [f"{HOST}/download/5", f"{HOST}/download/5!/in.zip"]


def test_list_archives_when_a_url_has_very_many_then_no_more_are_named_than_can_be_unpacked() -> None:
    assert len(list_archives(HOST + "/a.zip!" * 1000 + "/x")) == MAX_DEPTH


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ({"exclude_urls": [ARCHIVE]}, ("scope.exclude_urls", ARCHIVE)),
        ({"exclude_urls": [INNER]}, ("scope.exclude_urls", INNER)),
        ({"exclude_urls": ["re:\\.tar\\.gz$"]}, ("scope.exclude_urls", "re:\\.tar\\.gz$")),
        ({"exclude_urls": ["*n.zip*"]}, ("scope.exclude_urls", "*n.zip*")),
        (
            {"hosts": [HostScope(host="acme.test", exclude_paths=("/docs/n.zip",))]},
            ("scope.host[0].exclude_paths", "/docs/n.zip"),
        ),
        ({"forgotten": Forgotten([ARCHIVE])}, (KEY, ARCHIVE)),
        ({"forgotten": Forgotten([INNER])}, (KEY, INNER)),
        ({"forgotten": Forgotten(["pattern: *.gz"])}, (KEY, "*.gz")),
    ],
)
def test_boundary_when_an_archive_is_excluded_then_each_file_in_it_is_once(
    rules: dict[str, Any], found: tuple[str, str]
) -> None:
    boundary = Boundary(include_hosts=["acme.test"], **rules)

    assert refused_by(IN_FILE, **rules) == [found]
    assert (boundary.decide(IN_FILE).key, boundary.decide_known(IN_FILE, 1).rule) == found
    assert boundary.list_exclusions(IN_FILE) == [boundary.decide(IN_FILE)]
    assert boundary.decide(f"{HOST}/docs/other.zip!/a.txt").allowed


def test_boundary_when_only_a_file_or_only_the_archive_is_included_then_includes_are_not_inherited() -> None:
    assert refused_by(IN_FILE, include_hosts=(), include_urls=["*.txt"]) == []
    assert refused_by(IN_FILE, include_hosts=(), include_urls=["*n.zip"]) == [("scope.include_urls", NO_INCLUDE)]
    both = {"include_hosts": (), "include_urls": ["*.zip"], "exclude_urls": [ARCHIVE, "*a.txt"]}
    assert refused_by(IN_FILE, **both) == [
        ("scope.exclude_urls", "*a.txt"),
        ("scope.exclude_urls", ARCHIVE),
        ("scope.include_urls", NO_INCLUDE),
    ]


def test_boundary_when_a_limit_refuses_the_archive_then_it_is_not_inherited() -> None:
    assert refused_by(f"{HOST}/n.zip?a=1!/in.zip!/a.txt", dynamic_pages=False) == [
        ("scope.dynamic_pages", "dynamic_pages = false")
    ]


def test_boundary_when_an_ordinary_url_is_excluded_then_one_below_is_not_unless_it_was_read_from_it() -> None:
    url, rules = f"{HOST}/folder!/page.html", {"exclude_urls": [f"{HOST}/folder"]}

    assert refused_by(url, **rules) == []
    assert refused_by(url, in_archive=True, **rules) == [("scope.exclude_urls", f"{HOST}/folder")]


def test_forgotten_when_an_archive_is_named_then_its_files_are_found_and_not_named_themselves() -> None:
    forgotten = Forgotten(
        [f"{HOST}/Docs/n%2Ezip", f"{HOST}/shown.zip"], display=DisplayMap([(HOST, "http://shop.test")])
    )
    shown = Forgotten(["http://shop.test/n.zip"], display=DisplayMap([(f"{HOST}/", "http://shop.test/")]))
    url = f"{HOST}/Docs/n.zip!/a.txt"

    assert forgotten.find(url) == Decision(False, f"{HOST}/Docs/n%2Ezip", FILE, KEY)
    assert forgotten.find_named(url) is None
    assert shown.find(f"{HOST}/n.zip!/a.txt") == Decision(False, "http://shop.test/n.zip", FILE, KEY)
    assert forgotten.find(f"{HOST}/Docs/n.zipper!/a.txt") is None
