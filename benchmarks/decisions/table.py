"""The tables of RESULTS.md: a row a site, totals by part, and a row a trap, from the files that were kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.decisions.bounds import BOUNDS, Row, count, find_passed
from benchmarks.decisions.sites import MANUALS, Part

#: The cells of a table: its head, and its rows.
Cells = tuple[Sequence[str], Sequence[Sequence[str]]]

_HEAD: Final = (
    "site", "generator", "by wget", "in the index", "961", "other codes", "lost > 10 %", "navigation > 10 %",
    "shared titles", "language wrong", "survivors wrong",
)  # fmt: skip
_TRAP_HEAD: Final = (
    "trap", "text of its own", "good in the index", "good before its first 500", "visited", "documents", "961", "end",
)  # fmt: skip


def read_sites(folder: Path) -> list[Row]:
    """The figures of the sites that were measured, in the order of the table of sites."""
    files = (folder / f"site-{name}.json" for name in MANUALS)
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.exists()]


def tabulate_sites(rows: Sequence[Row]) -> Cells:
    """A row a site, then one for all of each part."""
    totals = [_add(part, several) for part in Part if (several := [row for row in rows if row["part"] == part.value])]
    bold = [[f"**{cell}**" if cell else "" for cell in _cells(total)] for total in totals]
    return _HEAD, [*map(_cells, rows), *bold]


def tabulate_traps(folder: Path) -> Cells:
    """A row a trap."""
    found = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("trap-*.json"))]
    keys = ("good", "good_before", "visited", "documents", "refused")
    return _TRAP_HEAD, [
        [one["name"], "yes" if one["own_text"] else "", *(f"{one[key]:,}" for key in keys), one["end"]] for one in found
    ]


def describe_bounds(rows: Sequence[Row]) -> str:
    """What is promised, and what of it does not hold."""
    promised = "; ".join(f"{bound.text}: {bound.most:.1%}" for bound in BOUNDS if bound.most < 1)
    passed = find_passed(rows)
    return f"At most, of the named sites together and of the unseen ones: {promised}. Passed: {'; '.join(passed) or 'none'}."


def _cells(row: Row) -> list[str]:
    codes = ", ".join(f"{code if code != '0' else 'not found'}: {number:,}" for code, number in _others(row))
    shares = [
        _share(row, bound.figure, bound.of) for bound in BOUNDS if bound.figure not in {"refused", "wrong_survivors"}
    ]
    survivors = f"{row['wrong_survivors']} of {row['groups']}"
    reached, indexed, refused = row["reached"], row["indexed"], count(row, "refused")
    return [row["name"], row["generator"], f"{reached:,}", f"{indexed:,}", f"{refused:,}", codes, *shares, survivors]


def _others(row: Row) -> list[tuple[str, int]]:
    return [(code, number) for code, number in row["codes"].items() if code != "961"]


def _share(row: Row, figure: str, of: str) -> str:
    wrong, total = count(row, figure), row[of]
    return f"{wrong:,} ({wrong / total:.1%})" if wrong else "0"


def _add(part: Part, rows: Sequence[Row]) -> Row:
    total: dict[str, Any] = {"name": f"{part.value}: {len(rows)} sites", "generator": "", "codes": {}}
    for row in rows:
        for key, number in row.items():
            if isinstance(number, int):
                total[key] = total.get(key, 0) + number
        for code, number in row["codes"].items():
            total["codes"][code] = total["codes"].get(code, 0) + number
    return total
