"""C10: pages behind a login are indexed; a bad password costs no document; credentials stay with their origin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_logins import LoginProject
from tests.login_site import COOKIE, LOG_OUT, NAMES, PASSWORD, USER, LoginSite
from tests.site.client import write_project

#: robots.txt, which is behind the login too, forbids one of them; one is only in the sitemap.
PAGES: Final = {"/", "/mapped.html", "/away.html", *(f"/{name}.html" for name in NAMES if name != "two")}
HTTP: Final = {"username": USER, "password": PASSWORD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl(LoginProject):
    """A source of the login site, of one host, by its first name, and perhaps ``others``."""

    site: LoginSite
    name: str
    others: tuple[str, ...] = ()

    def edit(self, **login: Any) -> None:
        """Writes the project: its hosts of the site, with this login."""
        hosts = (self.name, *self.others)
        write_project(
            self.folder,
            self.site.port,
            start={"urls": [self.site.url(host=host) for host in hosts]},
            scope={"include_hosts": [f"{host}.acme.test" for host in hosts]},
            fetch={"retries": 0},
            login=login,
        )


def crawl_of(folder: Path, site: LoginSite, name: str = "form", *others: str) -> Crawl:
    return Crawl(folder=folder, host=f"{name}.acme.test", site=site, name=name, others=others)


@pytest.fixture
def site() -> Iterator[LoginSite]:
    with LoginSite() as site:
        yield site


def login_of(name: str, site: LoginSite, **more: Any) -> dict[str, Any]:
    logins: dict[str, dict[str, Any]] = {
        "basic": {"type": "basic", **HTTP},
        "digest": {"type": "digest", **HTTP},
        "form": {"type": "form", "url": site.url("/login", "form"), "check": LOG_OUT, **HTTP},
        "cookies": {"type": "cookies", "fields": {"session": COOKIE}},
    }
    return logins[name] | more


@pytest.mark.parametrize(
    ("name", "algorithm"),
    [("basic", "SHA-256"), ("digest", "SHA-256"), ("digest", "MD5"), ("form", "SHA-256"), ("cookies", "SHA-256")],
)
def test_protected_pages_when_logged_in_then_are_indexed_and_nobody_else_sees_the_credentials(
    tmp_path: Path, site: LoginSite, name: str, algorithm: str
) -> None:
    crawl = crawl_of(tmp_path, site, name)
    # Nonces go stale on the way.
    site.state.nonce_lasts = 3
    site.state.algorithm = algorithm
    crawl.edit(**login_of(name, site))

    exit_code = crawl.run()

    assert exit_code == 0, crawl.written()[-3000:]
    assert set(crawl.versions()) == PAGES
    asked = [one.path for one in site.seen(name)]
    assert "/two.html" not in asked
    away = site.seen("elsewhere")
    assert {one.path for one in away} == {"/", "/robots.txt"}
    assert not any({"authorization", "cookie"} & set(one.headers) for one in away)
    assert site.state.logins == (name == "form")
    assert "c4n4ry" not in crawl.written()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["basic", "digest", "form", "cookies"])
def test_password_when_it_is_wrong_then_exit_8_code_959_and_no_document_is_lost(
    tmp_path: Path, site: LoginSite, name: str
) -> None:
    crawl = crawl_of(tmp_path, site, name)
    crawl.edit(**login_of(name, site))
    crawl.run()
    before = crawl.versions()
    site.state.sessions.clear()
    wrong = {"fields": {"session": "0ther"}} if name == "cookies" else {"password": "wr0ng"}
    crawl.edit(**login_of(name, site, **wrong))
    asked = len(site.requests)

    exit_code = crawl.run()

    assert exit_code == 8
    assert crawl.versions() == before
    assert {code for path, code in crawl.codes().items() if path not in {"/two.html", "/login"}} == {959}
    assert [warning["code"] for warning in crawl.last_status["warnings"]] == ["no_start", "login"]
    tries = site.requests[asked:]
    # Not as many wrong passwords as there are pages: that would lock the user out.
    sent = [one for one in tries if one.method == "POST" or "authorization" in one.headers]
    assert len(sent) <= (0 if name == "cookies" else 4)
    assert "wr0ng" not in crawl.written()


@pytest.mark.few(2)
@pytest.mark.parametrize("wall", ["redirect", "form", "status", "refresh"])
@pytest.mark.parametrize(
    ("lasts", "closed"), [(3, {"/three.html"}), (10, {"/three.html", "/more-7.html", "/more-8.html", "/more-20.html"})]
)
def test_session_when_it_is_lost_again_and_again_then_is_renewed_and_all_pages_open(
    tmp_path: Path, site: LoginSite, wall: str, lasts: int, closed: set[str]
) -> None:
    crawl = crawl_of(tmp_path, site)
    crawl.edit(**login_of("form", site))
    site.state.wall, site.state.lasts, site.state.more = wall, lasts, 30
    # This user must not see them.
    site.state.closed = tuple(closed)
    more = {f"/more-{number}.html" for number in range(30)}

    exit_code = crawl.run()

    assert exit_code == 0
    assert {path for path, code in crawl.codes().items() if code == 959} == closed
    assert set(crawl.versions()) == (PAGES | more) - closed
    assert 35 // lasts <= site.state.logins <= 35 // lasts + 8


@pytest.mark.few(2)
@pytest.mark.parametrize("wall", ["redirect", "form", "status"])
def test_session_when_its_renewal_opens_nothing_then_exit_8_and_documents_stay_and_there_is_no_other(
    tmp_path: Path, site: LoginSite, wall: str
) -> None:
    crawl = crawl_of(tmp_path, site)
    crawl.edit(**login_of("form", site))
    crawl.run()
    before = crawl.versions()
    site.state.wall, site.state.logins = wall, 0
    site.state.closed = tuple(sorted(PAGES - {"/"}))

    exit_code = crawl.run()

    status = crawl.last_status
    assert exit_code == 8
    assert site.state.logins == 2
    assert list(crawl.codes().values()).count(959) == 6
    assert crawl.versions() == before
    assert (status["state"], [warning["code"] for warning in status["warnings"]]) == ("failed", ["login", "sentinel"])
    assert "most pages of the last run failed the login, 6 of 8" in status["warnings"][0]["message"]
    assert "most pages failed the login" in (tmp_path / "printed.txt").read_text("utf-8")
    # The start page was fetched.
    assert "no start URL" not in crawl.written()


def test_session_when_the_server_forgets_it_then_late_answers_do_not_end_the_next_one(
    tmp_path: Path, site: LoginSite
) -> None:
    crawl = crawl_of(tmp_path, site)
    site.state.forgets = True
    crawl.edit(**login_of("form", site))

    exit_code = crawl.run()

    assert exit_code == 0
    assert site.state.strangers > 1
    assert site.state.logins == 2
    assert set(crawl.versions()) == PAGES


@pytest.mark.parametrize(("counting", "others"), [(("form",), ()), (("elsewhere",), ("elsewhere",))])
def test_session_when_a_site_counts_views_in_cookies_then_lasts_to_the_end(
    tmp_path: Path, site: LoginSite, counting: tuple[str, ...], others: tuple[str, ...]
) -> None:
    crawl = crawl_of(tmp_path, site, "form", *others)
    site.state.counting = counting
    crawl.edit(**login_of("form", site))

    exit_code = crawl.run()

    assert exit_code == 0
    assert site.state.logins == 1
    # What it redirects to is a page of its own where that host is crawled too.
    assert set(crawl.versions()) >= PAGES - {"/away.html"}


SCRIPT: Final = "/index.php?action=login"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("login", "action", "target"),
    [
        (SCRIPT, f"{SCRIPT}2", "/index.php?topic={number}"),
        ("/members.php?do=login", "/members.php?do=login", "/members.php?topic={number}"),
        # The form is sent to the start page.
        ("/login", "/", "/?topic={number}"),
        ("/login", "/", "/"),
    ],
)
def test_redirect_when_only_its_path_is_that_of_the_login_then_nothing_is_lost_and_a_real_loss_is_seen(
    tmp_path: Path, site: LoginSite, login: str, action: str, target: str
) -> None:
    crawl = crawl_of(tmp_path, site)
    site.state.login, site.state.action = login, action
    site.state.leads = {f"/go-{number}": target.format(number=number) for number in range(1, 6)}
    crawl.edit(**login_of("form", site, url=site.url(login, "form")))

    exit_code = crawl.run()
    logins = site.state.logins
    site.state.lasts = 4
    again = crawl.run()

    codes = crawl.codes()
    assert (exit_code, again, logins, site.state.logins) == (0, 0, 1, 3)
    assert {path: code for path, code in codes.items() if code == 959} == {}
    assert {codes[lead] for lead in site.state.leads} <= {200, 909}
    assert set(crawl.versions()) >= PAGES


def test_form_when_it_leads_to_another_origin_then_nothing_is_sent(tmp_path: Path, site: LoginSite) -> None:
    crawl = crawl_of(tmp_path, site)
    site.state.action = site.url("/catch", "elsewhere")
    crawl.edit(**login_of("form", site))

    exit_code = crawl.run()

    assert exit_code == 8
    assert site.seen("elsewhere") == []
    assert "the form leads to another origin" in crawl.written()
