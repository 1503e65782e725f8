"""L9, R17: what a host answers to any path, or a login page, is not taken for content (965)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_stories import Run, Story, Tell, page, pages, run, source
from tests.site.behaviour import is_probe
from tests.site.client import SiteProcess, configure

HOST: Final = "wall.acme.test"
NAMES: Final = ("valve", "gauge", "pump", "hose", "spring")
TEXTS: Final = {name: page(f"The {name}", text=f"All that there is to say about the {name}. " * 3) for name in NAMES}
LOGIN: Final = "<html><title>Sign in</title><body><form method=post>Please sign in <input name=u><input type=password name=p></form>"
REPAIR: Final = (
    "<html><title>ACME</title><body><h1>We are repairing our site</h1><p>Ask again in an hour, at {time}.</p>"
)
NOTHING: Final = page("ACME", "/", text="Sorry, there is no such page. Ask somebody who knows the way about the house.")


def at(name: str) -> str:
    return f"{HOST}/{name}.html"


def fill(project: CrawlProject, **fetch: int) -> SiteProcess:
    """Sets the pages of the host, and has the project crawl them."""
    project.edit(**source(project.site, HOST, **fetch))
    pages(project.site, HOST, **TEXTS)
    return project.site


def flipped(site: SiteProcess, body: str) -> None:
    """Every URL of the host answers 200 with one page, also those that nobody knows."""
    site.set_behaviour(HOST, status=200, body=body, headers={"Content-Type": "text/html"})


def warnings(one: Run) -> list[str]:
    return [warning["code"] for warning in one.ended.status["warnings"]]


def probes(one: Run) -> list[str]:
    return [entry["path"] for entry in one.log if is_probe(entry["path"])]


def _flips(body: str) -> Story:
    def story(project: CrawlProject) -> list[Run]:
        site = fill(project)
        before = run(project)
        flipped(site, body)
        during = run(project)
        site.clear_behaviours()
        return [before, during, run(project)]

    return story


def _redirects(project: CrawlProject) -> list[Run]:
    """All pages lead to a login page, for a while."""
    site = fill(project)
    site.set_page(HOST, "/sso/login", LOGIN)
    before = run(project)
    site.set_behaviour(HOST, status=302, headers={"Location": "/sso/login"})
    site.set_behaviour(HOST, path="/sso/login", headers={"X-Is": "real"})
    return [before, run(project)]


def _lenient(project: CrawlProject) -> list[Run]:
    """A site that never says 404: its home is what it answers, and some links of it are dead."""
    site = project.site
    project.edit(**source(site, HOST))
    home = page("ACME", *(f"/{name}.html" for name in (*NAMES, "dead", "gone")), text="Valves and gauges since 1871")
    site.set_behaviour(HOST, status=200, body=home, headers={"Content-Type": "text/html"})
    for name, body in TEXTS.items():
        site.set_page(HOST, f"/{name}.html", body)
        site.set_behaviour(HOST, path=f"/{name}.html")
    first = run(project)
    site.set_behaviour(HOST, status=200, body=home.replace("1871", "that year"), headers={"Content-Type": "text/html"})
    return [first, run(project)]


def _soft(project: CrawlProject) -> list[Run]:
    """A site whose error page comes with 200, and that has pages like it."""
    site = fill(project)
    near = NOTHING.replace("Ask somebody", "Ask the porter, or somebody").replace("ACME", "The house")
    site.set_page(HOST, "/", page("start", *(f"/{name}.html" for name in (*NAMES, "dead", "near"))))
    site.set_behaviour(HOST, status=200, body=NOTHING, headers={"Content-Type": "text/html"})
    for name, body in {**TEXTS, "near": near}.items():
        site.set_page(HOST, f"/{name}.html", body)
        site.set_behaviour(HOST, path=f"/{name}.html")
    site.set_behaviour(HOST, path="/")
    return [run(project)]


def _robots(project: CrawlProject) -> list[Run]:
    site = fill(project)
    allowed = "".join(f"Allow: /{name}.html\n" for name in NAMES)
    site.set_page(HOST, "/robots.txt", f"User-agent: *\nDisallow: /\nAllow: /$\n{allowed}", content_type="text/plain")
    return [run(project)]


def _scope(project: CrawlProject) -> list[Run]:
    site = project.site
    urls = [site.url(HOST), *(site.url(HOST, f"/{name}.html") for name in NAMES)]
    project.edit(start={"urls": urls[:1]}, scope={"include_hosts": None, "include_urls": urls}, fetch={"retries": 0})
    pages(site, HOST, **TEXTS)
    return [run(project)]


def _midway(project: CrawlProject) -> list[Run]:
    """The host says 404 when it is first asked, and is closed for repairs behind its first page."""
    site = fill(project, host_concurrency=1, concurrency=1)
    before = run(project)
    site.set_page(HOST, f"/{NAMES[0]}.html", page("The valve", text="There is something new to say about the valve."))
    for path in ("/robots.txt", "/sitemap.xml", "/", f"/{NAMES[0]}.html"):
        site.set_behaviour(HOST, path=path)
    site.set_behaviour(HOST, prefix="/", status=404, times=1)
    flipped(site, REPAIR)
    return [before, run(project)]


#: Says nothing that other pages do not say, and is as long as they are.
PLAIN: Final = "The works of the town are near the river, and many people go there by boat. {nonce} " * 10


def own_text(name: str) -> str:
    """A page that no other one is like."""
    digits = hashlib.sha256(name.encode()).hexdigest()
    words = " ".join(
        f"{name}{''.join(chr(ord('a') + int(digit, 16)) for digit in digits[at : at + 6])}" for at in range(50)
    )
    return page(f"All about the {name}", text=words)


def fill_with_own(project: CrawlProject, *dead: str, names: Sequence[str] = NAMES, **tables: Any) -> SiteProcess:
    """Sets pages with texts of their own, and links to paths that the host does not have behind these."""
    site = project.site
    project.edit(**{**source(site, HOST, concurrency=1), **tables})
    site.set_page(HOST, "/", page("start", *(f"/{name}.html" for name in (*names, *dead)), text=own_text("start")))
    site.set_pages(HOST, {f"/{name}.html": own_text(name) for name in names})
    return site


def _own(project: CrawlProject) -> list[Run]:
    site = fill_with_own(project)
    before = run(project)
    site.set_page(HOST, f"/{NAMES[0]}.html", own_text("another valve"))
    return [before, run(project)]


def _few(project: CrawlProject) -> list[Run]:
    """A host of three pages, one of which is what it answers to any path."""
    site = fill_with_own(project, "dead", names=NAMES[:1])
    site.set_behaviour(HOST, missing=True, status=200, body=NOTHING, headers={"Content-Type": "text/html"})
    return [run(project)]


def _unmarked(project: CrawlProject, **tables: Any) -> list[Run]:
    """A site whose answer to any path says nothing of it, so that the first one is taken before the second one comes."""
    site = fill_with_own(project, "ferry", "dead", "gone", "lost", **tables)
    body = page("ACME", text=PLAIN)
    # It is like the answer, but has a title: it is taken back as well, and is content when it is visited again.
    site.set_page(HOST, "/ferry.html", page("The boats of the town", text=PLAIN.replace("{nonce}", "a0b1c2d3" * 4)))
    site.set_behaviour(HOST, missing=True, status=200, body=body, headers={"Content-Type": "text/html"})
    return [run(project)]


def _sent(project: CrawlProject) -> list[Run]:
    """The same where each page is sent as soon as it is stored."""
    configure(project.folder, cache={"threshold_mb": 0.0001})
    return _unmarked(project)


def _by_members(project: CrawlProject) -> list[Run]:
    return _unmarked(project, fetch={"processes": 3, **source(project.site, HOST)["fetch"]})


def _turns_unmarked(project: CrawlProject) -> list[Run]:
    site = fill_with_own(project)
    before = run(project)
    flipped(site, page("ACME", text=PLAIN))
    return [before, run(project)]


STORIES: Final = {
    "own": _own,
    "few": _few,
    "unmarked": _unmarked,
    "sent": _sent,
    "by members": _by_members,
    "turns unmarked": _turns_unmarked,
    "login": _flips(LOGIN),
    "repair": _flips(REPAIR),
    "redirects": _redirects,
    "lenient": _lenient,
    "soft": _soft,
    "robots": _robots,
    "scope": _scope,
    "midway": _midway,
}


@pytest.mark.parametrize("story", ["login", "repair"])
def test_site_when_it_answers_one_page_for_every_url_then_the_index_stays_and_status_says_so(
    tell: Tell, story: str
) -> None:
    before, during, after = tell(story)

    everything = {f"{HOST}/", *map(at, NAMES)}
    assert before.in_index == set(before.versions) == everything
    assert during.codes == dict.fromkeys(everything, 965)
    assert during.versions == before.versions == after.versions
    assert during.in_index == everything
    assert warnings(during) == ["no_start", "sentinel"]
    assert during.ended.exit_code == 8
    assert (warnings(after), set(after.codes.values())) == ([], {200})


def test_pages_when_all_lead_to_a_login_page_then_the_index_stays(tell: Tell) -> None:
    before, during = tell("redirects")

    assert during.versions == before.versions
    assert set(during.codes.values()) == {965}
    assert "sentinel" in warnings(during)


def test_site_when_it_never_says_404_then_its_home_and_its_own_pages_are_content(tell: Tell) -> None:
    first, second = tell("lenient")

    assert set(first.versions) == {f"{HOST}/", *map(at, NAMES)}
    assert {url for url, code in first.codes.items() if code == 965} == {at("dead"), at("gone")}
    # The home changed, and the new one is taken.
    assert second.versions[f"{HOST}/"] > first.versions[f"{HOST}/"]
    assert second.versions.keys() == first.versions.keys()


def test_error_page_when_it_comes_with_200_then_it_alone_is_left_out(tell: Tell) -> None:
    (only,) = tell("soft")

    assert {url for url, code in only.codes.items() if code == 965} == {at("dead")}
    assert set(only.versions) == {f"{HOST}/", *map(at, (*NAMES, "near"))}
    assert only.ended.exit_code == 0
    assert "searchcrawl urls demo --code 965" in only.ended.status["warnings"][0]["message"]


def test_host_when_it_says_404_then_is_asked_once_and_only_with_new_bytes(tell: Tell) -> None:
    before, during, after = tell("repair")

    # Its pages are alike.
    assert len(probes(before)) == 1
    assert len(probes(during)) == 2
    # All is as the validators say.
    assert probes(after) == []


def test_host_when_it_turns_during_a_run_then_no_page_is_lost(tell: Tell) -> None:
    before, during = tell("midway")

    changed = {url for url, version in during.versions.items() if version > before.versions[url]}
    # The second one was taken before the third came, and is put back.
    assert changed == {at(NAMES[0])}
    assert [during.codes[at(name)] for name in NAMES] == [200, 965, 965, 965, 965]
    assert during.versions.keys() == before.versions.keys()
    assert len(probes(during)) == 3


def test_host_when_its_rules_or_ours_forbid_such_a_path_then_is_not_asked(tell: Tell) -> None:
    (robots,), (scope,) = tell("robots"), tell("scope")

    assert (probes(robots), probes(scope)) == ([], [])
    assert set(robots.codes.values()) == set(scope.codes.values()) == {200}


def test_host_when_its_pages_have_texts_of_their_own_then_is_not_asked(tell: Tell) -> None:
    before, after = tell("own")

    assert (probes(before), probes(after)) == ([], [])
    assert after.versions[at(NAMES[0])] > before.versions[at(NAMES[0])]


def test_host_when_it_has_few_pages_then_is_not_asked(tell: Tell) -> None:
    (only,) = tell("few")

    assert probes(only) == []
    assert set(only.codes.values()) == {200}


@pytest.mark.parametrize("story", ["unmarked", "sent", "by members"])
def test_answer_to_any_path_when_the_first_ones_were_taken_then_they_are_taken_back(tell: Tell, story: str) -> None:
    (only,) = tell(story)

    dead = {at(name) for name in ("dead", "gone", "lost")}
    assert {url for url, code in only.codes.items() if code == 965} == dead
    assert set(only.versions) == {f"{HOST}/", *map(at, (*NAMES, "ferry"))}
    assert (only.ended.exit_code, warnings(only)) == (0, ["sentinel"])
    assert only.counts["new"] - only.counts["deleted"] == len(only.versions)


def test_site_when_its_one_answer_says_nothing_of_it_then_known_documents_are_put_back(tell: Tell) -> None:
    before, during = tell("turns unmarked")

    assert during.codes == dict.fromkeys(before.versions, 965)
    assert during.versions == before.versions
    assert during.counts["changed"] == 0
    assert warnings(during) == ["no_start", "sentinel"]
