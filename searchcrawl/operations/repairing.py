"""``verify --repair``: which sources are mended, one after the other, each under its lease (L4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final

from searchcrawl.comparison.second_look import Difference, spool_differences
from searchcrawl.comparison.spool import Spool
from searchcrawl.delivery.batch_sender import open_sender
from searchcrawl.delivery.end_look import forget_end_look
from searchcrawl.delivery.removals import Limits
from searchcrawl.exceptions import ConfigurationError, SourceBusy
from searchcrawl.index.receiver import SearchIndex
from searchcrawl.operations.mending import Mending
from searchcrawl.operations.source_lease import check_delivers, lease_source
from searchcrawl.run import Run
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import is_source_name, load_source, stand_in_for
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database

_RETRY_SECONDS: Final = 60.0


@dataclass(slots=True, kw_only=True)
class Repair:
    """Mends what a comparison finds, a source at a time, and notes what it could not.

    ``sources`` have files. Documents of other sources that the store knows are removed only ``with_foreign``: somebody
    named their source, or all sources. ``beyond_limits``: the limits on deleting do not hold (``--yes``).
    ``held_back`` are those limits by source, ``to_visit`` how many pages of a source the next run visits, ``errors``
    why a source was not mended.
    """

    project: Project
    database: Database
    index: SearchIndex
    sources: Collection[str]
    with_foreign: bool
    beyond_limits: bool
    retry_seconds: float = _RETRY_SECONDS
    on_source: Callable[[Source], object] = lambda source: None
    held_back: dict[str, Limits] = field(default_factory=dict)
    to_visit: dict[str, int] = field(default_factory=dict)
    errors: list[ConfigurationError | SourceBusy] = field(default_factory=list)

    def treat(self, name: str, found: Iterator[Difference]) -> Iterator[Difference]:
        """Mends the differences of a source, where that was asked for; yields them as they are then.

        Raises DeliveryError, StoreError, LeaseLost, CacheError, OSError.
        """
        foreign = name not in self.sources
        if foreign and not (self.with_foreign and is_source_name(name)):
            yield from found
            return
        with spool_differences() as differences, spool_differences() as done:
            for each in found:
                differences.add(each)
            try:
                mended = len(differences) > 0 and self._mend(name, differences, done, foreign=foreign)
            except (ConfigurationError, SourceBusy) as error:
                # Others can be mended all the same.
                self.errors.append(error)
                mended = False
            yield from done if mended else differences

    def _mend(self, name: str, differences: Spool[Difference], done: Spool[Difference], *, foreign: bool) -> bool:
        """Mends a source; whether the store knows it."""
        source = stand_in_for(self.project, name) if foreign else load_source(self.project, name)
        check_delivers(source)
        with lease_source(self.project, source, self.database) as run:
            if run is None:
                return False
            self.on_source(source)
            self._mend_under_lease(run, differences, done, foreign=foreign)
        return True

    def _mend_under_lease(
        self, run: Run, differences: Spool[Difference], done: Spool[Difference], *, foreign: bool
    ) -> None:
        # A run that was cut off is continued later: what is sent now counts in it.
        counts_into_run = run.row.ended_ms is None
        with open_sender(run, self.index, retry_seconds=self.retry_seconds, counts_into_run=counts_into_run) as sender:
            # An index of another schema would take documents and forget their versions.
            sender.retry.attempt(self.index.ping)
            mending = Mending(run, self.index, sender, foreign=foreign, beyond_limits=self.beyond_limits)
            mending.mend(differences, done)
            if all(each.mended for each in done):
                forget_end_look(run)
        name = run.source.name
        if mending.held_back is not None:
            self.held_back[name] = mending.held_back
        if mending.to_visit:
            self.to_visit[name] = self.to_visit.get(name, 0) + mending.to_visit
