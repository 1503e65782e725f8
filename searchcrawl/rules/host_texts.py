"""What the pages of a host have in common, which says nothing of any of them: blocks, titles, and texts of links (C8, G2). Pure.

A block is a line of a text. A text loses those at its beginning and at its end; between other lines it loses long ones
alone, because a short line (a heading, a bracket) may stand on most pages and be content.

A page whose title others share gets a name: TITLE · NAME, a heading or another thing that tells it from them. A name that
as many of them could have tells nothing either: then the next one is taken.

Texts of links with the same letters are one, whatever their case. No list of words is needed: a word that leads to many
documents (next, section) says nothing of any, and what its title says of one need not be said again; a text has a word
that is neither. What stands on most pages of a host is a menu.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

import xxhash

#: Of fewer pages nothing can be said.
FEWEST_PAGES: Final = 10
#: The share of the pages, in percent, from which on a block is no content; one that was none stays so down to the other.
_ENTERS_AT: Final = 60
_STAYS_DOWN_TO: Final = 40
#: So many blocks of a host are kept: those on the most pages.
_MOST_BLOCKS: Final = 512
#: So many lines at the beginning and at the end of a page are counted, of lines with at most so many characters.
_COUNTED_LINES: Final = 200
_COUNTED_CHARACTERS: Final = 1_000
#: A line with so many characters is no content also between others.
_LONG_LINE: Final = 25


def list_blocks(text: str) -> set[int]:
    """The blocks of a text that are counted, by their keys."""
    lines = text.split("\n")
    counted = {*lines[:_COUNTED_LINES], *lines[-_COUNTED_LINES:]}
    return {key_of(line) for line in counted if len(line) <= _COUNTED_CHARACTERS}


def select_blocks(counts: Counter[int], pages: int, *, before: Collection[int]) -> frozenset[int]:
    """The blocks that are no content, of how many pages each stands on; ``before`` are those of the last time."""
    if pages < FEWEST_PAGES:
        return frozenset()
    found = [
        (-count, block)
        for block, count in counts.items()
        if count * 100 >= pages * _ENTERS_AT or (count * 100 >= pages * _STAYS_DOWN_TO and block in before)
    ]
    return frozenset(block for _, block in sorted(found)[:_MOST_BLOCKS])


def cut_blocks(text: str, blocks: Collection[int]) -> str:
    """``text`` without blocks that are no content; all of it where nothing else would be left."""
    if not blocks or not text:
        return text
    lines = text.split("\n")
    known = [len(line) <= _COUNTED_CHARACTERS and key_of(line) in blocks for line in lines]
    if all(known):
        return text
    first, last = known.index(False), len(known) - known[::-1].index(False)
    kept = (
        line
        for line, is_known in zip(lines[first:last], known[first:last], strict=True)
        if not is_known or len(line) < _LONG_LINE
    )
    return "\n".join(kept)


#: So many pages share a title; one that they shared stays shared down to the other number.
FEWEST_SHARING: Final = 5
FEWEST_STILL_SHARING: Final = 3
SEPARATOR: Final = " · "
#: So many headings of each sort are looked at, and so many characters of a name.
_MOST_HEADINGS: Final = 8
_MOST_OF_NAME: Final = 120
#: So much of a title is kept with the links of its page (``store.urls.link_table``).
_MOST_OF_TITLE: Final = 500
_LETTER: Final = re.compile(r"[^\W\d_]")
#: Names of files that say nothing, as those of all that have more digits than letters.
_NO_NAMES: Final = frozenset(("", "default", "home", "index", "main", "page", "welcome"))
#: What stands around a name and is none of it.
_AROUND: Final = " -–—·|:*#"
#: So many folders of a URL may tell a file from others.
_MOST_FOLDERS: Final = 3
_EXTENSION: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,5}$", re.ASCII)


class NamedPage(NamedTuple):
    """What may name a page: the first ``naming`` of its headings are such as name it; ``line`` is the first of its text."""

    url: str
    title: str
    headings: Sequence[str]
    naming: int
    line: str


def choose_title(page: NamedPage, shared: Collection[int]) -> str:
    """The title of a page, with a name where others share it; ``shared`` are the keys of what pages share.

    A page without a title has its name. One that has no name of its own has the title that it says.
    """
    if page.title and key_of_own(page.title) not in shared:
        return page.title
    first = ""
    for title in _list_titles(page):
        if key_of(title) not in shared:
            return title
        first = first or title
    return page.title or first


def list_title_keys(page: NamedPage) -> set[int]:
    """The keys of the titles that a page has, or could have."""
    own = {key_of_own(page.title)} if page.title else set[int]()
    return {*own, *map(key_of, _list_titles(page))}


def select_shared(counts: Counter[int], *, before: Collection[int]) -> frozenset[int]:
    """The keys of the titles that pages share, of how many have each; ``before`` are those of the last time."""
    return frozenset(
        key
        for key, count in counts.items()
        if count >= FEWEST_SHARING or (count >= FEWEST_STILL_SHARING and key in before)
    )


def key_of_own(title: str) -> int:
    """The key of the title that a page says; of a long one its beginning counts, as it is kept."""
    return key_of(title[:_MOST_OF_TITLE].rstrip())


def key_of(title: str) -> int:
    """The key of a title, in 64 bits."""
    return xxhash.xxh3_64_intdigest(title.encode("utf-8", "surrogatepass"))


def pack_keys(keys: Collection[int]) -> bytes:
    """The keys as bytes, in the same order whatever theirs is."""
    return array("Q", sorted(keys)).tobytes()


def unpack_keys(packed: bytes) -> frozenset[int]:
    return frozenset(array("Q", packed))


def _list_titles(page: NamedPage) -> Iterator[str]:
    """The titles that a page may have in place of its own, the best first."""
    known = set(page.title.casefold().split())
    for name in _list_names(page):
        told = _leave_out_end(name, page.title)
        if _LETTER.search(told) and not known.issuperset(told.casefold().split()):
            yield f"{page.title}{SEPARATOR}{told}" if page.title else told


def _list_names(page: NamedPage) -> Iterator[str]:
    naming = page.headings[: min(page.naming, _MOST_HEADINGS)]
    others = page.headings[page.naming : page.naming + _MOST_HEADINGS]
    yield from naming
    # Behind them come the names of definitions, if there are any.
    yield from (name for name in others[:1] if "." in name and " " not in name)
    if not naming and len(page.line) <= _MOST_OF_NAME:
        yield page.line
    names = _read_url(page.url)
    yield from (name for name in names if _tells(name))
    yield from others
    yield from (name for name in names if not _tells(name))


def _leave_out_end(name: str, title: str) -> str:
    """A name without the words at its end with which the title ends, too: ``std::vector Member List``."""
    words, of_title = name.split(), title.split()
    while words and of_title and words[-1].casefold() == of_title[-1].casefold():
        words.pop()
        of_title.pop()
    return " ".join(words).strip(_AROUND)


def _read_url(url: str) -> list[str]:
    """The name of the file of a URL, and the same with some of its folders."""
    path, _, query = url.partition("?")
    *folders, name = unquote(path).partition("//")[2].split("/")[1:] or [""]
    name = _EXTENSION.sub("", name)
    if query:
        name = f"{name}?{unquote(query)}"
    elif name.casefold() in _NO_NAMES and folders:
        name = folders.pop()
    names = [
        "/".join((*folders[len(folders) - count :], name)) for count in range(min(len(folders), _MOST_FOLDERS) + 1)
    ]
    return [" ".join(each.split())[:_MOST_OF_NAME] for each in names]


def _tells(name: str) -> bool:
    """Whether most of a name are letters."""
    letters = sum(map(str.isalpha, name))
    return letters > sum(map(str.isdecimal, name)) and letters > 1


#: So many different texts has a document.
MOST_TEXTS: Final = 20
#: A word that leads to more documents than these, and this share of them (in 1/1000), says nothing of any.
_MOST_TARGETS: Final = 5
_MOST_PERMILLE: Final = 5
#: From so many pages of a host on, what links from at least this share of them (in percent) is a menu.
_FEWEST_PAGES: Final = 10
_MENU_PERCENT: Final = 50
#: Words share a counter with few others of the same remainder: what is counted does not depend on their order.
_COUNTERS: Final = 1 << 20
_WORD: Final = re.compile(r"\w+")


class Linked(NamedTuple):
    """One spelling of a text for a document, and how many pages of a host have it."""

    folded: str
    text: str
    host_id: int
    pages: int


class WordCounts:
    """To how many documents the words of links lead."""

    def __init__(self) -> None:
        self._counts = array("I", bytes(array("I").itemsize * _COUNTERS))
        self._documents = 0

    def add(self, folded: Iterable[str]) -> None:
        """Counts the words of the texts of one document."""
        self._documents += 1
        for word in set[str]().union(*map(_split, folded)):
            self._counts[_find_counter(word)] += 1

    def says_something(self, word: str) -> bool:
        """Whether a word leads to so few documents that it says something of each."""
        count = self._counts[_find_counter(word)]
        return count <= _MOST_TARGETS or count * 1000 <= self._documents * _MOST_PERMILLE


def select_texts(
    linked: Iterable[Linked], *, title: str, counts: WordCounts, pages_of_host: Mapping[int, int]
) -> list[str]:
    """The texts of links to a document of this title, sorted: those from the most pages, if there are too many."""
    known = _split(title.casefold())
    pages: dict[str, int] = {}
    texts: dict[str, str] = {}
    for folded, text, host_id, count in linked:
        of = pages_of_host.get(host_id, 0)
        if of >= _FEWEST_PAGES and count * 100 >= of * _MENU_PERCENT:
            # It is of a menu.
            continue
        pages[folded] = pages.get(folded, 0) + count
        texts[folded] = min(text, texts.get(folded, text))
    said = [folded for folded in pages if any(map(counts.says_something, _split(folded) - known))]
    said.sort(key=lambda folded: (-pages[folded], folded))
    return sorted(texts[folded] for folded in said[:MOST_TEXTS])


def _split(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _find_counter(word: str) -> int:
    return xxhash.xxh3_64_intdigest(word.encode("utf-8", "replace")) % _COUNTERS
