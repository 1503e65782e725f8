"""Rounds in which the power fails: a crawl is killed, and what it had not synced is lost (``power_loss.py``)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.kill_rounds import KILLED, Cut, Kind
from tests.power_loss import SYNCED, Disk

#: A blow may also be a sync by its number, which is not done any more.
_SYNC = "sync"


@dataclass
class PowerKind(Kind):
    """Crawls of processes that loaded ``library``; ``ways`` are those in which the power may fail."""

    library: Path = field(kw_only=True)
    ways: Sequence[str] = (SYNCED,)

    def count_syncs(self) -> int:
        """How often a crawl syncs something; requests and threads make it a few more or less."""
        folder = self._project("counted")
        disk = self._disk(folder)
        disk.begin()
        assert self.forks.run(folder, "crawl", self.source or "counted", **disk.variables) == 0
        return disk.syncs

    def _disk(self, folder: Path) -> Disk:
        return Disk(self.library, folder, folder.with_name(f"{folder.name}.disk"))

    def _blow(self, folder: Path, name: str, blow: str | float) -> int:
        disk = self._disk(folder)
        disk.begin()
        point, _, number = str(blow).partition(":")
        cut = {"POWER_FAILS_AT": number} if point == _SYNC else {"SEARCHCRAWL_FAILPOINT": str(blow)}
        code = self.forks.run(folder, "crawl", self.source or name, **disk.variables, **cut)
        if code == KILLED:
            disk.fail(random.Random(f"{name} {blow}").choice(self.ways), seed=len(str(blow)))
        disk.remove()
        return code


def sync_cuts(numbers: Sequence[int]) -> list[Cut]:
    """A round for each: the power fails at that sync."""
    return [Cut((f"{_SYNC}:{number}",)) for number in numbers]
