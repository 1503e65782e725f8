"""Pages on their way to another process come out as they went in."""

from __future__ import annotations

import pickle

import pytest

from searchcrawl.items import Link, Page
from searchcrawl.packed_page import pack_page, unpack_page

_PLAIN = Link("http://a.example/")
_LINKS = {
    "none": (),
    "one": (_PLAIN,),
    "with all that a link may say": (
        _PLAIN,
        Link("http://a.example/b", nofollow=True, texts=("B", "also B")),
        Link("http://a.example/c", display="http://a.example/shown", found_as="http://a.example/c?s=1", texts=("C",)),
        Link("http://a.example/d\nx", nofollow=True),
        Link("http://a.example/e"),
    ),
    "many": tuple(Link(f"http://a.example/{number}", nofollow=number % 3 == 0) for number in range(5000)),
}


@pytest.mark.parametrize("links", _LINKS.values(), ids=_LINKS)
def test_page_when_it_goes_to_another_process_then_it_is_the_same_there(links: tuple[Link, ...]) -> None:
    page = Page(title="T", text="text", whole="all of the text", links=links, found=(("meta:a", ("1",)),))

    assert unpack_page(pickle.loads(pickle.dumps(pack_page(page)))) == page
