"""Whether a page needs a browser, by its plain answer and by its like (C10, C11)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest

from searchcrawl.rules import rendering
from searchcrawl.rules.rendering import Found, Look, Need, RenderRecord, Shell

URL = "http://a.test/item/7?page=3"


@pytest.mark.parametrize(
    ("shell", "need", "reason"),
    [
        (Shell(0), Need.NONE, "it has no scripts"),
        (Shell(20, 0, "#root", notice=True), Need.NONE, "it has no scripts"),
        (Shell(20, 1, "#root"), Need.CERTAIN, "an empty element #root, 20 bytes of text and 1 script"),
        (Shell(249, 2, None, notice=True), Need.CERTAIN, "a noscript notice, 249 bytes of text and 2 scripts"),
        (Shell(249, 2), Need.DOUBTFUL, "249 bytes of text and 2 scripts"),
        (Shell(250, 2), Need.NONE, "it has text without its scripts"),
        (Shell(1499, 1, "#app"), Need.DOUBTFUL, "an empty element #app, 1499 bytes of text and 1 script"),
        (Shell(1500, 1, "#app", notice=True), Need.NONE, "it has text without its scripts"),
    ],
)
def test_c10_page_when_it_is_judged_then_its_need_and_the_reason_follow_from_its_shell(
    shell: Shell, need: Need, reason: str
) -> None:
    assert rendering.judge(shell) == (need, reason)


@pytest.mark.parametrize(
    ("before", "after", "gained"),
    [
        (0, 0, False),
        (0, 1, True),
        (7, 76, False),
        (7, 77, True),
        (20, 219, False),
        (20, 220, True),
        (100, 299, False),
        (100, 300, True),
        (1000, 1499, False),
        (1000, 1500, True),
        (500, 100, False),
    ],
)
def test_c10_text_when_it_grew_then_rendering_was_worth_it_only_for_much_of_it_or_where_there_was_next_to_none(
    before: int, after: int, gained: bool
) -> None:
    assert rendering.has_gained(before, after) is gained


def test_c10_urls_when_they_differ_in_numbers_and_values_alone_then_they_are_one_set_for_each_need() -> None:
    key = rendering.build_key(URL, Need.DOUBTFUL)

    assert key == rendering.build_key("http://a.test/item/812?page=4", Need.DOUBTFUL)
    assert key != rendering.build_key(URL, Need.NONE)
    assert key != rendering.build_key("http://a.test/items/7?page=3", Need.DOUBTFUL)
    assert rendering.build_key("http://a.test/a", Need.NONE) != rendering.build_key("http://a.test/b", Need.NONE)


def test_c10_set_when_pages_gain_no_more_then_it_is_given_up_and_taken_up_again_when_they_do() -> None:
    rendered = gained = 0
    for _ in range(100):
        rendered, gained = rendering.count(rendered, gained, gain=True)
    at_first = rendering.is_worth_it(rendered, gained)
    visits = 0
    while rendering.is_worth_it(rendered, gained):
        rendered, gained = rendering.count(rendered, gained, gain=False)
        visits += 1
    again = 0
    while not rendering.is_worth_it(rendered, gained):
        rendered, gained = rendering.count(rendered, gained, gain=True)
        again += 1

    assert at_first
    assert 30 < visits < 150
    assert again < 30
    assert not rendering.is_worth_it(0, 0)


def test_c10_sample_when_it_is_drawn_then_it_is_a_fiftieth_by_the_url_and_the_run_alone() -> None:
    urls = [f"http://a.test/{number}" for number in range(10_000)]
    first = {url for url in urls if rendering.is_sampled(url, 1)}

    assert first == {url for url in urls if rendering.is_sampled(url, 1)}
    assert 150 < len(first) < 250
    assert len(first & {url for url in urls if rendering.is_sampled(url, 2)}) < 20


SITE = "http://www.acme.test"


class End(NamedTuple):
    url: str
    kind: str
    code: int = 200
    type: str = ""
    is_empty: bool = False


def ended(path: str, kind: str, code: int = 200, media_type: str = "") -> End:
    return End(f"{SITE}{path}", kind, code, media_type)


SCRIPT = ended("/app.js?v=1", "script", media_type="application/javascript")
DATA = ended("/api/1?page=2#top", "data", media_type="application/hal+json")
FRAME = ended("/frame", "frame", media_type="text/html")
STYLE = ended("/app.css", "style", media_type="text/css")
WHOLE = Found(2000, 10, (SCRIPT, DATA, FRAME, STYLE))


def look(known: RenderRecord | None, *parts: End, text: int = 100, run: int = 2, gave_up: str | None = None) -> Look:
    """A page with these parts, compared as rows keep its record."""
    kept = rendering.parse(None if known is None else rendering.dump(known))
    return rendering.look(kept, Found(text, 90, parts, gave_up), run=run)


KNOWN = rendering.look(None, WHOLE, run=1).taken


def test_page_when_its_parts_end_well_then_it_is_whole_at_any_length() -> None:
    found = look(KNOWN, *WHOLE.parts, text=1000)

    assert (found.missing, found.is_less, found.runs, found.lacks) == ((), False, 0, None)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (SCRIPT._replace(code=503), "/app.js failed with 503"),
        (SCRIPT._replace(code=902), "/app.js failed with 902"),
        (SCRIPT._replace(code=204, type=""), "/app.js has no body (204)"),
        (SCRIPT._replace(type="text/html"), "/app.js is text/html, and no script"),
        (ended("/app.2.js", "script", 404), "/app.2.js failed with 404"),
        (DATA._replace(code=403), "/api/1 failed with 403"),
        (DATA._replace(code=204, type=""), "/api/1 has no body (204)"),
        (DATA._replace(type="text/html"), "/api/1 is text/html now, and was json"),
        (DATA._replace(is_empty=True), "/api/1 has no body (200)"),
        (DATA._replace(code=302, type=""), "/api/1 redirects now (302), and was json"),
        (DATA._replace(code=0, type=""), "/api/1 did not reach the page: its script gave it up, or CORS refused it"),
        (SCRIPT._replace(is_empty=True), "/app.js has no body (200)"),
        (FRAME._replace(code=404), "/frame failed with 404"),
        (FRAME._replace(type="application/json"), "/frame is application/json now, and was html"),
    ],
)
def test_page_when_a_part_fails_that_did_not_then_it_lacks_it_and_says_so_without_its_query(
    part: End, words: str
) -> None:
    found = look(KNOWN, part, text=1000)

    assert (found.is_less, found.lacks) == (True, f"{SITE}{words}")
    assert not look(KNOWN, part, text=2000).is_less


@pytest.mark.parametrize(
    "part",
    [
        STYLE._replace(code=404),
        DATA._replace(code=304, type=""),
        DATA._replace(type="text/plain"),
        ended("/beacon", "data", 204),
        ended("/other", "data", media_type="text/html"),
        ended("/other", "data", 0),
        ended("/other", "data", 302),
        ended("/empty.js", "script", media_type="text/javascript")._replace(is_empty=True),
    ],
)
def test_page_when_a_part_is_of_no_weight_or_is_not_known_then_it_lacks_nothing(part: End) -> None:
    assert look(KNOWN, part, text=1000).missing == ()


def test_page_when_a_part_failed_all_along_then_only_more_than_that_makes_it_less() -> None:
    stats = ended("/stats?t=1", "data", 404)
    known = rendering.look(None, WHOLE._replace(parts=(SCRIPT, stats)), run=1).taken

    same, more = (look(known, *parts, text=1000) for parts in [(stats,), (stats, SCRIPT._replace(code=503))])

    assert (same.is_less, same.lacks) == (False, f"{SITE}/stats failed with 404")
    assert (more.is_less, more.lacks) == (True, f"{SITE}/app.js failed with 503")
    assert look(known, stats._replace(url=f"{SITE}/stats?t=2"), text=1000).is_less is False


def test_page_when_what_never_came_has_another_url_each_time_then_its_runs_are_counted() -> None:
    def beacon(number: int) -> End:
        return ended(f"/beacon/{number}", "data", 404)

    known = KNOWN
    for run in range(1, 4):
        found = rendering.look(known, WHOLE._replace(text=1000, parts=(SCRIPT, DATA, beacon(run))), run=run)
        known = found.kept

    later = rendering.look(found.taken, WHOLE._replace(text=900, parts=(SCRIPT, DATA, beacon(9))), run=4)

    assert (found.runs, found.is_as_it_is, later.missing) == (3, True, ())


def test_page_when_it_shows_its_frame_alone_then_it_is_less_unless_its_text_was_sent_plainly() -> None:
    assert look(KNOWN, *WHOLE.parts).is_less
    assert not look(replace(KNOWN, plain=1900), *WHOLE.parts).is_less


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("no answer of http://a.test/1 within 5 s", "no answer of http://a.test/2 within 5 s"),
        ("render.actions[0]: click a: Timeout 5000ms", "render.actions[0]: click a: Timeout 5001ms"),
    ],
)
def test_runs_when_a_page_is_given_up_for_the_same_reason_then_they_are_counted(first: str, second: str) -> None:
    before = look(KNOWN, gave_up=first, run=2).kept

    assert look(before, gave_up=second, run=3).runs == 2
    assert look(before, gave_up=second, run=2).runs == 1
    assert look(before, gave_up="no element of render.wait_for (a) within 5 s", run=3).runs == 1


def test_runs_when_there_were_three_then_the_page_is_as_it_is_and_lacks_nothing_later() -> None:
    known, late = KNOWN, SCRIPT._replace(code=404)
    for run in range(2, 4):
        known = look(known, late, run=run).kept
    third = look(known, late, run=4)

    after = look(third.taken, late, text=50, run=5)

    assert (third.is_as_it_is, third.lacks) == (True, None)
    assert (after.missing, after.is_less) == ((), False)
    assert look(third.taken, late, text=50, gave_up="no answer of x", run=5).is_less
    assert look(look(third.taken, SCRIPT, text=900, run=5).taken, late, run=6).is_less


def test_record_when_a_page_asks_for_very_much_then_it_takes_little() -> None:
    parts = [ended(f"/part/{number}?{'x' * 500}", "data", media_type="application/json") for number in range(200)]
    refused = {f"{number} {'r' * 2000}": number for number in range(500)}

    record = rendering.look(None, Found(10, 10, parts, None, refused), run=1).taken

    assert len(rendering.dump(record)) < 2600
    assert [count for _, count in record.refused] == [499, 498, 497, 496, 495]
    assert rendering.parse(rendering.dump(record)) == record
