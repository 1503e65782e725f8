"""Which redirects say that a login is lost: those to its page, and none to its neighbours (C10)."""

from __future__ import annotations

import pytest

from searchcrawl.kinds.web.login.session import LoginPages

SITE = "http://site.test"


def pages(login: str, *, page: str | None = None, action: str | None = None, start: str = "/start") -> LoginPages:
    """The pages of a login that was carried out; by default all of it happened at ``login``."""
    made = LoginPages(SITE + login, fronts=[SITE + start])
    made.note(SITE + (login if page is None else page), SITE + (login if action is None else action))
    return made


@pytest.mark.parametrize(
    ("login", "asked", "is_lost"),
    [
        ("/login", "/login", True),
        ("/login", "/login?next=/page", True),
        ("/login", "/login?lang=de&reason=timeout", True),
        ("/login?next=%2F", "/login?next=%2Fpage", True),
        ("/login?state=0123456789abcdef0123", "/login?state=fedcba9876543210fedc", True),
        ("/login?lang=de", "/login?next=/page", True),
        ("/accounts/login/", "/accounts/login/?next=/x", True),
        ("/wp-login.php", "/wp-login.php?redirect_to=https%3A%2F%2Fsite.test%2Fx&reauth=1", True),
        ("/index.php?action=login", "/index.php?action=login", True),
        ("/index.php?action=login", "/index.php?next=/page&action=login", True),
        ("/index.php?action=login", "/index.php?PHPSESSID=0123456789abcdef0123456789&action=login", True),
        ("/index.php?action=login", "/index.php?action=login;sa=again", True),
        ("/index.php?title=Special:UserLogin", "/index.php?title=Special%3AUserLogin&returnto=Page", True),
        ("/ucp.php?mode=login", "/ucp.php?mode=login&redirect=index.php", True),
        ("/?q=user/login", "/?q=user%2Flogin&destination=node/1", True),
        ("/?login", "/?login&next=/page", True),
        ("/index.php?action=login", "/index.php?topic=5", False),
        ("/index.php?action=login", "/index.php?topic=5;next=/page", False),
        ("/index.php?action=login", "/index.php?action=profile", False),
        ("/index.php?action=login", "/index.php", False),
        ("/index.php?title=Special:UserLogin", "/index.php?title=Page&redirect=no", False),
        ("/ucp.php?mode=login", "/ucp.php?mode=privacy", False),
        ("/portal.aspx?page=login&lang=de", "/portal.aspx?page=news&lang=de", False),
        ("/?q=user/login", "/?q=node/5", False),
        ("/?q=user/login", "/", False),
        ("/?login", "/?p=5", False),
        # A form on the front page: the page that answers says whether somebody is logged in.
        ("/", "/", False),
        ("/", "/?p=5", False),
        ("/index.php", "/index.php?topic=5", False),
        ("/start", "/start?topic=5", False),
        ("/start", "/start", False),
        ("/login", "/log", False),
        ("/login", "/login/help", False),
    ],
)
def test_redirect_when_it_leads_to_the_login_then_it_is_lost_and_at_another_page_not(
    login: str, asked: str, is_lost: bool
) -> None:
    assert (SITE + asked in pages(login)) is is_lost
    # Nothing is at another origin.
    assert "http://other.test" + asked not in pages(login)
    assert "http://site.test:81" + asked not in pages(login)


@pytest.mark.parametrize("front", ["/", "/index.html", "/start", "/index.php?topic=5"])
def test_redirect_when_the_action_of_the_form_is_the_front_page_then_nothing_is_lost(front: str) -> None:
    made = pages("/login", action="/" if front == "/" else front.partition("?")[0])

    assert SITE + front not in made
    assert f"{SITE}/login?next={front}" in made


def test_redirect_when_it_leads_to_the_page_or_the_action_of_the_form_then_it_is_lost() -> None:
    made = pages("/members", page="/sso/enter?service=members", action="/sso/check")

    assert [SITE + path in made for path in ("/members", "/sso/enter?service=members&x=1", "/sso/check?e=1")] == [
        True
    ] * 3
    assert SITE + "/sso/enter?service=shop" not in made


def test_redirect_when_the_form_has_moved_then_only_the_last_counts() -> None:
    made = pages("/members", page="/enter-1", action="/check-1")
    made.note(SITE + "/enter-2", SITE + "/check-2")

    assert [SITE + path in made for path in ("/enter-1", "/check-1", "/enter-2", "/check-2")] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("login", "action", "opened", "asked"),
    [
        # Scripts without a query in the login's URL, of which nobody could know before
        ("/portal", None, "/portal?id=1", "/portal?id=2"),
        ("/members.php?do=login", None, "/members.php", "/members.php"),
        ("/login", "/board", "/board", "/board"),
        ("/login", "/board", "/board?topic=1", "/board?topic=2"),
    ],
)
def test_redirect_when_pages_were_opened_there_then_nothing_is_lost(
    login: str, action: str | None, opened: str, asked: str
) -> None:
    made = pages(login, action=action)
    before = SITE + asked in made
    made.note_opened(SITE + opened)
    made.note(SITE + login, SITE + (action or login))

    assert (before, SITE + asked in made) == (True, False)


def test_login_page_when_it_was_opened_by_a_user_who_is_logged_in_then_redirects_to_it_still_count() -> None:
    made, script = pages("/login"), pages("/index.php?action=login")
    made.note_opened(f"{SITE}/login")
    made.note_opened(f"{SITE}/login?next=/page")
    script.note_opened(f"{SITE}/index.php?action=login")

    assert f"{SITE}/login?next=/page" in made
    assert f"{SITE}/index.php?action=login&next=/page" in script


def test_pages_when_there_is_no_url_then_nothing_is_the_login() -> None:
    assert f"{SITE}/login" not in LoginPages(None)


def test_query_when_it_is_long_then_is_read_in_no_time() -> None:
    long = "&".join(f"a{number}={number}" for number in range(100_000))

    assert f"{SITE}/index.php?{long}" not in pages("/index.php?action=login")
