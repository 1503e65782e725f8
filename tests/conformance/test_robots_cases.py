"""robots.txt as the tests of Google's parser and of crawler-commons read it (C5)."""

from __future__ import annotations

import base64
from typing import Final

from searchcrawl.robots.parser import RobotsFile
from tests.conformance.corpus import Divergence, cases, tally

_NO_IDENTITY: Final = Divergence(
    "not applicable", "a URL that is not escaped: none is ever asked for, by us or by Google"
)
#: By line of Google's test.
GOOGLE: Final = {
    419: _NO_IDENTITY,
    430: _NO_IDENTITY,
    441: Divergence("RFC", "9309 §2.2.2 decodes escapes of unreserved characters on both sides before comparing"),
    247: Divergence("policy", "a user agent with a blank is looked for whole (C5)"),
}
_SEVERAL: Final = Divergence("RFC", "names separated by blanks only: the token ends at the first blank (9309 §2.2.1)")
_TYPO: Final = Divergence("policy", "a typo that no other parser forgives")
#: By line of crawler-commons' test, of the cases with an agent of one token.
COMMONS: Final = {
    581: _SEVERAL,
    805: _SEVERAL,
    651: Divergence("RFC", "HTML around the lines is no robots.txt"),
    1035: _TYPO,
    1042: _TYPO,
    929: Divergence("policy", "a great crawl delay forbids nothing: it is capped by robots.max_crawl_delay_seconds"),
}


def test_google_cases_when_decided_then_only_the_listed_differ() -> None:
    found = cases("robots_google.json")
    agreeing = {
        specific: [
            (
                case["line"],
                RobotsFile.parse(case["robots_txt"].encode(), case["user_agent"]).decide(case["url"]).allowed
                is case["allowed"],
            )
            for case in found
            if case["google_specific"] is specific
        ]
        for specific in (False, True)
    }
    listed = {
        specific: {line: GOOGLE[line] for line, _ in verdicts if line in GOOGLE}
        for specific, verdicts in agreeing.items()
    }

    general = tally("robots, Google, of the RFC", agreeing[False], listed[False])
    specific = tally("robots, Google, its own", agreeing[True], listed[True])

    assert general == (69, 70)
    assert specific == (72, 73)


def test_crawler_commons_cases_when_decided_then_only_the_listed_differ() -> None:
    found = [case for case in cases("robots_crawler_commons.json") if case["single_token"]]
    verdicts = []
    for case in found:
        file = RobotsFile.parse(base64.b64decode(case["robots_txt_b64"]), case["user_agents"][0])
        verdicts.append((case["line"], file.decide(case["url"]).allowed is case["allowed"]))

    agreement = tally("robots, crawler-commons", verdicts, COMMONS)

    assert agreement == (339, 348)
    assert agreement.percent >= 97
