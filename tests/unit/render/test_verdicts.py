"""Which pages a run renders, by what rendering brought for pages like them (C10)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from searchcrawl.render.renderer import RenderPlan, Verdicts
from searchcrawl.rules.rendering import Need, Shell

#: Its pages leave a doubt.
SHELL = Shell(249, 2)
WHY = "249 bytes of text and 2 scripts"


@pytest.mark.parametrize(
    ("gain", "plan"),
    [
        (False, None),
        (True, RenderPlan(Need.DOUBTFUL, f"1 of 1 page like it had more text when they were rendered ({WHY})", True)),
    ],
)
def test_c10_doubtful_page_when_one_like_it_was_rendered_then_it_is_only_if_that_brought_text(
    gain: bool, plan: RenderPlan | None
) -> None:
    # A run without a number looks at no page again.
    run: Any = SimpleNamespace(id=0, source_id=1, write=lambda work: None)
    verdicts = Verdicts(run)

    first = verdicts.decide("http://a.test/item/1", SHELL)
    asyncio.run(verdicts.note("http://a.test/item/1", Need.DOUBTFUL, gain=gain))

    assert first == RenderPlan(Need.DOUBTFUL, WHY, False)
    assert verdicts.decide("http://a.test/item/2", SHELL) == plan
