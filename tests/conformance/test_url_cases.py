"""URLs as the Web Platform Tests parse them."""

from __future__ import annotations

import re
from typing import Any

from searchcrawl import urls
from searchcrawl.exceptions import InvalidUrl
from tests.conformance.corpus import cases, tally


def expected(case: dict[str, Any]) -> str | None:
    """What ``resolve`` is to answer: the case's href without fragment and user info; other schemes fail."""
    if case.get("failure") or case["protocol"] not in {"http:", "https:"}:
        return None
    return re.sub(r"^(https?://)[^/?#]*@", r"\1", case["href"].partition("#")[0])


def resolved(case: dict[str, Any]) -> str | None:
    try:
        return urls.resolve(case["input"], case["base"])
    except InvalidUrl:
        return None


def test_wpt_cases_when_resolved_then_all_agree() -> None:
    found = cases("url_wpt_http.json")

    agreement = tally(
        "URLs, WPT", [((case["input"], case["base"]), resolved(case) == expected(case)) for case in found], {}
    )

    assert agreement == (481, 481)
