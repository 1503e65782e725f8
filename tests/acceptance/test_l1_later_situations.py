"""L1: what ``explain`` says of URLs that were in the index, or that need more than one run, against what was made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_explain import FILE, HOST, INDEXED, Asking, Told, ask, check, take_advice
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_quarantine import decide
from tests.acceptance.support_stories import page
from tests.site.client import SiteProcess
from tests.stored_rows import execute

pytestmark = pytest.mark.extended

SOFT: Final = "soft.acme.test"
AWAY: Final = "elsewhere.test"
TRAPS: Final = "traps.acme.test"
WORDS: Final = "barometer " * 30
PLAIN: Final = ("a", "b", "orphan", "forgot", "aside", "locked", "d1/x", "d2/x", "off", "out", "hop", "old", "noindex")
NAMING: Final = ("n-outside", "n-old", "n-hop", "n-noindex", "n-missing", "n-header", "one", "two")


def naming(target: str) -> str:
    return page(target, text=target + WORDS, head=f'<link rel="canonical" href="{target}">')


def set_start(site: SiteProcess, *, without: str = "") -> None:
    """The page that links to all others."""
    names = [name for name in (*PLAIN, *NAMING) if name != without]
    # A host with fewer pages is not asked what it answers to any path.
    links = [
        *(f"/{name}.html" for name in names),
        *(site.url(SOFT, f"/{name}.html") for name in ("any", "w", "x", "y")),
    ]
    site.set_page(HOST, "/", page("start", *links, text=WORDS))


def build(site: SiteProcess) -> None:
    naming_pages = {
        "n-outside": naming(site.url(AWAY, "/x.html")),
        "n-old": naming("/old.html"),
        "n-hop": naming("/hop.html"),
        "n-noindex": naming("/noindex.html"),
        "n-missing": naming("/missing.html"),
        "one": naming("/two.html"),
        "two": naming("/one.html"),
    }
    bodies = {f"/{name}.html": page(name, text=name + WORDS) for name in PLAIN}
    bodies |= {f"/{name}.html": body for name, body in naming_pages.items()}
    bodies["/n-header.html"] = page("header", text="header" + WORDS)
    bodies["/noindex.html"] = page("no", text="no" + WORDS, head='<meta name="robots" content="noindex">')
    site.set_pages(HOST, {**bodies, "/landing.html": page("l", text="l" + WORDS)})
    set_start(site)
    site.set_page(HOST, "/n-header.html", headers={"Link": f'<{site.url(AWAY, "/y.html")}>; rel="canonical"'})
    for name, status, target in (
        ("off", 302, "/private/x.html"),
        ("out", 301, site.url(AWAY, "/new.html")),
        ("hop", 302, "/landing.html"),
        ("old", 301, "/a.html"),
    ):
        site.set_page(HOST, f"/{name}.html", "", status=status, headers={"Location": target})
    site.set_page(HOST, "/private/x.html", page("x", text="private" + WORDS))
    site.set_page(AWAY, "/new.html", page("new", text="new" + WORDS))
    site.set_behaviour(HOST, path="/locked.html", status=401)
    site.set_behaviour(HOST, path="/aside.html", status=503)
    site.set_behaviour(SOFT, status=200, body=page("soft", text="Nobody knows this page."))


@pytest.fixture(scope="module")
def project(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> CrawlProject:
    build(site)
    www = site.url(HOST, "")
    return new_project(
        tmp_path_factory.mktemp("later"),
        site,
        start={"urls": [f"{www}/"], "sitemaps": "off"},
        scope={"include_hosts": [HOST, SOFT], "exclude_urls": ["*/private/*"]},
        fetch={"retries": 0},
        lifecycle={"orphans": "delete", "max_delete_documents": 0},
        login={"type": "basic", "url": f"{www}/", "username": "u", "password": "p"},
        display=[{"from": f"{www}/d{n}/", "to": "http://shown.test/d/"} for n in (1, 2)],
    )


GONE_404: Final = "404 Not Found"
NAMED_BY_NOTHING: Final = "no page, sitemap or start list names it any more"
#: By path or URL, after the first run; ``{www}`` is the origin of the site.
FIRST: Final = {
    "/a.html": Told(*INDEXED),
    "{away}/new.html": Told(
        "not in the index: 955, outside the boundary",
        "no include matches",
        "scope.include_hosts",
        ("add", "scope.include_hosts", AWAY),
    ),
    "/out.html": Told(
        "not in the index: 954, it moved for good to another URL: {away}/new.html",
        "no include matches",
        "scope.include_hosts",
        ("add", "scope.include_hosts", AWAY),
    ),
    "/off.html": Told(
        "not in the index: 955, outside the boundary: {www}/private/x.html",
        "*/private/*",
        "scope.exclude_urls",
        ("remove", "scope.exclude_urls", "*/private/*"),
    ),
    "/d1/x.html": Told(*INDEXED),
    "/d2/x.html": Told(
        "not in the index: 956, another page is shown with the same URL: {www}/d1/x.html",
        "shown with the URL of {www}/d1/x.html",
        "display[1]",
        ("remove", "display[1]", None),
        ("display", "shown with the URL of {www}/d1/x.html"),
    ),
    "/forgot.html": Told("not in the index: 955, outside the boundary", "{www}/forgot.html", "forget"),
    "/aside.html": Told(
        "not in the index: 966, set aside, because it stopped the crawler",
        "966, set aside, because it stopped the crawler",
        step=("visit", "not until the source file is edited: it stopped the crawler again and again"),
    ),
    "/locked.html": Told("not in the index: 959, the login failed", "959, the login failed"),
    "{soft}/any.html": Told(
        "not in the index: 965, it looks like the host's answer to any URL",
        "sentinel: what the host answers to any path",
    ),
    "/landing.html": Told(
        "not in the index by itself: its page is in the index as {www}/hop.html", "{www}/hop.html redirects to it"
    ),
    "/n-outside.html": Told(
        *INDEXED,
        step=(
            "canonical",
            "it names {away}/x.html: refused by scope.include_hosts: no include matches (sources/demo.toml); to admit it",
        ),
    ),
    "/n-header.html": Told(
        *INDEXED, step=("canonical", "its header Link names {away}/y.html: refused by scope.include_hosts: no include")
    ),
    "/n-old.html": Told(
        *INDEXED,
        step=("canonical", "it names {www}/old.html: that URL: 954, it moved for good to another URL"),
    ),
    "/n-hop.html": Told(
        *INDEXED, step=("canonical", "it names {www}/hop.html: that URL only redirects to another one")
    ),
    "/n-noindex.html": Told(
        *INDEXED,
        step=("canonical", "it names {www}/noindex.html: that URL: 952, fetched, and not to be indexed"),
    ),
    "/n-missing.html": Told(*INDEXED, step=("canonical", "it names {www}/missing.html: that URL: 404 Not Found")),
    "/one.html": Told(
        *INDEXED,
        step=("canonical", "it names {www}/two.html: canonical links lead from there back to this page"),
    ),
}  # fmt: skip


#: After the second run, whose removals wait.
IN_QUARANTINE: Final = {
    "/orphan.html": Told(
        f"in the index, and its removal waits in quarantine: {NAMED_BY_NOTHING}",
        "delete",
        "lifecycle.orphans",
        ("set", "lifecycle.orphans", "check"),
        ("found", "once on {www}/, at depth 1"),
    )
}
#: After two more, of which the first was rejected.
LATER: Final = {
    "/orphan.html": Told(
        f"not in the index: removed: {NAMED_BY_NOTHING}",
        "delete",
        "lifecycle.orphans",
        ("set", "lifecycle.orphans", "check"),
        ("removal", "removed by run 2 (orphan); searchcrawl undelete 2 takes it back"),
    ),
    "/a.html": Told(
        f"in the index, and stays: its removal was rejected: {GONE_404}",
        GONE_404,
        step=("removal", "the removal by run 3 was rejected (404): it stays until there is other evidence"),
    ),
    "/b.html": Told(
        f"in the index, and its removal waits in quarantine: {GONE_404}",
        GONE_404,
        step=("removal", "run 4 would have removed more than the limits on deleting allow (404)"),
    ),
}


def check_all(project: CrawlProject, situations: Mapping[str, Told]) -> list[dict[str, Any]]:
    hosts = {"www": HOST, "soft": SOFT, "away": AWAY, "traps": TRAPS}
    origins = {name: project.site.url(host, "") for name, host in hosts.items()}
    return [*check(project.folder, situations, **origins).values()]


def test_explain_when_pages_were_removed_or_are_about_to_be_then_it_says_so_and_its_advice_brings_them_back(
    project: CrawlProject,
) -> None:
    site, folder, www = project.site, project.folder, project.site.url(HOST, "")
    project.crawl()
    execute(folder, "UPDATE urls SET code = 966, due_ms = NULL, error = NULL WHERE url LIKE '%/aside.html'")
    project.command("forget", f"{www}/forgot.html", "--yes")
    first = check_all(project, FIRST)
    set_start(site, without="orphan")
    project.crawl()
    check_all(project, IN_QUARANTINE)
    decide(project, "approve")
    site.delete_page(HOST, "/a.html")
    project.crawl()
    decide(project, "reject")
    site.delete_page(HOST, "/b.html")
    project.crawl()
    later = check_all(project, LATER)

    # What it says would admit them does, all at once; the pages that are gone stay as they are.
    refused = [told["decided_by"] for told in (*first, *later) if told["decided_by"].get("proposal")]
    forgotten = [reason for reason in refused if reason["file"] == "forgotten.txt"]
    edits = list({json.dumps(reason["proposal"], sort_keys=True): reason for reason in refused}.values())
    take_advice(folder, [one for one in edits if one not in forgotten])
    lines = folder / "forgotten.txt"
    kept = [line for line in lines.read_text("utf-8").splitlines() if line != forgotten[0]["proposal"]["value"]]
    lines.write_text("".join(f"{line}\n" for line in kept), "utf-8")
    site.clear_behaviours()
    assert project.crawl().exit_code in {0, 9}
    paths = ("d2/x", "off", "orphan", "forgot", "aside", "locked")
    after = ask(folder, *(f"{www}/{path}.html" for path in paths), site.url(AWAY, "/new.html"))
    assert [told["url"] for told in after if not told["in_index"]] == []
    _check_without_its_file(project)


def _check_without_its_file(project: CrawlProject) -> None:
    """The file of the source is moved away: its documents stay where they are."""
    file, www = project.folder / FILE, project.site.url(HOST, "")
    file.rename(project.folder / "away.toml")
    told = [project.ask("explain", f"{www}{path}") for path in ("/one.html", "/x.html")]
    assert [each["decided_by"]["rule"] for each in told] == ["the file of the source is gone"] * 2
    assert [each["in_index"] for each in told] == [True, False]
    assert told[0]["verdict"].endswith(f"as {FILE} is gone: put it back, or searchcrawl delete demo")
    (project.folder / "away.toml").rename(file)


def test_explain_when_a_run_delivers_nothing_or_is_full_then_the_key_is_named_and_its_edit_admits(
    project: CrawlProject, tmp_path: Path
) -> None:
    site = project.site
    www = site.url(HOST, "")
    limited = new_project(
        tmp_path,
        site,
        start={"urls": [f"{www}/"], "sitemaps": "off"},
        scope={"include_hosts": [HOST], "max_urls": 3},
        fetch={"retries": 0},
        test=True,
    )
    limited.crawl()
    tried = {
        "/orphan.html": Told(
            "not in the index: 955, outside the boundary", "3", "scope.max_urls", ("raise", "scope.max_urls", 3)
        ),
        "/": Told(
            "not yet in the index: fetched, and nothing is delivered because of test: true",
            "true",
            "test",
            ("set", "test", False),
        ),
    }

    told = check_all(limited, tried)

    with closing(Asking(tmp_path)) as asking:
        [examined] = asking.edited({**asking.written, "mode": "examine", "test": False}, [f"{www}/"]) or [{}]
    assert examined["verdict"].endswith("nothing is delivered because of mode: examine")
    take_advice(tmp_path, [each["decided_by"] for each in told])
    limited.crawl()
    after = ask(tmp_path, f"{www}/", f"{www}/forgot.html")
    assert [each["in_index"] for each in after] == [True, True]


_PATTERN: Final = "max_urls_per_pattern = 6 of {traps}/n/{{n}}.html"
BEYOND_LIMITS: Final = {
    "{traps}/n/8.html": Told(
        "not in the index: 961, beyond a limit that ends traps",
        _PATTERN,
        "scope.max_urls_per_pattern",
        ("raise", "scope.max_urls_per_pattern", 6),
    ),
    "{traps}/n/99.html": Told(
        "not in the index: never seen, and it would be refused (961", _PATTERN, "scope.max_urls_per_pattern"
    ),
    "{traps}/same/zz.html": Told(
        "not in the index: never seen, and it would be refused (961",
        "{traps}/same/*",
        "scope.trap_after",
        ("set", "scope.trap_after", 0),
    ),
}


def test_explain_when_a_limit_on_traps_refuses_then_it_is_named_and_its_edit_admits(
    project: CrawlProject, tmp_path: Path
) -> None:
    site = project.site
    paths = [f"/n/{number}.html" for number in range(9)]
    # Other words each, and the same ones.
    bodies = {
        path: page(path, text=" ".join(f"{letter * n}{letter}z" for n in range(1, 60)))
        for path, letter in zip(paths, "abcdefghi", strict=True)
    }
    chain = [f"/same/{first}{second}.html" for first in "abcdef" for second in "abcdef"]
    named = {"/": page("start", *bodies, chain[0], text=WORDS)}
    named |= {one: page("same", following, text=WORDS) for one, following in pairwise(chain)}
    site.set_pages(TRAPS, {**named, **bodies})
    limited = new_project(
        tmp_path,
        site,
        start={"urls": [site.url(TRAPS)], "sitemaps": "off"},
        scope={"include_hosts": [TRAPS], "max_urls_per_pattern": 6, "trap_after": 3},
        fetch={"retries": 0},
    )
    limited.crawl()
    told = check_all(limited, BEYOND_LIMITS)
    take_advice(tmp_path, [each["decided_by"] for each in told])
    limited.crawl()
    admitted, unlinked = ask(tmp_path, *(site.url(TRAPS, path) for path in ("/n/8.html", "/same/zz.html")))
    assert admitted["in_index"]
    assert unlinked["decided_by"]["rule"] == "no link to it was followed"
