"""The receiver of ``plan``: accepts everything and keeps nothing, so that no index learns of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from searchcrawl.index.receiver import Batch, Receipt
from searchcrawl.sources.project import Project


class PlanningReceiver:
    """Answers as an index would that has room for every document."""

    def begin(self, source: str, run: int) -> None:
        """Does nothing."""

    def deliver(self, batch: Batch) -> Sequence[Receipt]:
        ids = [document.id for document in batch.documents] + [removal.id for removal in batch.removals]
        return [Receipt(each, accepted=True) for each in ids]

    def end(self, outcome: str) -> None:
        """Does nothing."""


def open_receiver(project: Project) -> PlanningReceiver:
    return PlanningReceiver()
