"""One login for all requests, done again once, and credentials that go nowhere else (C10)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import DownloadTimeoutError
from scrapy.http import Response

from searchcrawl.http.side_requests import SideRequests
from searchcrawl.kinds.web.login.cookie_jar import CookieJar
from searchcrawl.kinds.web.login.form import LoginFailed
from searchcrawl.kinds.web.login.session import LoginPlan, LoginSession
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.redirects import TargetRules
from searchcrawl.sources.fetch_tables import Login
from tests.factories import ANY_TARGET

HOME, LOGIN = "http://a.test/", "http://a.test/login"
FORM = "<form method=post action='{action}'><input name=u><input type=password name=p></form>"
INSIDE = "<p>Hello. <a href=/logout>Log out</a></p>"


@dataclass(frozen=True)
class Answer:
    """What a server answers; status 0: nothing in time."""

    url: str
    text: str = ""
    status: int = 200
    location: str | None = None


page = Answer


@dataclass
class Server:
    """Answers by ``METHOD URL``; the last of several answers stays."""

    answers: dict[str, list[Answer]]
    asked: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    async def download(self, request: Request) -> Response:
        assert request.meta["side_request"] == "login"
        key = f"{request.method} {request.url}"
        self.asked.append(key)
        self.bodies += [request.body] if request.method == "POST" else []
        await asyncio.sleep(0)
        left = self.answers[key]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if answer.status == 0:
            raise DownloadTimeoutError
        headers = {} if answer.location is None else {"Location": answer.location}
        return Response(answer.url, status=answer.status, headers=headers, body=answer.text.encode(), request=request)


def server(**changed: Answer | list[Answer]) -> Server:
    """A server where all is well, but for ``form``, ``posted`` and ``home``."""
    given = {
        "form": page(LOGIN, FORM.format(action="/login")),
        "posted": page(LOGIN, status=303, location="/"),
        "home": page(HOME, INSIDE),
    }
    lists = {name: answer if isinstance(answer, list) else [answer] for name, answer in (given | changed).items()}
    return Server({f"GET {LOGIN}": lists["form"], f"POST {LOGIN}": lists["posted"], f"GET {HOME}": lists["home"]})


def session(site: Server, **plan: Any) -> LoginSession:
    given = {
        "url": LOGIN,
        "form": Login(username="me", password="open"),
        "default_charset": "utf-8",
        **plan,
    }
    return LoginSession(LoginPlan(**given), CookieJar(["http://a.test"]), side(site))


def side(site: Server, targets: TargetRules = ANY_TARGET) -> SideRequests:
    return SideRequests(download=site.download, rate_limiter=RateLimiter(), targets=targets)


def failing(made: LoginSession) -> LoginFailed:
    with pytest.raises(LoginFailed) as raised:
        asyncio.run(made.wait_until_logged_in())
    return raised.value


def test_login_when_many_requests_wait_then_is_done_once() -> None:
    site = server()
    made = session(site, check="Log out")

    async def wait() -> None:
        await asyncio.gather(*(made.wait_until_logged_in() for _ in range(20)))

    asyncio.run(wait())

    assert site.asked == [f"GET {LOGIN}", f"POST {LOGIN}", f"GET {HOME}"]
    assert site.bodies == [b"u=me&p=open"]
    assert made.generation == 1


@pytest.mark.parametrize("check", [None, "Log out"])
def test_login_when_it_leads_to_an_excluded_page_then_that_is_not_requested_and_the_login_counts(
    check: str | None,
) -> None:
    site = server(posted=page(LOGIN, status=303, location="/account/welcome"))
    # The page of the login is excluded as well: that the source names it counts more.
    targets = TargetRules(Boundary(include_hosts=["a.test"], exclude_urls=["*/account/*", "*/login*"]))
    plan = LoginPlan(url=LOGIN, form=Login(username="me", password="open"), check=check, start=HOME)
    made = LoginSession(plan, CookieJar(["http://a.test"]), side(site, targets))

    asyncio.run(made.wait_until_logged_in())

    assert site.asked == [f"GET {LOGIN}", f"POST {LOGIN}", *([f"GET {HOME}"] if check else [])]
    assert made.generation == 1


@pytest.mark.parametrize(
    ("changed", "plan", "message"),
    [
        ({"form": page(LOGIN, status=404)}, {}, "the login page answered 404"),
        ({"form": page(LOGIN, INSIDE)}, {}, "the page has no form with a password field"),
        ({"form": page("http://b.test/x", FORM)}, {}, "the login page leads to another origin: http://b.test/x"),
        ({"form": page("https://a.test/login", FORM)}, {}, "the login page leads to another origin"),
        ({"form": page(LOGIN, FORM.format(action="http://a.test:81/login"))}, {}, "the form leads to another origin"),
        ({"posted": page(LOGIN, FORM)}, {}, "the form is shown again: wrong user name or password?"),
        ({"posted": page(LOGIN, "no", 401)}, {}, "the login was answered with 401"),
        (
            {"posted": page(LOGIN, status=302, location="http://[")},
            {},
            "http://a.test/login redirects to what is no URL",
        ),
        ({"home": page(HOME, "Hello")}, {"check": "Log out"}, "login.check is on no page after the login"),
        (
            {"home": page(HOME, "Hello")},
            {"check": "Log out", "start": HOME},
            "login.check is on no page after the login",
        ),
        ({"posted": page(LOGIN, status=307, location="http://b.test/")}, {}, "the form is sent on to another origin"),
        ({"form": page(LOGIN, status=302, location="/login")}, {}, "more than 10 redirects from http://a.test/login"),
    ],
)
def test_login_when_it_cannot_work_then_says_why_and_is_not_tried_again(
    changed: dict[str, Any], plan: dict[str, Any], message: str
) -> None:
    site = server(**changed)
    made = session(site, **plan)

    first = failing(made)
    asked = len(site.asked)
    second = failing(made)

    assert str(first).startswith(message)
    assert (first.transient, str(second), len(site.asked)) == (False, str(first), asked)
    assert not any("b.test" in key for key in site.asked)


@pytest.mark.parametrize("bad", [page(LOGIN, status=503), page(LOGIN, status=0)])
def test_login_when_it_fails_for_now_then_is_tried_again_after_a_pause_and_not_for_ever(
    bad: Answer, now: list[float]
) -> None:
    site = server(form=bad)
    made = session(site)

    first = failing(made)
    failing(made)
    asked_at_once = len(site.asked)
    last = first
    for _ in range(10):
        now[0] += made.pause_seconds
        last = failing(made)

    assert (first.transient, asked_at_once) == (True, 1)
    assert (last.transient, len(site.asked)) == (False, 5)


def test_login_when_it_works_at_the_next_try_then_all_is_well(now: list[float]) -> None:
    site = server(form=[page(LOGIN, status=503), page(LOGIN, FORM.format(action="/login"))])
    made = session(site)

    failing(made)
    now[0] += made.pause_seconds
    asyncio.run(made.wait_until_logged_in())

    assert made.generation == 1


def test_lost_login_when_renewed_then_once_for_all_and_no_second_time() -> None:
    site = server()
    made = session(site)

    async def story() -> list[bool]:
        await made.wait_until_logged_in()
        first = await asyncio.gather(*(made.renew(1) for _ in range(5)))
        return [*first, await made.renew(1), await made.renew(made.generation)]

    renewed = asyncio.run(story())

    assert renewed == [True] * 6 + [False]
    assert len(site.bodies) == 2


def test_lost_login_when_it_cannot_be_renewed_then_everybody_hears_it() -> None:
    made = session(server(posted=[page(LOGIN, status=303, location="/"), page(LOGIN, FORM)]))

    async def story() -> list[bool]:
        await made.wait_until_logged_in()
        return [await made.renew(1), await made.renew(1)]

    renewed = asyncio.run(story())

    assert renewed == [False, False]
    assert str(failing(made)).startswith("the form is shown again")


def test_page_when_it_has_the_form_and_not_what_only_others_have_then_looks_like_login() -> None:
    plain, checked = session(server()), session(server(), check="Abmelden für heute")
    asyncio.run(plain.wait_until_logged_in())
    form = FORM.encode()

    assert [plain.looks_like_login(body) for body in (form, b"", b"<input type=password name=other>")] == [
        True,
        False,
        False,
    ]
    said = "Abmelden für heute"
    texts = [form, form + said.encode(), form + said.encode("latin-1"), INSIDE.encode()]
    assert [checked.looks_like_login(text) for text in texts] == [True, False, False, False]
    assert [plain.is_login_page(url) for url in (LOGIN, f"{LOGIN}?next=/", HOME)] == [True, True, False]


def test_cookies_when_they_are_given_then_are_set_and_the_page_is_asked_for() -> None:
    jar = CookieJar(["http://a.test"])
    site = server(home=page(HOME, INSIDE))
    plan = LoginPlan(url=HOME, cookies=(("s", "1"),), cookie_origins=["http://a.test"], check="Log out")

    asyncio.run(LoginSession(plan, jar, side(site)).wait_until_logged_in())

    assert jar.header("http://a.test/deep/page") == "s=1"
    assert site.asked == [f"GET {HOME}"]
