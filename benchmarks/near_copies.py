"""How well signatures tell near copies, on pages of two versions of the same manuals: ``python -m benchmarks.near_copies``.

Pairs are made in three ways: a page with itself in the other version, where its text changed; a page with its neighbour in
the order of paths, which is often made by the same template; and any two pages. A pair is near if the texts share so much of
all their runs of three words, counted in full (the resemblance of Broder 1997). The threshold of the signatures is chosen on
one half of the pairs, by their paths, and the other half is what counts.
"""

from __future__ import annotations

import argparse
import random
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import material
from searchcrawl.convert.html_converter import convert_html
from searchcrawl.html.context import ConversionContext, TextRules
from searchcrawl.rules.near_copies import NEAR_PLACES, PLACES, count_equal_places, sign

WORK: Final = Path(__file__).resolve().parent / "out"
#: Two versions of each manual.
MANUALS: Final = (("libboost1.74-doc", "libboost1.81-doc"), ("llvm-14-doc", "llvm-15-doc"))
#: Texts are near if so much of their runs of words is in both.
RESEMBLANCE: Final = 0.8
_RUN_WORDS: Final = 3
#: Shorter texts have no signature, or a name that differs is a large part of them.
_LEAST_WORDS: Final = 150
_NEIGHBOURS: Final = 600
_RANDOM_PAIRS: Final = 300

Page = tuple[str, str]


class Pair(NamedTuple):
    """Two pages (package, path), how much their texts resemble each other, and how many places of their signatures."""

    one: Page
    other: Page
    resemblance: float
    equal_places: int

    @property
    def is_near(self) -> bool:
        """Whether the texts, compared in full, are near copies."""
        return self.resemblance >= RESEMBLANCE


class Score(NamedTuple):
    """Of the pairs found near, the share that is; of those that are, the share that was found."""

    precision: float
    recall: float
    near: int
    pairs: int


def read_texts(work: Path, package: str) -> dict[str, str]:
    """The indexed text of each page of a package, by its path."""
    root = material.unpacked(work, package) / "usr/share/doc" / package
    context = ConversionContext(url="http://manual.test/", text_rules=TextRules(main=True))
    pages = (path for path in sorted(root.rglob("*.html")) if path.is_file())
    return {str(path.relative_to(root)): convert_html(path.read_bytes(), context).text for path in pages}


def resemble(one: str, other: str) -> float:
    """How much of all runs of words of two texts is in both."""
    first, second = _find_runs(one), _find_runs(other)
    return len(first & second) / len(first | second)


def _find_runs(text: str) -> set[tuple[str, ...]]:
    words = text.lower().split()
    return set(zip(*(words[start:] for start in range(_RUN_WORDS)), strict=False))


def choose_pairs(older: dict[str, str], newer: dict[str, str], names: tuple[str, str]) -> Iterator[tuple[Page, Page]]:
    """Pairs of pages of one manual, by the package and path of each; always the same ones."""
    chance = random.Random(1)
    long = [
        sorted(path for path, text in texts.items() if len(text.split()) >= _LEAST_WORDS) for texts in (older, newer)
    ]
    both = sorted(set(long[0]) & set(long[1]))
    yield from (((names[0], path), (names[1], path)) for path in both if older[path] != newer[path])
    for name, paths in zip(names, long, strict=True):
        places = chance.sample(range(len(paths) - 1), min(_NEIGHBOURS, len(paths) - 1))
        yield from (((name, paths[at]), (name, paths[at + 1])) for at in sorted(places))
    for _ in range(_RANDOM_PAIRS):
        one, other = chance.choice(long[0]), chance.choice(long[1])
        if one != other:
            yield (names[0], one), (names[1], other)


def measure(pairs: Iterable[Pair], places: int) -> Score:
    """How well ``places`` equal places tell the near ones of pairs."""
    chosen = list(pairs)
    found = [pair for pair in chosen if pair.equal_places >= places]
    near = sum(pair.is_near for pair in chosen)
    right = sum(pair.is_near for pair in found)
    return Score(right / max(len(found), 1), right / max(near, 1), near, len(chosen))


def split(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """The pairs by which the threshold is chosen, and the others; all pairs of a path are in the same half."""
    halves: tuple[list[Pair], list[Pair]] = ([], [])
    for pair in pairs:
        halves[zlib.crc32(pair.one[1].encode()) & 1].append(pair)
    return halves


def compare_pages(work: Path, names: tuple[str, str]) -> Iterator[Pair]:
    """Compares the pairs of one manual, in full and by signatures."""
    texts = {name: read_texts(work, name) for name in names}
    signatures: dict[Page, str] = {}
    for one, other in choose_pairs(texts[names[0]], texts[names[1]], names):
        for name, path in (one, other):
            if (name, path) not in signatures:
                signatures[name, path] = sign(texts[name][path])
        yield Pair(
            one,
            other,
            resemble(texts[one[0]][one[1]], texts[other[0]][other[1]]),
            count_equal_places(signatures[one], signatures[other]),
        )


def main() -> None:
    """Prints the scores of both halves, by manual and together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=WORK, help="where the packages are unpacked")
    work: Path = parser.parse_args().work
    by_manual = {names[0]: list(compare_pages(work, names)) for names in MANUALS}
    chosen, measured = split([pair for pairs in by_manual.values() for pair in pairs])
    best = max(range(1, PLACES + 1), key=lambda places: min(measure(chosen, places)[:2]))
    print(f"best on the half that chooses: {best} of {PLACES} places; in use: {NEAR_PLACES}")
    print("| pairs | near | precision | recall |\n| --- | ---: | ---: | ---: |")
    rows = {"the half that chooses": chosen, "the other half": measured}
    rows |= {f"of it, {name} and later": split(pairs)[1] for name, pairs in by_manual.items()}
    for label, pairs in rows.items():
        score = measure(pairs, NEAR_PLACES)
        print(f"| {label}: {score.pairs} | {score.near} | {score.precision:.3f} | {score.recall:.3f} |")


if __name__ == "__main__":
    main()
