"""Removals that wait, and what becomes of them: a real store and a real local index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.exceptions import IndexMisconfigured, IndexUnavailable, SourceBusy
from searchcrawl.operations import quarantine
from searchcrawl.store import removal_table
from searchcrawl.store.runs import lease
from tests.filled_store import SITE, FilledStore
from tests.redelivering import Refusing, Watched, away, states


def listed(filled: FilledStore) -> list[dict[str, Any]]:
    return list(quarantine.list_waiting(filled.database, filled.source))


def leave(filled: FilledStore, *waiting: str, others: Sequence[str] = (), code: int = 404) -> None:
    """Leaves documents in the index of which some wait to be removed, as a run does that ended so."""
    filled.fetch(*waiting, *others)
    filled.send()
    filled.hold_back(*waiting, code=code)
    filled.end(exit_code=9)


def test_approve_when_removals_wait_then_they_leave_the_index_at_once(filled: FilledStore) -> None:
    leave(filled, "/a", "/b", others=["/c"])

    done = quarantine.approve(filled.project, filled.source, filled.database, filled.index)

    assert done == {"source": "demo", "documents": 2, "removed": 2, "failed": 0, "waiting": 0}
    assert filled.indexed_urls() == ["/c"]
    assert states(filled) == {"/a": "gone", "/b": "gone", "/c": "indexed"}
    assert listed(filled) == []
    assert filled.verify()["ok"]


@pytest.mark.parametrize("decided", [quarantine.approve, quarantine.restore])
def test_removals_when_the_index_refuses_one_then_it_is_counted(
    filled: FilledStore, decided: Callable[..., dict[str, Any]]
) -> None:
    leave(filled, "/a", "/b")
    if decided is quarantine.restore:
        quarantine.reject(filled.project, filled.source, filled.database)

    done = decided(filled.project, filled.source, filled.database, Refusing(filled, "/a"))

    assert done == {"source": "demo", "documents": 2, "removed": 1, "failed": 1, "waiting": 0}


def test_approve_when_the_index_cannot_be_used_then_nothing_changes(filled: FilledStore, tmp_path: Path) -> None:
    leave(filled, "/a")
    (tmp_path / "file").write_text("no index")
    broken = type(filled.index)(tmp_path / "file")

    with pytest.raises(IndexMisconfigured):
        quarantine.approve(filled.project, filled.source, filled.database, broken)

    assert len(listed(filled)) == 1
    assert quarantine.reject(filled.project, filled.source, filled.database)["documents"] == 1


@pytest.mark.parametrize("decided", [quarantine.approve, quarantine.restore])
def test_removals_when_the_index_goes_away_then_they_are_sent_once_it_is_back(
    filled: FilledStore, decided: Callable[..., dict[str, Any]]
) -> None:
    leave(filled, "/a", others=["/b"])
    if decided is quarantine.restore:
        quarantine.reject(filled.project, filled.source, filled.database)

    receiver = Watched(filled, away)
    with pytest.raises(IndexUnavailable):
        decided(filled.project, filled.source, filled.database, receiver, retry_seconds=0)
    done = decided(filled.project, filled.source, filled.database, filled.index)

    assert receiver.ended == ["failed"]
    assert done == {"source": "demo", "documents": 1, "removed": 1, "failed": 0, "waiting": 0}
    assert filled.indexed_urls() == ["/b"]


def test_quarantine_when_the_source_is_being_crawled_then_busy(filled: FilledStore) -> None:
    filled.fetch("/a")
    filled.send()
    filled.hold_back("/a")

    for call in (
        lambda: quarantine.approve(filled.project, filled.source, filled.database, filled.index),
        lambda: quarantine.reject(filled.project, filled.source, filled.database),
        lambda: quarantine.restore(filled.project, filled.source, filled.database, filled.index),
    ):
        with pytest.raises(SourceBusy):
            call()

    assert filled.indexed_urls() == ["/a"]


def test_reject_when_removals_wait_then_the_documents_stay(filled: FilledStore) -> None:
    leave(filled, "/a", others=["/b"])

    done = quarantine.reject(filled.project, filled.source, filled.database)

    assert done == {"source": "demo", "documents": 1, "removed": 0, "failed": 0, "waiting": 0}
    assert filled.indexed_urls() == ["/a", "/b"]
    assert listed(filled) == []
    assert not filled.database.read(lease.is_held, filled.run.source_id)


def test_quarantine_when_nothing_waits_or_never_ran_then_nothing_is_done(filled: FilledStore) -> None:
    never = filled.source.model_copy(update={"name": "never"})
    filled.end()

    for source in (filled.source, never):
        nothing = {"source": source.name, "documents": 0, "removed": 0, "failed": 0, "waiting": 0}
        assert quarantine.approve(filled.project, source, filled.database, filled.index) == nothing
        assert quarantine.reject(filled.project, source, filled.database) == nothing
        assert list(quarantine.list_waiting(filled.database, source)) == []


def test_list_waiting_when_removals_wait_then_run_reason_and_time_are_told(filled: FilledStore) -> None:
    leave(filled, "/a", code=410)

    [row] = listed(filled)

    assert row == {"run": filled.run.id, "url": f"{SITE}/a", "reason": "410", "since": filled.status()["run"]["ended"]}


def test_list_waiting_when_the_run_was_killed_then_what_it_still_holds_back_is_not_approved_unseen(
    filled: FilledStore,
) -> None:
    filled.fetch("/a", "/b")
    filled.send()
    filled.hold_back("/a")
    shown = listed(filled)
    # It goes on.
    filled.hold_back("/b")
    filled.end(exit_code=9)

    before = quarantine.approve(filled.project, filled.source, filled.database, filled.index)
    listed(filled)
    after = quarantine.approve(filled.project, filled.source, filled.database, filled.index)

    assert len(shown) == 1
    assert (before["documents"], before["waiting"]) == (0, 2)
    assert (after["documents"], after["waiting"]) == (2, 0)
    assert filled.indexed_urls() == []


def test_decided_when_there_are_more_than_a_transaction_takes_then_all_are_meant(
    filled: FilledStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal_table, "PAGE_ROWS", 2)
    names = [f"/{number}" for number in range(5)]
    leave(filled, *names)

    shown = listed(filled)
    rejected = quarantine.reject(filled.project, filled.source, filled.database)
    kept = list(quarantine.list_rejected(filled.database, filled.source))
    done = quarantine.restore(filled.project, filled.source, filled.database, filled.index)

    assert [row["url"] for row in kept] == [row["url"] for row in shown] == [SITE + name for name in names]
    assert (rejected["documents"], done["removed"]) == (5, 5)
    assert filled.indexed_urls() == []
