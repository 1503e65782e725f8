"""How far the receivers of sources besides the index have got: ``receivers list``, and a part of ``status`` (L14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from searchcrawl import clock
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.sources.receivers import list_names
from searchcrawl.store import log_table, receiver_table
from searchcrawl.store.engine.database import Transaction
from searchcrawl.store.log_table import LogPlace
from searchcrawl.store.receiver_table import ReceiverRow
from searchcrawl.store.runs import run_table
from searchcrawl.wording import counted

#: Refused documents that are named.
_MOST_SHOWN: Final = 100


def describe_receivers(transaction: Transaction, project: Project, source: Source) -> list[dict[str, Any]]:
    """What ``receivers list --json`` prints of a source, by the order of searchcrawl.toml.

    Each is ``{"receiver", "source", "state", "position", "waiting", "refused", "lost", "error", "since", "documents"}``; ``position``
    is the number of the last entry of the change log that it has, ``documents`` are up to 100 that it refused.
    """
    # A source that never ran has nothing.
    source_id = run_table.find_source(transaction, source.name) or 0
    known = {row.name: row for row in receiver_table.load(transaction, source_id)}
    return [_describe(transaction, source, source_id, name, known.get(name)) for name in list_names(project, source)]


def warn_of_receivers(receivers: list[dict[str, Any]], name: str) -> Iterator[tuple[str, str]]:
    """The warnings of ``status`` about receivers: the code and the message of each."""
    for each in receivers:
        receiver, waiting = each["receiver"], each["waiting"]
        waits = counted(waiting, "change waits", "changes wait")
        if each["state"] == "paused" and waiting:
            yield "receiver", f"the receiver {receiver} is paused, and {waits}: searchcrawl receivers resume {receiver}"
        elif each["state"] == "away":
            yield "receiver", f"{each['error']}; {waits}: the next run goes on, or searchcrawl flush {name}"
        if each["refused"]:
            refused = counted(each["refused"], "document", "documents")
            yield "receiver", f"the receiver {receiver} refuses {refused}: searchcrawl receivers list {receiver} --json"


def _describe(
    transaction: Transaction, source: Source, source_id: int, name: str, row: ReceiverRow | None
) -> dict[str, Any]:
    place, error = (LogPlace(), None) if row is None else (row.place, row.error)
    is_paused = row is not None and row.is_paused
    faulty = receiver_table.find_faulty(transaction, source_id, name, limit=_MOST_SHOWN)
    return {
        "receiver": name,
        "source": source.name,
        "state": "paused" if is_paused else "away" if error is not None else "active",
        "position": place.seq,
        "waiting": log_table.count_waiting(transaction, source_id, place),
        "refused": receiver_table.count_faulty(transaction, source_id, name, lost=False),
        "lost": receiver_table.count_faulty(transaction, source_id, name, lost=True),
        "error": error,
        "since": None if row is None else clock.iso(row.error_ms),
        "documents": [{"url": url, "error": why} for url, why in faulty],
    }
