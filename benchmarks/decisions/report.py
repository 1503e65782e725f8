"""What is printed of the figures, and the files with the worst pages for those who mend the rules."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.decisions.measure import Figures
from benchmarks.decisions.site import SiteResult
from benchmarks.decisions.traps import TrapResult

_MOST_SHOWN: Final = 200


def describe_figures(name: str, figures: Figures) -> str:
    """A line for a site."""
    words_lost = figures.own_words_lost / max(1, figures.own_words)
    return (
        f"{name:28} pages {figures.pages:6,}  lost >10 % {_share(len(figures.lost), figures.with_words)}"
        f"  (words lost {words_lost:6.2%})  navigation >10 % {_share(len(figures.navigation), figures.pages)}"
        f"  shared titles {_share(len(figures.titles), figures.titled)}"
        f"  language wrong {_share(len(figures.languages), figures.with_language)}"
    )


def describe_site(result: SiteResult) -> str:
    """A line for a site that was crawled."""
    codes = ", ".join(f"{code or 'none'}: {count:,}" for code, count in result.codes.items())
    return (
        f"{describe_figures(result.name, result.figures)}  survivors wrong {result.wrong_survivors} of {len(result.groups)}"
        f"  wget {result.reached:,}  indexed {result.indexed:,}  others {codes or 'none'}"
        f"  {result.cpu_seconds:.0f} CPU s, {result.seconds:.0f} s"
    )


def describe_trap(result: TrapResult) -> str:
    """A line for a trap."""
    return (
        f"{result.name:22} {'with text of its own' if result.own_text else '':20}  good {result.good:3}"
        f"  (before the first 500 of the trap {result.good_before:3})  visited {result.visited:5,}"
        f"  documents {result.documents:5,}  961 {result.refused:6,}  {result.end}"
    )


def write_worst_of_site(path: Path, result: SiteResult) -> None:
    """The worst pages of each kind, the pages that the index lacks by their codes, and the groups of copies."""
    lines = _list_worst(result.figures)
    for code, paths in result.of_code.items():
        lines.append(f"## reached by wget, not in the index: {code or 'not found by the crawl'}: {len(paths):,}")
        lines += [f"        {one}" for one in paths[:_MOST_SHOWN]]
    lines.append(f"## copies: {len(result.groups):,}")
    for group in result.groups[:_MOST_SHOWN]:
        lines.append(
            f"{'WRONG: ' + group.wrong if group.wrong else 'to judge'}  {group.title} ({group.language or 'no language'})"
        )
        lines += [f"   in   {group.survivor}", *(f"   out  {other}" for other in group.others[:10])]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def write_worst(path: Path, figures: Figures) -> None:
    """The worst pages of each kind, with what is missing or too much."""
    path.write_text("\n".join(_list_worst(figures)) + "\n", "utf-8")


def _list_worst(figures: Figures) -> list[str]:
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
    return lines


def _share(count: int, of: int) -> str:
    return f"{count:5,} ({count / max(1, of):6.2%})"
