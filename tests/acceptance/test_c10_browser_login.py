"""C10: a login that needs a browser; its session serves plain and rendered pages, and stays with its origins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.support_logins import LoginProject
from tests.crawl_forks import COMMANDS, Forks, started
from tests.live_browsers import list_browsers
from tests.login_site import PASSWORD, USER
from tests.page_wall import need_browser
from tests.script_login_site import APP, FOREIGN, LOG_OUT, PLAIN, RENDERED, SSO, ScriptLoginSite
from tests.site.client import write_project
from tests.site.expected import short

pytestmark = pytest.mark.extended

STEPS = [
    {"click": "#consent button"},
    {"fill": "#user", "value": USER},
    {"fill": "input[type=password]", "value": PASSWORD},
    {"click": "form button"},
]
SSO_STEPS = [
    {"fill": "[name=user]", "value": USER},
    {"fill": "[name=pass]", "value": PASSWORD},
    {"click": "button"},
]
PLAIN_PAGES = {"/", *(f"/{name}.html" for name in PLAIN)}
RENDERED_PAGES = {f"/app/{name}" for name in RENDERED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(LoginProject):
    """A source of the site."""

    site: ScriptLoginSite

    def edit(
        self, *, render: dict[str, Any] | None = None, path: str = "/login", retries: int = 0, **login: Any
    ) -> None:
        values = {"type": "browser", "url": self.site.url(path), "steps": STEPS, **login}
        write_project(
            self.folder,
            self.site.port,
            start={"urls": [self.site.url()], "sitemaps": "off"},
            scope={"include_hosts": [APP], "trap_after": 0},
            fetch={"retries": retries},
            render=render or {},
            login=values,
        )

    def find(self, words: str) -> set[str]:
        ended = COMMANDS.run(self.folder, "search", words, "--json", "--rows", "50")
        return {"/" + short(hit["url"]).partition("/")[2] for hit in json.loads(ended.stdout)["hits"]}


@pytest.fixture
def site() -> Iterator[ScriptLoginSite]:
    need_browser()
    with ScriptLoginSite() as running:
        yield running


@pytest.fixture
def source(tmp_path: Path, site: ScriptLoginSite) -> Source:
    return Source(folder=tmp_path, host=APP, site=site)


def test_session_when_a_script_logged_in_then_serves_plain_and_rendered_pages(source: Source) -> None:
    source.edit(render={"mode": "auto", "max_seconds": 20.0}, check=LOG_OUT)

    exit_code = source.run()

    assert exit_code == 0, source.written()[-3000:]
    assert set(source.versions()) == PLAIN_PAGES | RENDERED_PAGES
    assert source.find('"inner text"') == RENDERED_PAGES
    assert source.site.state.logins == 1
    # Scripts of others are requested as on any page, and hear nothing.
    foreign = source.site.seen(FOREIGN)
    assert {one.path for one in foreign} <= {"/counter.js", "/robots.txt"}
    assert not any({"cookie", "authorization", "x-xsrf"} & set(one.headers) for one in foreign)
    assert PASSWORD not in source.written()


def test_session_when_a_source_does_not_render_then_serves_its_pages_and_the_browser_is_gone(source: Source) -> None:
    source.edit(check=LOG_OUT)
    with Forks(1) as forks, started(forks.start(source.folder, "crawl", "demo")) as running:
        running.until(lambda: bool(list_browsers(running.pid)))
        mine = list_browsers(running.pid)
        exit_code = running.wait()

    assert exit_code == 0, source.written()[-3000:]
    assert set(source.versions()) >= PLAIN_PAGES
    pages = [one for one in source.site.seen() if one.path.endswith(".html")]
    assert all("session=" in one.headers["cookie"] and "chosen=yes" in one.headers["cookie"] for one in pages)
    assert not mine & list_browsers()


def test_session_when_another_host_opens_it_then_forms_and_cookies_stay_where_they_belong(source: Source) -> None:
    source.edit(render={"mode": "never", "allow_hosts": [f"={SSO}"]}, path="/sso", steps=SSO_STEPS)

    exit_code = source.run()

    assert exit_code == 0, source.written()[-3000:]
    assert set(source.versions()) >= PLAIN_PAGES
    sent = [one for one in source.site.requests if PASSWORD in one.body]
    assert [(one.method, one.path.partition("?")[0], one.host.partition(":")[0]) for one in sent] == [
        ("POST", "/auth", SSO)
    ]
    assert all("flow=" not in one.headers.get("cookie", "") for one in source.site.seen(APP))
    assert all("asked=" not in one.headers.get("cookie", "") for one in source.site.seen(SSO))


def test_login_when_its_host_is_not_named_then_nothing_is_sent_there_and_the_error_says_which_key(
    source: Source,
) -> None:
    source.edit(path="/sso", steps=SSO_STEPS, render={"max_seconds": 2.0})

    exit_code = source.run()

    assert exit_code == 8
    assert source.site.seen(SSO) == []
    assert f"it led to http://{SSO}:{source.site.port}, refused: " in source.rows()["/"][1]
    assert "render.allow_hosts may name its host" in source.rows()["/"][1]


def test_session_when_it_is_lost_then_a_rendered_page_renews_it(source: Source) -> None:
    source.edit(render={"mode": "auto", "max_seconds": 20.0}, check=LOG_OUT)
    source.site.state.lasts = 2

    exit_code = source.run()

    assert exit_code == 0, source.written()[-3000:]
    assert source.find('"inner text"') == RENDERED_PAGES
    assert source.site.state.logins == 2


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"check": LOG_OUT}, "login.check is on no page after the login"),
        ({}, "the form is shown again"),
        ({"steps": [*STEPS, {"wait": "nav.members"}]}, "login.steps[4] (wait nav.members): no such element is seen"),
        ({"steps": STEPS[1:]}, "login.steps[2] (click form button): another element covers it"),
    ],
)
def test_login_when_it_fails_then_exit_8_code_959_the_reason_and_no_document_is_lost(
    source: Source, change: dict[str, Any], said: str
) -> None:
    source.edit()
    assert source.run() == 0
    before = set(source.versions())
    source.site.state.sessions.clear()
    if "steps" not in change:
        source.site.state.password = "an0ther-one"
    source.edit(render={"max_seconds": 2.0}, **change)

    exit_code = source.run()

    assert exit_code == 8
    assert set(source.versions()) == before
    code, error = source.rows()["/"]
    assert (code, said in error) == (959, True), error
    assert PASSWORD not in source.written()


def test_login_when_its_page_answers_503_then_it_is_tried_again(source: Source) -> None:
    source.edit(retries=1, render={"max_seconds": 1.0})
    source.site.state.broken = "/login"

    exit_code = source.run()

    assert exit_code == 8
    assert len([one for one in source.site.seen() if one.path == "/login"]) > 1
    assert "503" in source.rows()["/"][1]
