"""``explain``: why a URL is or is not in the index, of the source that has most to say about it (L1, J2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from searchcrawl import clock, urls
from searchcrawl.queries.explain_context import Case, Witness, case_of, witness_of
from searchcrawl.queries.explain_steps import Step, steps_of
from searchcrawl.queries.verdict import Verdict, verdict_of
from searchcrawl.sources.config import Source
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What one source says of a URL."""

    case: Case
    verdict: Verdict
    steps: Sequence[Step]

    def as_json(self, others: Sequence[Explanation] = ()) -> dict[str, Any]:
        """The object of interface.md §2, with the source's name, and what ``others`` say in short."""
        return {
            "url": self.case.url,
            "source": self.case.source.name,
            "in_index": self.case.in_index,
            "verdict": self.verdict.text,
            "decided_by": self.verdict.decided.as_json(),
            "also": [reason.as_json() for reason in self.verdict.also],
            "steps": [step.as_json() for step in self.steps],
            "others": [
                {"source": other.case.source.name, "in_index": other.case.in_index, "verdict": other.verdict.text}
                for other in others
            ],
        }


def explanations(
    project: Project,
    sources: Sequence[Source],
    database: Database,
    text: str,
    *,
    versions: Mapping[str, int],
) -> list[Explanation]:
    """What each source says of the URL ``text``, the deciding one first.

    Raises InvalidUrl, StoreError, and ConfigurationError for a plug-in of rewriters that cannot begin.

    That is a source that has it in the index, then one that knows it, then one that would take it, then the
    others, the one with the fewest rules against it first.
    """
    witnesses = [witness_of(project, source, versions) for source in sources]
    with ExitStack() as stack:
        for witness in witnesses:
            witness.rewriting.open(witness.source.name)
            stack.callback(witness.rewriting.close)
        return sorted((explained(database, witness, text) for witness in witnesses), key=_rank)


def explained(database: Database, witness: Witness, text: str) -> Explanation:
    """What one source says of the URL ``text``; raises InvalidUrl, StoreError."""
    url = urls.resolve(text)
    case = database.read(lambda transaction: case_of(transaction, witness, url, now_ms=clock.now_ms()))
    return Explanation(case=case, verdict=verdict_of(case), steps=tuple(steps_of(case, given=text)))


def has_a_say(explanation: Explanation) -> bool:
    """Whether its source knows the URL, or would take it."""
    return explanation.case.facts is not None or not explanation.case.refusals()


def _rank(explanation: Explanation) -> tuple[bool, bool, bool, int, str]:
    case = explanation.case
    refusals = len(case.refusals())
    return not case.in_index, case.facts is None, refusals > 0, refusals, case.source.name
