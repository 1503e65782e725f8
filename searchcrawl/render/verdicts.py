"""Which pages a browser renders, by their plain answers and by what it brought for their like before (C10, C11)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import NamedTuple

from searchcrawl.exceptions import LeaseLost, StoreError
from searchcrawl.rules import rendering
from searchcrawl.rules.rendering import Judgement, Need, Shell
from searchcrawl.run import Run
from searchcrawl.store.urls import pattern_table
from searchcrawl.store.urls.pattern_table import Gains
from searchcrawl.wording import counted


class Plan(NamedTuple):
    """That a page is rendered, and why; ``is_known``: it is known to need it, else that is to be seen.

    ``need`` is what its plain answer says.
    """

    need: Need
    reason: str
    is_known: bool


class Verdicts:
    """What is known of the pages of a source, from run to run. For the event loop."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._gains: dict[int, Gains] = {}

    async def load(self) -> None:
        """Reads what runs have seen since a key of ``[render]`` was edited last; raises StoreError, LeaseLost."""
        source_id = self._run.source_id
        if any(key.startswith("render.") for key in self._run.forced):
            await asyncio.to_thread(self._run.write, partial(pattern_table.forget_gains, source_id=source_id))
        self._gains = await asyncio.to_thread(self._run.read, partial(pattern_table.load_gains, source_id=source_id))

    def decide(self, url: str, shell: Shell, *, rendered: str | None = None) -> Plan | None:
        """Whether the page of ``url`` is rendered; None: it is not.

        ``rendered`` is why it was when its known text was made: it is again, whatever pages like it became.
        """
        judgement = rendering.judge(shell)
        if judgement.need is Need.CERTAIN:
            return Plan(judgement.need, judgement.reason, True)
        known = self._gains.get(rendering.build_key(url, judgement.need), Gains())
        if rendering.is_worth_it(*known):
            return Plan(judgement.need, _describe(judgement, known), True)
        if rendered is not None:
            return Plan(judgement.need, rendered, False)
        if self.is_sampled(url):
            return Plan(judgement.need, f"one of the pages that are looked at again: {judgement.reason}", False)
        if judgement.need is Need.DOUBTFUL and not known.rendered:
            return Plan(judgement.need, judgement.reason, False)
        return None

    def is_sampled(self, url: str) -> bool:
        """Whether a page is looked at again in this run; a dry run has no number, and looks at one page alone."""
        return self._run.id > 0 and rendering.is_sampled(url, self._run.id)

    def may_render(self, url: str) -> bool:
        """Whether pages like that of ``url`` are rendered, unless its plain answer says that it needs nothing."""
        return any(
            rendering.is_worth_it(*self._gains.get(rendering.build_key(url, need), Gains()))
            for need in (Need.NONE, Need.DOUBTFUL)
        )

    async def note(self, url: str, need: Need, *, gain: bool) -> None:
        """Keeps what rendering brought for a page that was not known to need it."""
        key = rendering.build_key(url, need)
        before = self._gains.get(key, Gains())
        self._gains[key] = now = Gains(*rendering.count(before.rendered, before.gained, gain=gain))
        write = partial(pattern_table.store_gains, source_id=self._run.source_id, gains={key: now})
        try:
            await asyncio.to_thread(self._run.write, write)
        except (StoreError, LeaseLost) as error:
            self._run.shutdown.fail(error)


def _describe(judgement: Judgement, known: Gains) -> str:
    of = f"{known.gained} of {counted(known.rendered, 'page', 'pages')}"
    return f"{of} like it had more text when they were rendered ({judgement.reason})"
