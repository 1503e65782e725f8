"""What an edited source file will change: the edit is tried on a copy of the table, with the pages of the cache (L2).

``plan`` runs the same stages as ``apply``. They write to a copy of what the store knows of the source, to a folder of the
cache of their own, and to a receiver that keeps nothing. What they changed in the copy is the plan. ``apply`` checks that it
still holds, and carries out the removals that it named.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from searchcrawl.cache.opening import share_cache
from searchcrawl.codes import describe_code
from searchcrawl.delivery.batch_sender import Sent
from searchcrawl.durable import make_folder
from searchcrawl.exceptions import PlanRefused
from searchcrawl.failpoints import reach
from searchcrawl.index.receiver import Receiver
from searchcrawl.operations import quarantine
from searchcrawl.operations.plan_file import EditPlan, digest_configuration, save_plan
from searchcrawl.operations.source_lease import lease_source
from searchcrawl.run import Run, begin
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import TRIAL_INDEX, Project
from searchcrawl.store import removal_table, side_copy
from searchcrawl.store.engine.database import Database, Transaction
from searchcrawl.store.opening import open_store
from searchcrawl.store.runs import lease, run_table
from searchcrawl.store.side_copy import Changed
from searchcrawl.store.states import EndReason
from searchcrawl.wording import counted

logger = logging.getLogger(__name__)

_SAMPLES: Final = 10
_MOST_REASONS: Final = 50
_ENDLESS_GB: Final = 1_000_000.0
_ENDED: Final = frozenset({EndReason.FINISHED.value, EndReason.APPLIED.value})


@contextmanager
def open_trial(project: Project, source: Source, database: Database) -> Iterator[tuple[Run, int]]:
    """Copies the table of a source, and begins a run over the copy: yields it, and the fence of the table that was copied.

    Raises SourceBusy while the source is crawled.
    """
    folder = project.plans_dir / f"{source.name}.trial"
    with lease_source(project, source, database) as held:
        # Under the lease: one that was left there is of a process that died.
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder)
        trial = _build_project(project, folder)
        share_cache(project, trial, source.name)
        side = open_store(trial)
        side_copy.copy_source(database, side, None if held is None else held.source_id)
    try:
        with closing(side):
            yield begin(trial, source, side, requests=False), 0 if held is None else held.lease.fence
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _build_project(project: Project, folder: Path) -> Project:
    """The same project, whose store, cache, index and logs are in ``folder``."""
    tables = {
        "store": project.store.model_copy(update={"url": f"sqlite:///{folder / 'store.db'}"}),
        "cache": project.cache.model_copy(
            update={"dir": str(folder / "cache"), "location": "files", "preserve": True, "max_gb": _ENDLESS_GB}
        ),
        "index": project.index.model_copy(update={"type": TRIAL_INDEX}),
        "logs": project.logs.model_copy(update={"dir": str(folder)}),
    }
    return project.model_copy(update=tables)


def describe_trial(run: Run, fence: int, *, pages: int, left: int, undecided: int, project: Project) -> EditPlan:
    """The plan, once ``pages`` were processed again in the trial and ``left`` URLs remain to be fetched.

    ``undecided`` documents wait for their next good visit.
    """
    plan = EditPlan(
        plan=f"{run.source.name}-{fence}",
        source=run.source.name,
        edited=list(run.forced),
        reprocess=pages,
        to_fetch=left,
        undecided=undecided,
        send=run.copy_counts().get("indexed", 0),
        configuration=digest_configuration(project, run.source),
        fence=fence,
    )

    def read(transaction: Transaction) -> None:
        reasons: Counter[tuple[str, str]] = Counter()
        for action in ("enter", "leave"):
            samples: list[dict[str, Any]] = []
            for row in side_copy.list_changed(transaction, action):
                reason = _explain(row, action)
                reasons[action, reason] += 1
                if len(samples) < _SAMPLES:
                    samples.append({"url": row.url, "reason": reason})
            plan.samples[action] = samples
        plan.enter, plan.leave = (
            sum(count for (action, _), count in reasons.items() if action == each) for each in ("enter", "leave")
        )
        plan.reasons = [
            {"action": action, "reason": reason, "count": count}
            for (action, reason), count in reasons.most_common(_MOST_REASONS)
        ]
        plan.refetch = left - side_copy.count_to_enter(transaction)
        plan.past_limits = side_copy.count_held(transaction) > 0

    run.read(read)
    return plan


def _explain(row: Changed, action: str) -> str:
    """Why a URL enters or leaves, for people."""
    if action == "enter":
        return "to be fetched" if not row.code else "allowed now"
    return ": ".join(filter(None, [describe_code(row.code), row.rule])) if row.code != 200 else row.evidence or ""


def describe_undecided(number: int) -> str:
    """What ``plan`` and ``apply`` say of documents that the cache cannot decide about."""
    of_them = counted(number, "document whose last visit failed is", "documents whose last visit failed are")
    return f"{of_them} decided at the next visit that does not fail; until then the index keeps what it has"


def begin_apply(project: Project, source: Source, database: Database, plan: EditPlan) -> Run | None:
    """Begins the run of a plan, or goes on with it; None if it has ended, and only its removals may be left.

    Raises PlanRefused where the source file or the table is another one since the plan was made, and what ``begin``
    raises. If it is refused, nothing was changed.
    """
    if digest_configuration(project, source) != plan.configuration:
        raise PlanRefused(f"plan {plan.plan}: the configuration was edited since: searchcrawl plan {source.name}")
    fence, last = database.read(run_table.read_of, source.name, _read_state, (0, None))
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
    run = begin(project, source, database, requests=False)
    # From now on it may be called again.
    save_plan(project, replace(plan, fence=run.lease.fence, run=run.id))
    reach("apply.begun")
    return run


def _read_state(transaction: Transaction, source_id: int) -> tuple[int, run_table.RunRow | None]:
    return lease.find_fence(transaction, source_id), run_table.find_last(transaction, source_id)


def approve_planned(project: Project, source: Source, database: Database, receiver: Receiver, plan: EditPlan) -> int:
    """Carries out the removals of a plan that pass the limits: who applies it has seen them. Returns how many.

    If the run held back others than those of the plan, all wait for ``quarantine approve``.
    """
    # From now on nothing is processed again, and removals of no other run are meant.
    save_plan(project, replace(plan, ended=True))
    reach("apply.processed")
    if not plan.past_limits or plan.run is None:
        return 0
    count_held = partial(removal_table.count_waiting, run_id=plan.run)
    held = database.read(run_table.read_of, source.name, count_held, 0)
    if held > plan.leave:
        logger.warning("%s: %d removals wait instead of %d of the plan", source.name, held, plan.leave)
        return 0
    done = quarantine.approve(project, source, database, receiver, only=plan.run, counts_into_run=True)
    return int(done["removed"])


def describe_applied(
    run_counts: Mapping[str, int], source: Source, *, removed: int, left: int, undecided: int = 0
) -> dict[str, Any]:
    """What ``apply --json`` prints."""
    done = Sent(run_counts.get("indexed", 0), run_counts.get("deleted", 0) + removed, to_fetch=left)
    return {"source": source.name, **done._asdict(), "undecided": undecided}
