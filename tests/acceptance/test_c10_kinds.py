"""Sites that need a browser in every way that sites do, beside plain pages, and applications as their tools build them (C10, C11)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

from searchcrawl.codes import Code
from searchcrawl.rules.rendering import is_sampled
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_rendering import plain
from tests.framework_builds import FRAMEWORKS, KEPT, NodeMissing, build_all, read_build
from tests.page_wall import need_browser
from tests.site.client import SiteProcess
from tests.site.expected import short

HOST: Final = "www.acme.test"
PLAIN: Final = [f"/plain/{name}" for name in ("ash", "beech", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel")]
#: A script that shows nothing: a page that has one may need it, as far as anybody can see.
MENU: Final = "<script src=/menu.js></script>"


def shell(script: str, title: str = "") -> str:
    """A page that its script fills."""
    return (
        f"<!DOCTYPE html><html><head><title>{title}</title></head><body><div id=app></div>"
        f"<script>const app = document.getElementById('app'); {script}</script></body></html>"
    )


#: Routes that a click opens, and no link leads to: each has its text by data.
ROUTES: Final = shell(
    """
    const show = async () => {
      const name = location.pathname.split('/')[2] || 'begin';
      const data = await (await fetch(`/data/${name}.json`)).json();
      document.title = data.title;
      app.innerHTML = `<p>${data.text}</p>` + data.to.map(to => `<a href="/routes/${to}">${to}</a>`).join(' ');
    };
    addEventListener('click', event => {
      event.preventDefault(); history.pushState({}, '', event.target.href); show();
    });
    show();
    """
)
#: Ten more when the end is seen, as long as there are any.
LAZY: Final = shell(
    """
    let count = 0, asked = false;
    const more = async () => {
      if (asked || count >= 30) return;
      asked = true;
      const names = await (await fetch(`/data/list-${count}.json`)).json();
      for (const name of names) app.insertAdjacentHTML('beforeend', `<p style="height: 300px">listed${count++} ${name}</p>`);
      asked = false;
    };
    addEventListener('scroll', more); more();
    """,
    "Lazy list",
)
SHADOW: Final = shell(
    """
    customElements.define('acme-card', class extends HTMLElement {
      connectedCallback() {
        const root = this.attachShadow({mode: 'open'});
        root.innerHTML = '<b>card of the shadow</b> <slot></slot> <a href="/plain/in-shadow">more</a>';
      }
    });
    app.innerHTML = '<acme-card><i>given to the card</i></acme-card>';
    """,
    "Shadow",
)
#: A layer over the page: nobody presses its button, and what is below it is in the page all the same.
CONSENT: Final = shell(
    """
    app.innerHTML = '<main><p>the article below the layer</p><a href="/plain/below-layer">next</a></main>' +
      '<div style="position: fixed; inset: 0; background: white"><p>We value biscuits</p><button>Agree</button></div>';
    document.body.style.overflow = 'hidden';
    """,
    "Consent",
)
#: Here the button brings the text.
GATE: Final = shell(
    """
    app.innerHTML = '<p>agree before you read on</p><button>Agree</button>';
    app.querySelector('button').onclick = () => { app.innerHTML = '<p>only after the button</p>'; };
    """,
    "Gate",
)
MOVED: Final = shell("location.replace('/plain/moved-here');")
FRAME: Final = shell("app.innerHTML = '<iframe src=\"/frames/inner\"></iframe>';", "Framed")
INNER: Final = "<title>inner</title><p>the words inside of the frame</p><a href=/plain/in-frame>on</a>"


@pytest.fixture
def site() -> Iterator[SiteProcess]:
    need_browser()
    with SiteProcess() as running:
        yield running


#: A text of each page that a browser has to show, and of one below it.
NEEDING: Final = {
    "/routes/": "where the routes begin",
    "/routes/first": "what the first route shows",
    "/routes/second": "what the second route shows",
    "/routes/third": "what the third route shows",
    "/lazy": "listed29 thing29",
    "/shadow": "card of the shadow given to the card",
    "/consent": "the article below the layer",
    "/gate": "agree before you read on",
    "/framed": "the words inside of the frame",
    # As for any redirect that is not for ever: the page has the text of its target.
    "/moved": "moved-here amber",
}
#: Plain pages that only what the browser shows leads to.
BEHIND: Final = ["/plain/in-shadow", "/plain/below-layer", "/plain/in-frame"]


def serve(site: SiteProcess) -> None:
    data = {
        "begin": {"title": "Routes", "text": "where the routes begin", "to": ["first", "second"]},
        "first": {"title": "First route", "text": "what the first route shows", "to": ["third"]},
        "second": {"title": "Second route", "text": "what the second route shows", "to": []},
        "third": {"title": "Third route", "text": "what the third route shows", "to": []},
    }
    lists = {f"list-{start}": [f"thing{start + n}" for n in range(10)] for start in (0, 10, 20)}
    for name, value in {**data, **lists}.items():
        site.set_page(HOST, f"/data/{name}.json", json.dumps(value), content_type="application/json")
    site.set_page(HOST, "/menu.js", "document.body.dataset.menu = 1", content_type="text/javascript")
    shells = {"/lazy": LAZY, "/shadow": SHADOW, "/consent": CONSENT, "/gate": GATE, "/moved": MOVED, "/framed": FRAME}
    shells |= {path: ROUTES for path in NEEDING if path.startswith("/routes/")}
    plains = {path: plain(path[7:], script=MENU) for path in [*PLAIN, *BEHIND, "/plain/moved-here"]}
    links = [path for path in shells if path.count("/") == 1]
    begin = plain("begin", *links, "/routes/", *PLAIN, script=MENU)
    site.set_pages(HOST, {"/begin": begin, "/frames/inner": INNER, **shells, **plains})


def sample(site: SiteProcess, run: int) -> int:
    """How many of the pages that need no browser are looked at all the same in a run."""
    return sum(is_sampled(site.url(HOST, path), run) for path in ["/begin", "/moved", *PLAIN, *BEHIND])


def test_c10_sites_of_every_kind_when_they_are_crawled_together_then_each_page_is_found_and_no_plain_one_rendered(
    tmp_path: Path, site: SiteProcess
) -> None:
    serve(site)
    project = new_project(
        tmp_path,
        site,
        start={"urls": [site.url(HOST, "/begin")], "sitemaps": "off"},
        scope={"include_hosts": [f"={HOST}"]},
        render={"mode": "auto", "scroll": 3},
    )

    first = project.crawl().counts
    second = project.crawl().counts

    found = {path: f"{HOST}{path}" in project.found(f'"{words}"') for path, words in NEEDING.items()}
    assert found == dict.fromkeys(NEEDING, True)
    assert project.found('"only after the button"') == []
    assert project.indexed() == sorted(f"{HOST}{path}" for path in ["/begin", *NEEDING, *PLAIN, *BEHIND])
    assert first["rendered"] == len(NEEDING) + sample(site, 1)
    assert second["rendered"] == len(NEEDING) + sample(site, 2)
    assert (second["new"], second["changed"], second["indexed"]) == (0, 0, 0)


ARTICLES: Final = {"lamps": "Lamps", "chairs": "Chairs", "clocks": "Clocks", "kettles": "Kettles"}
#: Title and text of each page, as its data have them.
ARTICLE_PAGES: Final = {
    "/": ("All instruments", "Everything that our workshop by the harbour makes, from the smallest lamp to clocks."),
    "/about": (
        "About the workshop",
        "Three sisters have led it since their uncle went to sea and sent no letter home.",
    ),
    "/articles/lamps": ("Lamps", "Brass and green glass, made to be read by. The wick is trimmed once in a week."),
    "/articles/lamps/notes": ("Notes on lamps", "One burned for eleven years in the tower of the old observatory."),
    "/articles/chairs": ("Chairs", "Beech without arms, for kitchens. Four of them are carried by one person easily."),
    "/articles/clocks": (
        "Clocks",
        "They strike the quarters, but for the night, when a felt is laid under the hammer.",
    ),
    "/articles/kettles": (
        "Kettles",
        "Copper that is tinned inside. Their whistle is tuned to the note of a blackbird.",
    ),
}
#: What becomes of paths that the application links to and has no page for: a route that leads to another one, a path without
#: a route, and one whose data are gone. Hosts send the same shell for them.
ASIDE: Final = {"/information": Code.DUPLICATE, "/gone": Code.SENTINEL, "/articles/lost": Code.SENTINEL}
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
}


def serve_framework(site: SiteProcess, framework: str) -> None:
    """An application as hosts serve_framework it: its files, its data, and for any other path its shell."""
    host, files = host_of(framework), read_build(KEPT, framework)
    shell = files.pop("/index.html").decode()
    site.set_behaviour(host, status=200, body=shell, headers={"Content-Type": _TYPES[".html"]}, missing=True)
    site.set_pages(host, dict.fromkeys([*ARTICLE_PAGES, *ASIDE], shell))
    for path, content in files.items():
        site.set_page(host, path, content, content_type=_TYPES[Path(path).suffix])
    site.set_behaviour(host, prefix="/api/", status=404, missing=True)
    for path, (title, text) in ARTICLE_PAGES.items():
        set_data(site, host, path, title, f"{text} This is {framework}.")


def host_of(framework: str) -> str:
    return f"{framework}.acme.test"


def set_data(site: SiteProcess, host: str, path: str, title: str, text: str) -> None:
    data: dict[str, Any] = {"title": title, "text": text, "notes": f"{path}/notes" in ARTICLE_PAGES}
    if path == "/":
        data["items"] = [{"name": name, "title": label} for name, label in ARTICLES.items()]
    name = "/list" if path == "/" else path
    site.set_page(host, f"/api{name}.json", json.dumps(data), content_type=_TYPES[".json"])


def applications(folder: Path, site: SiteProcess) -> CrawlProject:
    return new_project(
        folder,
        site,
        start={"urls": [site.url(host_of(framework), "/") for framework in FRAMEWORKS]},
        scope={"include_hosts": [f"={host_of(framework)}" for framework in FRAMEWORKS]},
        render={"mode": "auto"},
    )


@pytest.mark.extended
def test_c10_applications_of_frameworks_when_they_are_crawled_then_each_page_is_found_and_later_only_a_changed_one_sent(
    tmp_path: Path, site: SiteProcess
) -> None:
    for framework in FRAMEWORKS:
        serve_framework(site, framework)
    project = applications(tmp_path, site)

    first = project.crawl().counts
    hits = {path: project.hits(f'"{text}"') for path, (_, text) in ARTICLE_PAGES.items()}
    codes = project.codes()
    second = project.crawl().counts
    set_data(
        site, host_of("vue"), "/articles/clocks", "Clocks", "Silent now: the smith who tuned their bells moved away."
    )
    third = project.crawl().counts

    hosts = [host_of(framework) for framework in FRAMEWORKS]
    expected = dict.fromkeys(ARTICLE_PAGES, 200) | ASIDE
    assert codes == {host + path: code for host in hosts for path, code in expected.items()}
    for path, (title, _) in ARTICLE_PAGES.items():
        found = {short(hit.fields["url"]): hit.fields["title"] for hit in hits[path]}
        assert found == {host + path: title for host in hosts}
    assert (first["indexed"], first["duplicates"]) == (len(ARTICLE_PAGES) * len(hosts), len(hosts))
    assert (second["new"], second["changed"], second["indexed"]) == (0, 0, 0)
    assert (third["new"], third["changed"], third["indexed"]) == (0, 1, 1)
    assert project.found('"bells moved away"') == ["vue.acme.test/articles/clocks"]


@pytest.mark.extended
def test_c10_applications_when_they_are_built_anew_then_they_are_as_they_were_kept(
    part_missing: Callable[[str], NoReturn],
) -> None:
    try:
        built = build_all()
    except NodeMissing as error:
        part_missing(str(error))

    # Where they are not: python -m tests.framework_builds
    assert {name: read_build(built, name) for name in FRAMEWORKS} == {
        name: read_build(KEPT, name) for name in FRAMEWORKS
    }
