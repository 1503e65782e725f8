"""What is printed of the figures, and the files with the worst pages for those who mend the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.decisions.measure import Figures

_MOST_SHOWN: Final = 200


def print_row(name: str, figures: Figures) -> None:
    """A line for a site."""
    words_lost = figures.own_words_lost / max(1, figures.own_words)
    print(
        f"{name:28} pages {figures.pages:6,}  lost >10 % {_share(len(figures.lost), figures.with_words)}"
        f"  (words lost {words_lost:6.2%})  navigation >10 % {_share(len(figures.navigation), figures.pages)}"
        f"  shared titles {_share(len(figures.titles), figures.pages)}"
        f"  language wrong {_share(len(figures.languages), figures.with_language)}",
        flush=True,
    )


def write_worst(path: Path, figures: Figures) -> None:
    """The worst pages of each kind, with what is missing or too much."""
    kinds = {
        "loses over 10 % of its own words": figures.lost,
        "over 10 % navigation": figures.navigation,
        "shared or empty title": figures.titles,
        "language wrong": figures.languages,
    }
    lines: list[str] = []
    for kind, several in kinds.items():
        lines.append(f"## {kind}: {len(several):,}")
        lines += [f"{one.share:7.1%} {one.url}\n        {one.what}" for one in several[:_MOST_SHOWN]]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _share(count: int, of: int) -> str:
    return f"{count:5,} ({count / max(1, of):6.2%})"
