"""Whether a page needs a browser, by its plain answer and by its like (C10, C11)."""

from __future__ import annotations

import pytest

from searchcrawl.rules import rendering
from searchcrawl.rules.rendering import Need, Shell

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
