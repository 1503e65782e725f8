"""``explain``: why a URL is or is not in the index, for each source, the deciding one first (L1, J2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from searchcrawl import urls
from searchcrawl.queries.explain_context import Context, SourceInputs, build_context, build_inputs
from searchcrawl.queries.explain_reasons import Verdict
from searchcrawl.queries.explain_steps import Step, list_steps, list_steps_of_gone
from searchcrawl.queries.explain_verdict import explain_gone, find_verdict
from searchcrawl.sources.config import Source
from searchcrawl.sources.loading import stand_in_for
from searchcrawl.sources.project import Project
from searchcrawl.store.engine.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation of a URL for one source."""

    context: Context
    verdict: Verdict
    steps: Sequence[Step]

    @property
    def is_relevant(self) -> bool:
        """Whether the source knows the URL, or would request it."""
        if self.context.inputs.is_gone:
            return self.context.facts is not None
        return self.context.is_known or not self.context.list_refusals()

    def as_json(self, others: Sequence[Explanation] = ()) -> dict[str, Any]:
        """What ``explain --json`` prints: this source's explanation, and the verdicts of ``others``."""
        first, *also = self.verdict.reasons
        return {
            "url": self.context.url,
            "source": self.context.source.name,
            "in_index": self.context.in_index,
            "verdict": self.verdict.text,
            "decided_by": first.as_json(),
            "also": [reason.as_json() for reason in also],
            "steps": [step.as_json() for step in self.steps],
            "others": [
                {"source": other.context.source.name, "in_index": other.context.in_index, "verdict": other.verdict.text}
                for other in others
            ],
        }


def explain_by_all(
    project: Project,
    sources: Sequence[Source],
    database: Database,
    text: str,
    *,
    versions: Mapping[str, int],
    gone: Sequence[str] = (),
) -> list[Explanation]:
    """Explains the URL ``text`` for each source, the deciding one first; ``gone`` are sources whose files are gone.

    First comes a source that has it in the index, then one that knows it, then one that would request it, then the
    others; of these those first whose pages link to it, then those with the fewest rules against it. Raises InvalidUrl, StoreError, and ConfigurationError for a
    plugin of rewriters that cannot begin.
    """
    asked = [build_inputs(project, source, versions) for source in sources]
    asked += [build_inputs(project, stand_in_for(project, name), versions, is_gone=True) for name in gone]
    with ExitStack() as stack:
        for inputs in asked:
            inputs.rewriting.open(inputs.source.name)
            stack.callback(inputs.rewriting.close)
        return sorted((explain_url(database, inputs, text) for inputs in asked), key=_rank)


def explain_url(database: Database, inputs: SourceInputs, text: str) -> Explanation:
    """Explains the URL ``text`` for one source; raises InvalidUrl, StoreError."""
    url = urls.resolve_typed(text, routes=inputs.source.scope.hash_routes)
    context = database.read(lambda transaction: build_context(transaction, inputs, url))
    if inputs.is_gone:
        return Explanation(context=context, verdict=explain_gone(context), steps=tuple(list_steps_of_gone(context)))
    steps = tuple(list_steps(context, asked=text))
    return Explanation(context=context, verdict=find_verdict(context), steps=steps)


def _rank(explanation: Explanation) -> tuple[bool | int | str, ...]:
    context = explanation.context
    refusals = len(context.list_refusals())
    known = not context.in_index, not context.is_known, context.inputs.is_gone
    # Links to its host say less than one to the URL itself.
    linked = not context.unfollowed, not context.is_linked
    return *known, refusals > 0, not context.is_start, *linked, refusals, context.source.name
