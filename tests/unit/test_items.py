"""Changed copies are those of ``dataclasses.replace``; pages on their way to another process come out as they went in."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import pytest

from searchcrawl.items import Claim, Link, Page, copy_with, pack_page, unpack_page

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


@dataclass(frozen=True, slots=True)
class _Checked:
    one: int
    other: int

    def __post_init__(self) -> None:
        """Would not run."""


@dataclass(frozen=True)
class _WithoutSlots:
    one: int = 1
    other: int = 2


def test_copy_when_changed_then_is_that_of_replace() -> None:
    page = Page(title="a", text="b", links=(Link("http://a.example/"),), noindex=True)

    changed = copy_with(page, text="c", links=())

    assert changed == replace(page, text="c", links=()) != page
    assert type(changed) is Page
    assert page.text == "b"


def test_copy_when_nothing_changes_then_is_equal() -> None:
    claim = Claim(url_id=1, url="http://a.example/", host_id=2, depth=3, rejected="404")

    changed = copy_with(claim)

    assert changed == claim
    assert changed is not claim


def test_copy_when_it_has_no_such_field_then_is_refused() -> None:
    with pytest.raises(AttributeError, match="colour"):
        copy_with(Page(), colour="red")


@pytest.mark.parametrize("value", [_Checked(1, 2), _WithoutSlots()])
def test_copy_when_class_checks_itself_or_has_no_slots_then_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        copy_with(value, one=3)


@pytest.mark.parametrize("links", _LINKS.values(), ids=_LINKS)
def test_page_when_it_goes_to_another_process_then_it_is_the_same_there(links: tuple[Link, ...]) -> None:
    page = Page(title="T", text="text", whole="all of the text", links=links, found=(("meta:a", ("1",)),))

    assert unpack_page(pickle.loads(pickle.dumps(pack_page(page)))) == page
