"""A small, rich site for crawls that are killed: copies, redirects, errors, depths that shrink, pages that change."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.site.client import SiteProcess, write_project

HOST: Final = "kill.acme.test"
#: So many pages of 12 KB.
GENERATED_HOST: Final = "gen.acme.test"
_GENERATED: Final = "/n/{},links=4,kb=12/"
GENERATED: Final = _GENERATED.format(40)
#: The links of the start page of a site that has few pages: one or two of each kind that a crawl treats in its own way.
_FEW: Final = (
    *("/moved.html", "/moving.html", "/gone.html", "/unindexed.html", "/hidden.html", "/chain/7.html"),
    *("/copies/first.html", "/copies/second.html", "/twin.html", "/twins/second.html", "/named/x.html"),
)
#: What a redirect is answered with, and to which path it leads.
REDIRECTS: Final = {
    "/moved.html": (301, "/target.html"),
    "/hop-1.html": (302, "/hop-2.html"),
    "/hop-2.html": (307, "/other-target.html"),
    "/to-nothing.html": (302, "/nothing.html"),
    "/loop.html": (302, "/loop.html"),
    "/outside.html": (301, "http://elsewhere.test/"),
}
#: The same for what the change brings.
MOVED: Final = {"/moving.html": "/moved-here.html"}
#: Pages, and which one they name as canonical: a chain, a circle, a copy, an error.
NAMING: Final = {
    "/named/first.html": "/named/deep/best.html",
    "/named/second.html": "/named/first.html",
    "/named/x.html": "/named/y.html",
    "/named/y.html": "/named/x.html",
    "/named/copy.html": "/copies/second.html",
    "/named/nothing.html": "/missing.html",
}
_CHAIN: Final = 8
_COPY: Final = "Three pages have these very words and no other ones."
#: Near copies, of which one stays; later another one of them.
_NEAR: Final = ("/near.html", "/near/second.html", "/near/the-third.html")
_TWIN: Final = "Two pages have these words; one of them will be gone."


def page(title: str, *links: str, text: str = "", head: str = "") -> str:
    """A page with a text and links."""
    anchors = "".join(f'<a href="{link}">{link}</a>\n' for link in links)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><title>{title}</title>{head}</head>\n'
        f"<body><h1>{title}</h1><p>{text or f'This is the page {title}.'}</p>\n{anchors}</body></html>\n"
    )


def sitemap(site: SiteProcess, numbers: Iterable[int], *, host: str = HOST) -> str:
    """A sitemap of pages that nothing else leads to, of one that is missing and of one outside."""
    paths = [*(f"/listed/{number}.html" for number in numbers), "/listed/missing.html"]
    urls = [*(site.url(host, path) for path in paths), "http://elsewhere.test/listed.html"]
    entries = (f"<url><loc>{url}</loc><lastmod>2001-01-01</lastmod></url>" for url in urls)
    return f"<urlset>{''.join(entries)}</urlset>"


def _build_near(number: int) -> str:
    """A text of which the editions differ in a word."""
    return " ".join([*(f"The {each}th word rarely differs." for each in range(200)), f"Edition {number}."])


def naming(title: str, target: str, *links: str) -> str:
    """A page that names another one as canonical."""
    return page(title, *links, head=f'<link rel="canonical" href="{target}">')


def fill(site: SiteProcess, *, few: bool = False) -> None:
    """Sets the pages of the first crawl; of ``few`` only a third is linked."""
    listed = (1, 5) if few else range(1, 7)
    site.set_page(HOST, "/sitemap.xml", sitemap(site, listed), content_type="application/xml")
    for number in range(1, 8):
        site.set_page(HOST, f"/listed/{number}.html", page(f"Listed {number}", f"/below/{number}.html"))
    unfollowed = '<a rel="nofollow" href="/nobody-goes-there.html">x</a></body>'
    site.set_page(HOST, "/below/3.html", page("Below the third").replace("</body>", unfollowed))
    roots = (*REDIRECTS, "/slow.html", "/chain/1.html", "/copies/first.html", "/copies/second.html", "/gone.html")
    more = ("/withdrawn.html", "/hidden.html", "/empty.html", "/missing.html", "/refused.html", "/unindexed.html")
    twins = ("/twin.html", "/twins/second.html", "/refreshing.html", "/moving.html", "/elsewhere/x/y/z/a/b/c.html")
    links = _FEW if few else (*roots, *more, *twins, *NAMING)
    site.set_page(HOST, "/", page("Start", *links, *_NEAR))
    site.set_pages(HOST, {path: page("Near", text=_build_near(number)) for number, path in enumerate(_NEAR)})
    for path, target in NAMING.items():
        site.set_page(HOST, path, naming(path, target))
    # Only a canonical link leads to it.
    site.set_page(HOST, "/named/deep/best.html", page("Best"))
    for path, (status, target) in REDIRECTS.items():
        site.set_page(HOST, path, "", status=status, headers={"Location": target})
    for name in ("target", "other-target", "gone", "withdrawn", "unindexed", "moving", "refreshed"):
        site.set_page(HOST, f"/{name}.html", page(name))
    for path in ("/copies/first.html", "/copies/second.html"):
        site.set_page(HOST, path, page("Copy", text=_COPY))
    for path in ("/twin.html", "/twins/second.html"):
        site.set_page(HOST, path, page("Twin", text=_TWIN))
    for step in range(1, _CHAIN + 1):
        following = f"/chain/{step + 1}.html" if step < _CHAIN else "/c.html"
        site.set_page(HOST, f"/chain/{step}.html", page(f"Step {step}", following))
    # The best of the copies, found last.
    site.set_page(HOST, "/c.html", page("Copy", text=_COPY))
    # It shortens the chain, which was walked as far as the depth allows by then.
    site.set_page(HOST, "/slow.html", page("Slow", "/chain/4.html"))
    site.set_behaviour(HOST, "/slow.html", delay_seconds=0.6)
    _add_odd(site)


def _add_odd(site: SiteProcess) -> None:
    """Pages that are not indexed, each for another reason."""
    site.set_page(HOST, "/hidden.html", page("Hidden", head='<meta name="robots" content="noindex">'))
    site.set_page(HOST, "/empty.html", "")
    site.set_page(HOST, "/refused.html", "No.", status=403)
    site.set_page(
        HOST,
        "/refreshing.html",
        page("Refreshing", head='<meta http-equiv="refresh" content="0; url=/refreshed.html">'),
    )


def change(site: SiteProcess, *, pages: int = 40) -> None:
    """The site later: pages gone, hidden, moved, new and changed; a survivor of copies is one no longer.

    ``pages`` is the number of generated ones.
    """
    site.set_page(HOST, "/sitemap.xml", sitemap(site, (1, 3, 5, 7)))
    site.delete_page(HOST, "/listed/5.html")
    site.delete_page(HOST, "/gone.html")
    site.delete_page(HOST, "/named/deep/best.html")
    site.set_page(HOST, "/named/x.html", page("In no circle any more"))
    site.set_page(HOST, "/chain/6.html", naming("Step 6", "/chain/5.html", "/chain/7.html"))
    site.set_page(HOST, "/withdrawn.html", "Withdrawn.", status=410)
    site.set_page(HOST, "/unindexed.html", page("unindexed", head='<meta name="robots" content="noindex">'))
    site.set_page(HOST, "/moving.html", "", status=301, headers={"Location": "/moved-here.html"})
    site.set_page(HOST, "/moved-here.html", page("moved here"))
    site.set_page(HOST, "/c.html", page("A copy no longer"))
    site.set_page(HOST, "/chain/2.html", page("Step 2", "/chain/3.html", "/new/1.html"))
    site.set_page(HOST, "/new/1.html", page("New", "/new/2.html"))
    site.set_page(HOST, "/new/2.html", page("Newer"))
    site.delete_page(HOST, "/twin.html")
    site.set_page(HOST, _NEAR[0], page("Near no longer", text="It says less than the others do."))
    site.set_page(HOST, _NEAR[1], page("Near", text=_build_near(7)))
    site.set_page(HOST, "/target.html", page("target", text="Other words than before."))
    for number in range(5, pages, 6):
        path = f"{_GENERATED.format(pages)}{number}.html"
        site.set_page(
            GENERATED_HOST, path, page(f"Changed {number}", "./", text=f"It has the word late{number}. " * 900)
        )


def change_generated(site: SiteProcess, number: int, *, pages: int) -> None:
    """Gives one of so many generated pages another text."""
    changed = page(f"Third {number}", text=f"third{number} " * 999)
    site.set_page(GENERATED_HOST, f"{_GENERATED.format(pages)}{number}.html", changed)


def project(
    folder: Path,
    site: SiteProcess,
    name: str,
    *,
    settings: dict[str, Any] | None = None,
    pages: int = 40,
    **overrides: Any,
) -> Path:
    """A project with a source of that name for the site, with so many generated pages; its cache is full several times in a run."""
    return write_project(
        folder,
        site,
        name,
        project={"user_agent": name, "cache": {"threshold_mb": 0.1}, **(settings or {})},
        **{
            "start": {"urls": [site.url(HOST), site.url(GENERATED_HOST, _GENERATED.format(pages))]},
            "scope": {"include_hosts": [HOST, GENERATED_HOST], "depth": 7},
            "fetch": {"retries": 0},
            "copies": {"near": "remove"},
            **overrides,
        },
    )


def call_agent(folder: Path, name: str) -> None:
    """From now on the requests of a project are known by this name."""
    path = folder / "searchcrawl.toml"
    path.write_text(re.sub(r"(?m)^user_agent = .*$", f'user_agent = "{name}"', path.read_text("utf-8")), "utf-8")


def requests(site: SiteProcess) -> dict[str, Counter[str]]:
    """How often each URL was asked for, by the name of the project; without robots.txt."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for entry in site.log(robots=False):
        agent = entry["headers"]["user-agent"].partition("/")[0]
        found[agent][site.url(entry["host"], entry["path"])] += 1
    return found


def with_targets(site: SiteProcess, urls: Iterable[str]) -> set[str]:
    """``urls`` and what their redirects lead to: all that visits of them may ask for."""
    following = {site.url(HOST, path): target for path, (_, target) in REDIRECTS.items()}
    following |= {site.url(HOST, path): target for path, target in MOVED.items()}
    found: set[str] = set()
    waiting = list(urls)
    while waiting:
        url = waiting.pop()
        if url not in found:
            found.add(url)
            waiting += [site.url(HOST, following[url])] if url in following else []
    return found
