"""The bounds that the rules keep to on finite sites, by figures of sites as files of JSON have them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from benchmarks.decisions.sites import Part

Row = Mapping[str, Any]


class Bound(NamedTuple):
    """How many of the pages of all sites together may be wrong, as a share, and of those of one named site."""

    figure: str
    of: str
    text: str
    most: float
    most_of_named: float | None = None


BOUNDS: Final[Sequence[Bound]] = (
    Bound("refused", "reached", "refused as a trap (961)", 0.0, 0.0),
    Bound("lost", "with_words", "lose over 10 % of their own words", 0.005, 0.02),
    Bound("navigation", "pages", "over 10 % navigation", 0.02),
    Bound("titles", "titled", "titles shared by five pages or more, or empty", 0.005),
    Bound("languages", "with_language", "language wrong", 0.005),
    Bound("wrong_survivors", "groups", "wrong survivors of copies", 1.0, 0.0),
)


def count(row: Row, figure: str) -> int:
    """A figure of a site."""
    return int(row["codes"].get("961", 0)) if figure == "refused" else int(row[figure])


def find_passed(rows: Sequence[Row]) -> list[str]:
    """What is passed: by the named sites together, by the unseen ones together, by one site; all have to refuse nothing."""
    return list(_find_passed(rows))


def _find_passed(rows: Sequence[Row]) -> Iterator[str]:
    named = [row for row in rows if row["part"] == Part.NAMED.value]
    unseen = [row for row in rows if row["part"] == Part.UNSEEN.value]
    for bound in BOUNDS:
        for part, several in (("named", named), ("unseen", unseen)):
            wrong, of = sum(count(row, bound.figure) for row in several), sum(row[bound.of] for row in several)
            if wrong > bound.most * of:
                yield f"{part} sites: {bound.text}: {wrong:,} of {of:,} ({wrong / of:.2%}), at most {bound.most:.1%}"
        of_one = rows if bound.figure == "refused" else named
        for row in of_one if bound.most_of_named is not None else ():
            if count(row, bound.figure) > (bound.most_of_named or 0.0) * row[bound.of]:
                yield f"{row['name']}: {bound.text}: {count(row, bound.figure):,} of {row[bound.of]:,}"
