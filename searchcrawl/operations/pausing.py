"""``receivers pause`` and ``resume``: whether a receiver besides the index gets anything (L14)."""

from __future__ import annotations

from collections.abc import Iterable

from searchcrawl.exceptions import UnknownReceiver
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import FILE, Project
from searchcrawl.sources.receivers import list_names
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.receivers import receiver_table
from searchcrawl.store.runs import run_table


def pause(project: Project, sources: Iterable[Source], database: Database, name: str, *, paused: bool) -> list[str]:
    """Has a receiver get nothing of these sources, or lets it go on; returns the names of those for which that is new.

    A crawl that is under way heeds it with the next page of documents. Raises UnknownReceiver where no source has it.
    """
    chosen = [source for source in sources if name in list_names(project, source)]
    if not chosen:
        raise UnknownReceiver(
            f"no source has a receiver of this name: {name} (there are {', '.join(project.receivers) or 'none'}: [receivers.NAME] "
            f"in {FILE})"
        )

    def note(transaction: Transaction) -> list[str]:
        return [
            source.name
            for source in chosen
            if receiver_table.pause(
                transaction, run_table.find_or_add_source(transaction, source.name), name, paused=paused
            )
        ]

    return database.write(note)
