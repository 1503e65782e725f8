"""The walls: what the browser of a source may go to, load, and when; and in a login before and after something was typed (C2, C5, C10, L7, X-N7)."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest
from scrapy import Request
from scrapy.http import Headers, Response

from searchcrawl.http.side_requests import SideRequestFailed, SideRequests
from searchcrawl.http.visit_end import PUBLIC_ONLY
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.render.browser_request import BrowserRequest, DecodedAnswer, FetchFailed, RequestRefused
from searchcrawl.render.budget import PageBudget, SharedBudget
from searchcrawl.render.crawl_wall import CrawlWall, PageRules
from searchcrawl.render.login_wall import LoginWall
from searchcrawl.robots.files import RobotsCopy
from searchcrawl.robots.parser import RobotsFile
from searchcrawl.rules.boundary import Boundary
from searchcrawl.rules.redirects import TargetRules
from searchcrawl.rules.rewriting import Identity, Rewriting
from tests.fetch_crawl import NotingRateLimiter


class Robots:
    """Knows the files of these origins once they were asked for."""

    def __init__(self, **texts: str | None) -> None:
        self._texts = {f"http://{name}.test": text for name, text in texts.items()}
        self._known: dict[str, RobotsCopy] = {}

    def find(self, origin: str) -> RobotsCopy | None:
        return self._known.get(origin)

    async def get_rules(self, origin: str) -> RobotsFile:
        text = self._texts.get(origin, "")
        if text is None:
            raise SideRequestFailed("503", code=951)
        file = RobotsFile.parse(text.encode(), user_agent="x")
        self._known[origin] = RobotsCopy(expires=1e12, file=file)
        return file


class Site:
    """What the downloader answers, by URL: a body, or the target of a redirect; and what it was asked for."""

    def __init__(self, **pages: bytes) -> None:
        self.pages = pages
        self.content_type = ""
        self.asked: list[Request] = []

    async def download(self, request: Request) -> Response:
        self.asked.append(request)
        found = self.pages.get(request.url.rpartition("/")[2] or "index", b"found")
        if found.startswith(b"http"):
            return Response(request.url, status=302, headers={"Location": found}, request=request)
        coded = gzip.compress(found)
        headers = Headers({"Content-Encoding": "gzip", "X-Kind": ["a", "b"], "Content-Type": self.content_type})
        return Response(request.url, headers=headers, body=coded, request=request)


def wall(
    *,
    allow_hosts: tuple[str, ...] = (),
    robots: Any = None,
    turns: RateLimiter | None = None,
    site: Site | None = None,
    max_bytes: int = 1000,
    posts: bool = False,
) -> CrawlWall:
    boundary = Boundary(include_hosts=("site.test",), exclude_urls=("*/private/*", "*/one"), file="f")
    rewriting = Rewriting(identity=Identity(["utm_*"]))
    targets = TargetRules(boundary, starts=("http://site.test/",), rewriting=rewriting)
    return CrawlWall(
        boundary,
        allow_hosts=allow_hosts,
        targets=targets,
        side_requests=SideRequests(
            download=(site or Site()).download, rate_limiter=turns or RateLimiter(), targets=targets
        ),
        robots=robots,
        max_bytes=max_bytes,
        posts=posts,
        file="f",
    )


PAGE = "http://site.test/page"
#: What Chromium says of each kind.
DESTINATIONS = {"script": "script", "stylesheet": "style", "data": "empty", "frame": "iframe", "document": "document"}


def ask(url: str, kind: str = "data", method: str = "GET", **headers: str) -> BrowserRequest:
    """A request of a page; of kind ``unknown`` as Chromium sends it over plain http."""
    told = {} if kind == "unknown" else {"sec-fetch-dest": DESTINATIONS[kind]}
    return BrowserRequest(method, url, tuple({**told, **headers}.items()))


def post(url: str, origin: str = "http://site.test", **headers: str) -> BrowserRequest:
    return ask(url, method="POST", **{"origin": origin, "content-type": "application/json", **headers})


def page(here: CrawlWall, url: str = PAGE) -> PageRules:
    return here.admit(url)


def fetch(here: CrawlWall, request: BrowserRequest, budget: PageBudget | None = None) -> DecodedAnswer:
    return asyncio.run(page(here).fetch(request, budget or SharedBudget(1 << 20).open()))


@pytest.mark.parametrize(
    ("url", "refusal"),
    [
        ("http://site.test/a#b", None),
        ("http://site.test/private/a", "scope.exclude_urls: */private/*"),
        ("http://site.test/%70rivate/a", "scope.exclude_urls: */private/*"),
        ("http://site.test/one?utm_id=1", "scope.exclude_urls: */one"),
        ("http://other.test/", "scope.include_hosts: no include matches"),
        ("file:///etc/passwd", "not an http or https URL"),
        ("data:text/html,x", "not an http or https URL"),
        ("about:blank", "not an http or https URL"),
    ],
)
def test_c10_navigation_when_it_is_asked_for_then_the_boundary_decides(url: str, refusal: str | None) -> None:
    here = page(wall())

    assert here.check_navigation(url) == refusal
    assert here.check(ask(url, "frame")) == refusal


def test_c10_navigation_when_a_redirect_led_outside_then_that_page_alone_is_open() -> None:
    here = page(wall(), "http://other.test/page")

    assert here.check_navigation("http://other.test/page") is None
    assert here.check_navigation("http://other.test/next") == "scope.include_hosts: no include matches"
    assert page(wall()).check_navigation("http://other.test/page") == "scope.include_hosts: no include matches"


@pytest.mark.parametrize(
    ("allow_hosts", "url", "kind", "allowed"),
    [
        ((), "http://site.test/x", "data", True),
        ((), "http://below.site.test/x", "data", True),
        ((), "http://site.test/private/x.js", "script", False),
        ((), "https://cdn.test/one?utm_id=1", "script", False),
        ((), "https://cdn.test/x.js", "script", True),
        ((), "https://cdn.test/x.css", "stylesheet", True),
        ((), "https://cdn.test/x", "data", False),
        ((), "http://cdn.test/x", "unknown", True),
        ((), "https://cdn.test/x", "frame", False),
        ((), "https://cdn.test/private/x.js", "script", False),
        (("cdn.test",), "https://a.cdn.test/x", "data", True),
        (("cdn.test",), "https://a.cdn.test/x", "frame", True),
        (("cdn.test",), "https://other.test/x.js", "script", False),
        (("=cdn.test",), "https://a.cdn.test/x.js", "script", False),
        ((), "file:///etc/passwd", "script", False),
        ((), "ws://site.test/", "data", False),
    ],
)
def test_c10_resource_when_it_is_asked_for_then_excludes_hosts_and_kind_decide(
    allow_hosts: tuple[str, ...], url: str, kind: str, allowed: bool
) -> None:
    assert (page(wall(allow_hosts=allow_hosts)).check(ask(url, kind)) is None) is allowed


@pytest.mark.parametrize(
    ("content_type", "allowed"),
    [("text/javascript; a=b", True), ("text/css", True), ("application/json", False), ("", False)],
)
def test_c10_resource_when_only_its_answer_says_what_it_is_then_data_of_another_host_are_refused(
    content_type: str, allowed: bool
) -> None:
    site = Site()
    site.content_type = content_type

    if allowed:
        assert fetch(wall(site=site), ask("http://cdn.test/x", "unknown")).body == b"found"
    else:
        with pytest.raises(RequestRefused, match="outside the boundary"):
            fetch(wall(site=site), ask("http://cdn.test/x", "unknown"))


@pytest.mark.parametrize(
    ("posts", "request_", "allowed"),
    [
        (False, ask(PAGE, method="POST"), False),
        (True, post("http://site.test/graphql"), True),
        (True, post("http://api.test/graphql"), True),
        (True, post("http://below.site.test/x"), False),
        (True, post("http://site.test/x", origin="http://below.site.test"), False),
        (True, post("http://site.test/x", origin="null"), False),
        (True, ask("http://site.test/x", method="POST"), False),
        (True, post("http://site.test/x", **{"content-type": "text/ping"}), False),
        (True, post("http://site.test/x", **{"content-type": "application/csp-report"}), False),
        (True, ask("http://site.test/form", "document", method="POST"), False),
        (True, ask("http://site.test/x", method="PUT"), False),
        (False, ask("http://site.test/x", method="HEAD"), True),
        (False, ask("http://site.test/x", method="OPTIONS"), False),
        (False, ask("http://site.test/x", method="OPTIONS", **{"access-control-request-method": "GET"}), True),
        (False, ask("http://site.test/x", method="OPTIONS", **{"access-control-request-method": "PUT"}), False),
        (False, ask("http://site.test/x", method="OPTIONS", **{"access-control-request-method": "POST"}), False),
        (
            True,
            ask(
                "http://api.test/x",
                method="OPTIONS",
                **{"access-control-request-method": "POST", "origin": "http://site.test"},
            ),
            True,
        ),
    ],
)
def test_c10_method_when_scripts_may_post_then_to_their_own_origin_and_named_hosts_and_never_by_a_form(
    posts: bool, request_: BrowserRequest, allowed: bool
) -> None:
    refusal = page(wall(posts=posts, allow_hosts=("api.test",))).check(request_)

    assert (refusal is None) is allowed, refusal


def test_c10_resource_when_robots_forbids_it_then_it_gets_no_turn_and_is_refused_from_then_on() -> None:
    turns, robots = NotingRateLimiter(), Robots(site="User-agent: *\nDisallow: /api/", cdn=None)
    here = wall(robots=robots, turns=turns)
    said = []
    for url in ("http://site.test/x.js", "http://site.test/api/1", "http://cdn.test/x.js"):
        try:
            fetch(here, ask(url, "script"))
        except RequestRefused as error:
            said.append((str(error), error.code))

    assert turns.turns == ["site.test:80"]
    (forbidden, for_good), (unknown, for_now) = said
    assert forbidden.startswith("robots.txt: ")
    assert unknown == "robots.txt of http://cdn.test: 503"
    assert (for_good, for_now) == (None, 951)
    assert page(here).check(ask("http://site.test/api/1")) == forbidden
    assert page(here).check_navigation("http://site.test/api/1") == forbidden


@pytest.mark.parametrize(
    ("page_url", "url", "is_public"),
    [
        (PAGE, "http://site.test/a.js", False),
        (PAGE, "http://site.test:8080/a.js", False),
        (PAGE, "http://other.test/a.js", True),
        (PAGE, "http://other.test:8080/a.js", True),
        ("http://other.test/page", "http://site.test/a.js", True),
        ("http://other.test/page", "http://other.test/page", True),
    ],
)
def test_l7_address_when_host_or_page_is_outside_the_boundary_then_it_has_to_be_a_public_one(
    page_url: str, url: str, is_public: bool
) -> None:
    site = Site()
    here = page(wall(site=site), page_url)
    asyncio.run(here.fetch(ask(url, "script"), SharedBudget(1 << 20).open()))

    assert [request.meta[PUBLIC_ONLY] for request in site.asked] == [is_public]


def test_l7_address_when_allow_hosts_names_its_host_then_it_is_what_private_networks_says() -> None:
    site = Site()
    fetch(wall(site=site, allow_hosts=("api.test",)), ask("http://api.test:8080/x"))

    assert [request.meta[PUBLIC_ONLY] for request in site.asked] == [False]


def test_c10_answer_when_it_is_fetched_then_it_is_decoded_and_the_headers_of_the_script_went_along() -> None:
    site = Site()
    answer = fetch(
        wall(site=site), ask("http://site.test/x", **{"x-key": "1", "if-none-match": "z", "range": "bytes=0-9"})
    )

    assert (answer.body, answer.status) == (b"found", 200)
    assert ("x-kind", "a") in answer.headers
    assert ("x-kind", "b") in answer.headers
    assert site.asked[0].headers["X-Key"] == b"1"
    assert not {b"If-None-Match", b"Range"} & set(site.asked[0].headers)


@pytest.mark.parametrize("kind", ["document", "script", "data"])
def test_c10_redirect_when_a_server_sends_one_then_it_is_the_answer_and_nothing_is_requested_there(kind: str) -> None:
    site = Site(x=b"http://other.test/x")
    answer = fetch(wall(site=site), ask("http://site.test/x", kind))

    assert (answer.status, dict(answer.headers)["location"]) == (302, "http://other.test/x")
    assert len(site.asked) == 1


@pytest.mark.parametrize(("size", "fails"), [(1000, False), (1001, True)])
def test_l6_body_when_it_is_larger_than_max_bytes_then_it_is_refused(size: int, fails: bool) -> None:
    here = wall(site=Site(x=b"a" * size))
    if fails:
        with pytest.raises(FetchFailed, match="more than 1000 bytes"):
            fetch(here, ask("http://site.test/x"))
    else:
        assert len(fetch(here, ask("http://site.test/x")).body) == size


def test_o8_budget_when_a_page_has_loaded_all_that_it_may_then_nothing_is_decoded_beyond_it() -> None:
    budget = SharedBudget(5000).open()
    here = wall(site=Site(x=b"a" * 100_000), max_bytes=1_000_000)

    with pytest.raises(FetchFailed, match="more than 5000 bytes of one page"):
        fetch(here, ask("http://site.test/x"), budget)

    assert budget.received < 6000
    assert budget.left == 0


def test_c10_script_when_two_pages_share_it_then_it_is_requested_once_and_data_each_time() -> None:
    site = Site()
    here = wall(site=site)
    for kind in ("script", "script", "data", "data"):
        fetch(here, ask(f"http://site.test/{kind}", kind))

    assert [request.url.rpartition("/")[2] for request in site.asked] == ["script", "data", "data"]


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://below.site.test"}, {"cookie": "a=1"}, {"authorization": "x"}, {"sec-fetch-site": "cross-site"}],
)
def test_l13_script_when_another_asker_or_other_credentials_want_it_then_it_is_requested_anew(
    headers: dict[str, str],
) -> None:
    site = Site()
    here = wall(site=site)
    fetch(here, ask("http://site.test/x.js", "script"))
    fetch(here, ask("http://site.test/x.js", "script", **headers))
    asyncio.run(
        page(here, "http://below.site.test/").fetch(
            ask("http://site.test/x.js", "script"), SharedBudget(1 << 20).open()
        )
    )

    assert len(site.asked) == 3


LOGIN = "https://site.test/login"
SCRIPT = "https://cdn.test/known.js"


def log_in(site: Site, *, allow_hosts: tuple[str, ...] = (), origins: tuple[str, ...] = ()) -> LoginWall:
    here = wall(site=site, allow_hosts=allow_hosts)
    return LoginWall(here, here.side_requests, origins=origins or ("http://site.test", "https://site.test"))


def send(login: LoginWall, request: BrowserRequest) -> None:
    asyncio.run(login.fetch(request, SharedBudget(1 << 20).open()))


@pytest.mark.parametrize(
    ("url", "kind", "before", "after"),
    [
        ("https://site.test/api", "data", True, True),
        (SCRIPT, "script", True, True),
        ("https://cdn.test/other.js", "script", True, False),
        ("https://cdn.test/known.js?p=secret", "script", True, False),
        ("https://below.site.test/x", "data", True, False),
        ("https://below.site.test/x", "document", False, False),
    ],
)
def test_c10_login_when_something_was_typed_then_no_other_host_is_asked_for_anything_new(
    url: str, kind: str, before: bool, after: bool
) -> None:
    login = log_in(Site())
    send(login, ask(SCRIPT, "script"))
    first = login.check(ask(url, kind))
    login.note_typing()

    refusal = login.check(ask(url, kind))

    assert (first is None, refusal is None) == (before, after)
    assert after or "render.allow_hosts may name its host" in (refusal or "")


def test_c10_login_when_a_known_script_is_loaded_after_typing_then_its_host_is_not_asked_again() -> None:
    site = Site()
    login = log_in(site)
    send(login, ask(SCRIPT, "script"))
    login.note_typing()

    send(login, ask(SCRIPT, "script"))

    assert [one.url for one in site.asked] == [SCRIPT]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("url", ["http://site.test/x", "http://sso.test/x"])
def test_n7_login_when_a_page_came_over_https_then_nothing_is_sent_over_http(url: str, method: str) -> None:
    login = log_in(Site(), allow_hosts=("sso.test",))
    before = login.check(ask(url, "document", method))
    send(login, ask(LOGIN, "document"))

    refusal = login.check(ask(url, "document", method))

    assert (before, refusal) == (None, "http after https")
    assert login.is_https


def test_l7_login_when_another_host_is_asked_then_at_a_public_address_only() -> None:
    site = Site()
    login = log_in(site, allow_hosts=("sso.test", "=cdn.test"), origins=("https://site.test",))
    for url in (LOGIN, "https://sso.test:8443/x"):
        send(login, ask(url, "document"))
    send(log_in(site), ask(SCRIPT, "script"))

    assert [one.meta[PUBLIC_ONLY] for one in site.asked] == [False, False, True]
