"""The pages of a host that were taken for content: is another one like them, and which of them are to be judged again (L9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from searchcrawl.items import Withdrawn
from searchcrawl.soft404.signs import Outline

#: Of pages with one key the last are remembered.
_MOST_OF_KEY: Final = 8


class TakenPage(NamedTuple):
    """A page that was taken: its row, whether that had a document before, and the outline of its text.

    ``place`` is the key of its URL (``urls.key``), None for a home, which is content.
    """

    url_id: int
    is_known: bool
    place: int | None
    outline: Outline


class TakenPages:
    """The last pages of a host, found by what their texts may have in common; some 400 bytes each."""

    __slots__ = ("_by_key",)

    def __init__(self) -> None:
        #: those of one key together, in the order in which they came last
        self._by_key: dict[bytes, tuple[TakenPage, ...]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by_key.values()))

    def add(self, page: TakenPage, *, most: int) -> int:
        """Adds a page, and forgets the oldest beyond ``most`` keys; returns by how many pages there are more now."""
        key = page.outline.key
        # Pages that are alike have the host asked: there are few of one key before that.
        found = self._by_key.pop(key, ())
        kept = (*found[-_MOST_OF_KEY + 1 :], page)
        self._by_key[key] = kept
        change = len(kept) - len(found)
        while len(self._by_key) > most:
            change -= len(self._by_key.pop(next(iter(self._by_key))))
        return change

    def has_alike(self, outline: Outline) -> bool:
        """Whether a page has the same text, or nearly so."""
        return any(page.outline.is_alike(outline) for page in self._by_key.get(outline.key, ()))

    def take(self, wanted: Callable[[TakenPage], bool]) -> list[TakenPage]:
        """Takes the pages out for which ``wanted`` answers true."""
        found: list[TakenPage] = []
        for key, pages in list(self._by_key.items()):
            out = list(filter(wanted, pages))
            if out:
                found += out
                self._by_key[key] = tuple(page for page in pages if page not in out)
        return found


def build_withdrawn(pages: Iterable[TakenPage]) -> Withdrawn:
    """What the writer is to take back."""
    new, known = list[int](), list[int]()
    for page in pages:
        (known if page.is_known else new).append(page.url_id)
    return Withdrawn(tuple(new), tuple(known))
