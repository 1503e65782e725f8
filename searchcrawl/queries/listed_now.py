"""What a listing of a source would find now, without a crawl: ``sources check --list``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from searchcrawl.codes import describe_code
from searchcrawl.kind import load_named
from searchcrawl.listing.model import ListedPart, Lister
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import build_boundary
from searchcrawl.sources.project import Project


@dataclass(slots=True)
class ListedNow:
    """How many things are listed, and in how many containers; how many of both a rule leaves out, and which containers fail."""

    listed: int = 0
    containers: int = 0
    refused: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)


class _NoMarks:
    """Nothing is known of containers: each is read whole."""

    def find_mark(self, url: str) -> str | None:
        return None

    def has_entries(self, url: str) -> bool:
        return False


def list_now(project: Project, source: Source) -> ListedNow:
    """Lists a source of a kind that is listed; nothing is read, and nothing is noted."""
    lister: Lister = load_named(source.kind.lister)(source, project, _NoMarks(), lambda: False)
    boundary, found = build_boundary(source), ListedNow()
    for part in lister.walk():
        for entry in part.entries:
            is_refused = entry.refusal is not None or not boundary.decide(entry.url, part.depth).allowed
            found.refused += is_refused
            found.listed += not is_refused
        _note_end(part, found)
    return found


def _note_end(part: ListedPart, found: ListedNow) -> None:
    if part.end is None:
        return
    found.containers += part.end.refusal is None
    found.refused += part.end.refusal is not None
    if part.end.is_failure:
        found.failed.append({"url": part.url, "error": f"{describe_code(part.end.code)}: {part.end.error}"})
