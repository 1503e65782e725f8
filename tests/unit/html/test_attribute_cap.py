"""No tag has too many attributes, wherever it seems to begin or end; all other pages stay as they are (X-R13)."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import pytest
from selectolax.lexbor import LexborHTMLParser

from searchcrawl.html.tree import MAX_ATTRIBUTES, MAX_NAMES, end_long_tags

PIECES: Final = (
    *("<a ", "<b", "</p ", "<!--", "-->", "<script>", "</script>", "<textarea>", "</textarea>", "<title>", "</title>"),
    *("<svg>", "<![CDATA[", "]]>", "<select>", "<style>", "<", ">", "/", "=", '"', "'", " ", "\n", "x", "a1 b2 c3"),
    *('z="', "q='", '=""', "k=v", "\0", "m=>", "n= \n>"),
)


def attributes_of(text: str) -> list[int]:
    """How many attributes each element has; html and body get those of all their tags."""
    tree = LexborHTMLParser(text, scripting=True)
    return [len(node.attributes) for node in tree.css("*") if node.tag not in {"html", "body"}]


def write_soup(chance: random.Random) -> str:
    """Markup that is broken in any way."""
    return "".join(chance.choices(PIECES, k=chance.randint(1, 60)))


@pytest.mark.parametrize("seed", range(20))
def test_soup_when_long_tags_are_ended_then_none_has_more_attributes(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(300):
        soup, most = write_soup(chance), chance.randint(1, 4)
        ended = end_long_tags(soup, most=most, names=chance.choice([None, 10_000]))

        assert max(attributes_of(ended), default=0) <= most, soup
        assert end_long_tags(ended, most=most) == ended


def test_soup_when_its_tags_are_short_then_stays_as_it_is() -> None:
    chance = random.Random(1)
    for _ in range(1_000):
        soup = write_soup(chance)

        assert end_long_tags(soup, most=200) == soup


MANY: Final[dict[str, Callable[[int], str]]] = {
    "plain": lambda n: "<div " + " ".join(f"a{k}=1" for k in range(n)) + ">",
    "behind a comment": lambda n: '<!--<b x="--><div ' + " ".join(f"a{k}" for k in range(n)) + ">",
    "behind a script": lambda n: "<script>'<b x='</script><div " + "/".join(f"a{k}" for k in range(n)) + ">",
    "with brackets": lambda n: "<div " + " ".join(f"a{k}='<b>'" for k in range(n)) + ">",
    "without blanks": lambda n: "<div" + "".join(f" a{k}=\">\"b{k}='>'" for k in range(n // 2)) + ">",
}


@pytest.mark.parametrize("build", MANY.values(), ids=MANY)
def test_tag_when_it_has_too_many_attributes_then_it_is_ended_and_links_stay(build: Callable[[int], str]) -> None:
    ended = end_long_tags(f"<p>a</p>{build(20_000)}<a href=x>x</a>")

    assert max(attributes_of(ended)) == MAX_ATTRIBUTES
    assert [node.attributes for node in LexborHTMLParser(ended).css("a[href]")] == [{"href": "x"}]


def test_page_when_it_has_too_many_names_then_further_tags_have_no_new_ones() -> None:
    text = "".join(f"<p a{number}>" for number in range(2 * MAX_NAMES)) + "<a a5 href=x>x</a>"

    tree = LexborHTMLParser(end_long_tags(text, names=MAX_NAMES))

    assert len({name for node in tree.css("*") for name in node.attributes}) == MAX_NAMES
