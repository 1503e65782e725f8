"""What tells a page from others with its title: a heading, or another thing that names it (C8).

``TITLE · NAME``, where pages of a host share TITLE. A name that as many of them could have tells nothing either: then the
next one is taken.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

import xxhash

#: So many pages share a title; one that they shared stays shared down to the other number.
FEWEST_SHARING: Final = 5
FEWEST_STILL_SHARING: Final = 3
SEPARATOR: Final = " · "
#: So many headings of each sort are looked at, and so many characters of a name.
_MOST_HEADINGS: Final = 8
_MOST_OF_NAME: Final = 120
#: So much of a title is kept with the links of its page (``store.urls.outlink_table``).
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


def count_titles(pages: Iterable[NamedPage]) -> Counter[int]:
    """How many of the pages have each title, or could have it, by its key."""
    counts: Counter[int] = Counter()
    for page in pages:
        own = {key_of_own(page.title)} if page.title else set()
        counts.update({*own, *map(key_of, _list_titles(page))})
    return counts


def select_shared(counts: Counter[int], *, before: Collection[int]) -> frozenset[int]:
    """The keys of the titles that pages share; ``before`` are those of the last time."""
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
    """The keys that ``pack_keys`` packed."""
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
