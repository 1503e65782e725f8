"""Canonical URLs of Link headers (RFC 8288)."""

from __future__ import annotations

import time

import pytest

from searchcrawl.html.link_header import canonical_of

URL = "http://a.test/dir/page.pdf"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (['<http://a.test/x>; rel="canonical"'], "http://a.test/x"),
        (["<../x.html>;rel=canonical"], "http://a.test/x.html"),
        (['</style.css>; rel=preload; as=style, </x?a=1,2;b#part> ; title="a, b; c" ; REL="Alternate CANONICAL"'], "http://a.test/x?a=1,2;b"),
        (["</y>; rel=next", "</x>; rel=canonical"], "http://a.test/x"),
        (["</x>; rel=canonical; rel=next"], "http://a.test/x"),
        (["</x>; rel=next; rel=canonical"], None),
        (['</x>; rel=canonical; anchor="/other"'], None),
        (["</x>; rel=canonical, </y>; rel=canonical"], None),
        (["</x>; rel=canonical, <http://a.test/x#b>; rel=canonical"], "http://a.test/x"),
        (["<file:///x>; rel=canonical"], None),
        (["<http://[>; rel=canonical"], None),
        (["/x; rel=canonical"], None),
        (['</x>; rel="canonical'], None),
        ([""], None),
        ([], None),
    ],
)  # fmt: skip
def test_canonical_when_a_link_header_names_one_then_it_is_absolute(values: list[str], expected: str | None) -> None:
    assert canonical_of(values, base_url=URL) == expected


@pytest.mark.parametrize("part", ["<", "<x>;", '<x>;a="', "<x>;a=\\", "<x> ;  ", '<x>;a="\\"', "<x>,"])
def test_canonical_when_a_header_is_long_and_broken_then_reading_it_takes_no_time(part: str) -> None:
    began = time.process_time()

    canonical_of([part * 100_000], base_url=URL)

    assert time.process_time() - began < 5
