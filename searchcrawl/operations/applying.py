"""Applies a plan: checks that it still holds, and carries out the removals that it named (L2)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from searchcrawl.exceptions import PlanRefused
from searchcrawl.failpoints import reach
from searchcrawl.index.receiver import Receiver
from searchcrawl.operations import quarantine
from searchcrawl.operations.plan_file import Plan, digest_configuration, save_plan
from searchcrawl.run import Run, begin
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store.batches import quarantine_table
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.states import EndReason

logger = logging.getLogger(__name__)

_ENDED: Final = frozenset({EndReason.FINISHED.value, EndReason.APPLIED.value})


def begin_apply(
    project: Project, source: Source, database: Database, plan: Plan, versions: Mapping[str, int]
) -> Run | None:
    """Begins the run of a plan, or goes on with it; None if it has ended, and only its removals may be left.

    Raises PlanRefused where the source file or the table is another one since the plan was made, and what ``begin``
    raises. If it is refused, nothing was changed.
    """
    if digest_configuration(project, source, versions) != plan.configuration:
        raise PlanRefused(f"plan {plan.plan}: the configuration was edited since: searchcrawl plan {source.name}")
    fence, last = database.read(partial(_read_state, name=source.name))
    # An ``apply`` that was killed while it approved has taken the lease once more.
    if fence not in ({plan.fence, plan.fence + 1} if plan.ended else {plan.fence}):
        raise PlanRefused(
            f"plan {plan.plan}: the table of {source.name} was changed since: searchcrawl plan {source.name}"
        )
    if plan.ended or (
        plan.run is not None and last is not None and (last.id, last.end_reason in _ENDED) == (plan.run, True)
    ):
        save_plan(project, replace(plan, fence=fence))
        return None
    run = begin(project, source, database, versions, requests=False)
    # From now on it may be called again.
    save_plan(project, replace(plan, fence=run.lease.fence, run=run.id))
    reach("apply.begun")
    return run


def _read_state(transaction: Transaction, *, name: str) -> tuple[int, run_table.RunRow | None]:
    source_id = run_table.find_source(transaction, name)
    if source_id is None:
        return 0, None
    return lease.find_fence(transaction, source_id), run_table.find_last(transaction, source_id)


def approve_planned(project: Project, source: Source, database: Database, receiver: Receiver, plan: Plan) -> int:
    """Carries out the removals of a plan that pass the limits: who applies it has seen them. Returns how many.

    If the run held back others than those of the plan, all wait for ``quarantine approve``.
    """
    # From now on nothing is processed again, and removals of no other run are meant.
    save_plan(project, replace(plan, ended=True))
    reach("apply.processed")
    if not plan.past_limits or plan.run is None:
        return 0
    held = database.read(partial(_count_held, name=source.name, run_id=plan.run))
    if held > plan.leave:
        logger.warning("%s: %d removals wait instead of %d of the plan", source.name, held, plan.leave)
        return 0
    done = quarantine.approve(project, source, database, receiver, only=plan.run, counts_into_run=True)
    return int(done["removed"])


def _count_held(transaction: Transaction, *, name: str, run_id: int) -> int:
    source_id = run_table.find_source(transaction, name)
    if source_id is None:
        return 0
    return quarantine_table.count_waiting(transaction, source_id, run_id)


def describe_applied(
    run_counts: Mapping[str, int], source: Source, *, removed: int, left: int, undecided: int = 0
) -> dict[str, Any]:
    """What ``apply --json`` prints."""
    return {
        "source": source.name,
        "documents": run_counts.get("indexed", 0),
        "removed": run_counts.get("deleted", 0) + removed,
        "failed": 0,
        "to_fetch": left,
        "undecided": undecided,
    }
