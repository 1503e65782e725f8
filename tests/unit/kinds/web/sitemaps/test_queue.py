from __future__ import annotations

from typing import Final

import pytest

from searchcrawl.kinds.web.sitemaps import queue as queue_module
from searchcrawl.kinds.web.sitemaps.queue import SitemapQueue, WantedSitemap, build_child
from searchcrawl.rules.boundary import Boundary

BOUNDARY = Boundary(include_hosts=["a.test"])


def wanted(name: str = "1", **values: object) -> WantedSitemap:
    return WantedSitemap(url=f"http://a.test/{name}.xml", **values)  # type: ignore[arg-type]  # the values of a test


def limit(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    for name, number in {"SURE_OF_ORIGIN": 0, **limits}.items():
        monkeypatch.setattr(queue_module, name, number)


def test_accept_when_a_sitemap_was_here_before_then_it_is_read_once() -> None:
    queue = SitemapQueue(BOUNDARY)

    assert [queue.accept(one) for one in (wanted("1"), wanted("2"), wanted("1", level=2))] == [True, True, False]


def test_accept_when_below_too_many_indexes_then_it_is_not_read(caplog: pytest.LogCaptureFixture) -> None:
    queue = SitemapQueue(BOUNDARY)

    assert [queue.accept(wanted(str(level), level=level)) for level in range(5)] == [True, True, True, True, False]
    assert "http://a.test/4.xml is not read" in caplog.text


def test_accept_when_it_was_named_too_deep_before_then_its_own_host_still_has_it_read() -> None:
    queue = SitemapQueue(BOUNDARY)

    assert [queue.accept(wanted(level=level)) for level in (4, 0)] == [False, True]
    assert queue.find(wanted().url).level == 0


def test_accept_when_there_are_too_many_then_the_rest_is_left_out_with_one_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, MAX_SITEMAPS=2)
    queue = SitemapQueue(BOUNDARY)

    assert [queue.accept(wanted(str(number))) for number in range(5)] == [True, True, False, False, False]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("limits", [{"MAX_OF_ORIGIN": 3}, {"MAX_SITEMAPS": 3, "SURE_OF_ORIGIN": 2}])
def test_accept_when_one_origin_leads_to_too_many_then_those_of_another_are_read(
    limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, **limits)
    queue = SitemapQueue(BOUNDARY)

    many = [queue.accept(wanted(str(number), named_by="http://evil.test")) for number in range(5)]
    few = [queue.accept(wanted(str(number), named_by="http://a.test")) for number in (4, 5)]

    assert (sum(many), few) == (3, [True, True])


FOREIGN: Final = wanted(level=3, origins=frozenset({"http://evil.test"}), named_by="http://evil.test")
OWN: Final = wanted(in_robots_txt=True, origins=frozenset({"http://a.test"}), named_by="http://a.test")
BOTH: Final = wanted(in_robots_txt=True, origins=OWN.origins | FOREIGN.origins, named_by="http://a.test")


def test_sitemap_when_its_own_origin_names_it_before_it_is_read_then_it_is_read_once_with_all_rights() -> None:
    queue = SitemapQueue(BOUNDARY)

    assert [queue.accept(one) for one in (FOREIGN, OWN, FOREIGN)] == [True, False, False]
    assert queue.begin(OWN.url) == BOTH
    assert not queue.end(OWN.url)


def test_sitemap_when_its_own_origin_names_it_while_it_is_read_then_it_is_read_again_once() -> None:
    queue = SitemapQueue(BOUNDARY)
    queue.accept(FOREIGN)
    queue.begin(OWN.url)

    named = [queue.accept(OWN), queue.accept(OWN)]

    assert (named, queue.end(OWN.url), queue.begin(OWN.url), queue.end(OWN.url)) == ([False, False], True, BOTH, False)


def test_sitemap_when_its_own_origin_names_it_after_it_was_read_then_it_is_read_again_once() -> None:
    queue = SitemapQueue(BOUNDARY)
    queue.accept(FOREIGN)
    queue.begin(OWN.url)
    queue.end(OWN.url)

    assert [queue.accept(one) for one in (FOREIGN, OWN, OWN)] == [False, True, False]


def test_accept_when_outside_the_boundary_then_it_is_not_read_and_the_rule_is_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = SitemapQueue(BOUNDARY)

    assert not queue.accept(WantedSitemap(url="http://b.test/sitemap.xml"))
    assert "scope.include_hosts" in caplog.text


def test_child_when_on_the_origin_of_its_index_then_it_inherits_what_that_may() -> None:
    index = wanted("index", in_robots_txt=True, origins=frozenset({"http://a.test", "http://named.test"}))

    child = build_child(index, "http://a.test/child.xml")

    assert (child.level, child.in_robots_txt, child.origins) == (1, True, index.origins)


def test_child_when_on_another_origin_then_robots_txt_is_asked_and_it_does_not_speak_for_itself() -> None:
    index = wanted("index", in_robots_txt=True, origins=frozenset({"http://a.test"}))

    child = build_child(index, "http://b.test/child.xml")

    assert (child.in_robots_txt, child.origins) == (False, {"http://a.test"})
