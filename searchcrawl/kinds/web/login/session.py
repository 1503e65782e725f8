"""One login by a form or by cookies: done once for all requests, and again when it is lost (C10).

The URLs at which a source asks for the login are told from pages that differ in the query alone. A login that seems lost is
done again as long as that opens pages, and not for pages that are closed to this user.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import unquote_plus

from searchcrawl import clock, urls
from searchcrawl.codes import facts_of, is_retried
from searchcrawl.html.encoding import decode
from searchcrawl.html.raw_page import has_password_field
from searchcrawl.http.content_coding import BrokenCoding
from searchcrawl.http.side_requests import Form, SideAnswer, SidePolicy, SideRequestFailed, SideRequests
from searchcrawl.kinds.web.login.cookie_jar import CookieJar
from searchcrawl.kinds.web.login.form import LoginFailed, fill_form
from searchcrawl.render.login_steps import LoginEnd, LoginSteps, StepFailed
from searchcrawl.render.rendered_page import BrowserUnavailable, RenderFailed
from searchcrawl.sources.fetch_tables import Login

logger = logging.getLogger(__name__)

_MAX_PAGE_BYTES: Final = 2_000_000
_MAX_REDIRECTS: Final = 10
#: How often a login with a transient failure is tried in a run, with growing pauses.
_MAX_TRIES: Final = 5
_PAUSE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPage:
    """A page in answer to the login: its body without content codings, and its text."""

    url: str
    status: int
    body: bytes = field(repr=False)
    text: str = field(repr=False)
    charset: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPlan:
    """What a login has to do: ``url`` and ``form`` as in ``[login]``, ``cookies`` to begin with.

    ``start`` is a page that is another one for users who are logged in; it is requested where the login page does
    not show ``check``. With ``steps`` a browser logs in. ``fronts`` are the start URLs without their queries: a redirect to one of them does not mean by
    itself that the login is lost.
    """

    url: str | None
    form: Login | None = None
    cookies: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cookie_origins: Collection[str] = ()
    check: str | None = None
    start: str | None = None
    steps: LoginSteps | None = None
    fronts: Collection[str] = ()
    default_charset: str = "utf-8"


#: What carries out the steps of a login; it raises StepFailed, RenderFailed and BrowserUnavailable.
LogIn = Callable[[LoginSteps], Awaitable[LoginEnd]]


class LoginSession:
    """The state of one login; all methods are for the event loop.

    ``generation`` counts the logins, and is 0 while nobody is logged in. A request that was sent with a lower number
    may be sent again. ``renewals`` says how often that is done.
    """

    def __init__(
        self,
        plan: LoginPlan,
        jar: CookieJar,
        side: SideRequests,
        *,
        log_in: LogIn | None = None,
    ) -> None:
        self._plan = plan
        self._log_in_by_browser = log_in
        self._jar = jar
        self._side = side
        self._policy = SidePolicy(
            kind="login",
            max_bytes=_MAX_PAGE_BYTES,
            max_redirects=_MAX_REDIRECTS,
            # After a form it often leads to a page that nobody wants to have: the cookies are set by then.
            ends_at_excluded=True,
        )
        self._task: asyncio.Task[None] | None = None
        self._failed: LoginFailed | None = None
        self._again_at = 0.0
        self._tries = 0
        self.renewals = Renewals()
        self._logins = 0
        self._login_pages = LoginPages(plan.url, plan.fronts)
        #: whether the login had a password field, and the name of it, where it has one
        self._has_form = False
        self._password_field: str | None = None
        check = plan.check or ""
        self._check_was_shown = False
        self._checks = {check.encode(), check.encode("windows-1252", "xmlcharrefreplace")}
        self.generation = 0

    async def wait_until_logged_in(self) -> None:
        """Logs in unless there is a login; raises LoginFailed."""
        if self.generation:
            return
        if self._failed is not None and (not self._failed.transient or clock.monotonic() < self._again_at):
            raise self._failed
        await self._log_in()

    async def renew(self, generation: int, *, may_begin: bool = True) -> bool:
        """Whether there is a login newer than ``generation``, that of a request which was not logged in.

        A lost login is renewed as long as that opens pages; without ``may_begin`` only if another page asks for it.
        """
        if self.generation > generation:
            return True
        if self._task is None:
            # Where nobody is logged in, the last try failed.
            if not (self.generation and may_begin and self.renewals.may_begin()):
                return False
            self.renewals.begin()
            logger.info("the login was lost: once more")
        try:
            await self._log_in()
        except LoginFailed:
            return False
        return True

    def note_closed(self, generation: int) -> None:
        """Notes that a request of a login was refused."""
        if generation == self.generation > 0:
            self.renewals.note_closed()

    def is_undecided(self, generation: int) -> bool:
        """Whether answers that are under way may still show that the login ``generation`` opens pages."""
        return generation == self.generation > 0 and self.renewals.is_undecided

    @property
    def failure(self) -> LoginFailed | None:
        """Why nobody is logged in; None where somebody is, or nobody has tried."""
        return None if self.generation else self._failed

    @property
    def pause_seconds(self) -> float:
        """How long to wait after a transient failure."""
        return max(self._again_at - clock.monotonic(), 0.0)

    def is_login_page(self, url: str, *, permanent: bool = False) -> bool:
        """Whether a URL is that of the login.

        That of ``[login]`` may be the front page as well, and what answers there decides; after a redirect that is
        ``permanent`` nothing would be asked for there, and a page would count as moved.
        """
        return url in self._login_pages or (permanent and url == self._plan.url)

    def note_opened(self, url: str, body: bytes | None, generation: int, *, was_closed: bool) -> bool:
        """Notes that the page at ``url`` was answered to a request of a login; returns whether the last login opened it.

        It did so if the one before was refused (``was_closed``), or if the page shows ``check``, as far as pages of the
        source do, and ``body`` is not None (a page that has not changed).
        """
        self._login_pages.note_opened(url)
        if generation != self.generation:
            return False
        shows_check = body is not None and self._plan.check is not None and self._shows_check(body)
        self._check_was_shown = self._check_was_shown or shows_check
        opened = was_closed or body is None or shows_check or not self._check_was_shown
        if opened:
            self.renewals.note_opened(was_closed=was_closed)
        return opened

    def _shows_check(self, body: bytes) -> bool:
        return any(form in body for form in self._checks)

    def looks_like_login(self, body: bytes) -> bool:
        """Whether a page asks for the password again: it has the form, and does not show ``check``."""
        check = self._plan.check
        if not self._has_form and check is None:
            return False
        if not has_password_field(body, self._password_field):
            return False
        return check is None or not self._shows_check(body)

    async def _log_in(self) -> None:
        if self._task is None:
            self._task = asyncio.ensure_future(self._try())
            self._task.add_done_callback(self._end_task)
        # If one page is cancelled, the others must still get the login.
        await asyncio.shield(self._task)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            # The error is read here, in case no request waits for it any more.
            task.exception()

    async def _try(self) -> None:
        # Other requests wait until it is done.
        self.generation = 0
        try:
            await self._carry_out(self._plan)
        except LoginFailed as error:
            self._tries += 1
            final = not error.transient or self._tries >= _MAX_TRIES
            self._failed = LoginFailed(str(error), transient=not final)
            self._again_at = clock.monotonic() + _PAUSE_SECONDS * 2**self._tries
            logger.warning("login failed: %s", error)
            raise self._failed from None
        self._failed = None
        self._tries = 0
        self._logins += 1
        self.generation = self._logins
        logger.info("logged in")

    async def _carry_out(self, plan: LoginPlan) -> None:
        self._jar.clear()
        for name, value in plan.cookies:
            for origin in plan.cookie_origins:
                self._jar.set(f"{origin}/", name, value)
        page = None
        if plan.steps is not None:
            await self._take_steps(plan.steps)
            return
        if plan.url is not None:
            page = await self._fetch(plan.url)
            if plan.form is not None:
                page = await self._send_form(page, plan.url, plan.form)
            elif page.status >= 400:
                raise _refusal("login.url answered", page)
        await self._check(page)

    async def _send_form(self, page: LoginPage, url: str, login: Login) -> LoginPage:
        if page.status != 200:
            raise _refusal("the login page answered", page)
        own = urls.parse(url).origin
        if urls.parse(page.url).origin != own:
            shown = urls.without_query(page.url)[:200]
            raise LoginFailed(f"the login page leads to another origin: {shown}; name that one in login.url")
        form = fill_form(page.text, url=page.url, charset=page.charset, login=login)
        if urls.parse(form.url).origin != own:
            raise LoginFailed(
                f"the form leads to another origin: {urls.without_query(form.url)[:200]}; nothing was sent"
            )
        self._has_form, self._password_field = True, form.password_field
        self._login_pages.note(page.url, form.url)
        return await self._fetch(form.url, Form(form.body, page.url))

    async def _take_steps(self, steps: LoginSteps) -> None:
        if self._log_in_by_browser is None:
            raise LoginFailed("there is no browser")
        try:
            end = await self._log_in_by_browser(steps)
        except StepFailed as error:
            raise LoginFailed(str(error), transient=is_retried(error.status)) from error
        except RenderFailed as error:
            raise LoginFailed(str(error), transient=facts_of(error.code).retried) from error
        except BrowserUnavailable as error:
            raise LoginFailed(str(error)) from error
        if end.form_url is not None:
            self._has_form, self._password_field = True, end.password_field
            self._login_pages.note(end.form_url, end.form_url)
        _check_end(steps, end)
        self._jar.take(end.cookies)

    async def _fetch(self, url: str, form: Form | None = None) -> LoginPage:
        try:
            answer = await self._side.fetch(url, self._policy, form=form)
        except SideRequestFailed as error:
            raise LoginFailed(str(error), transient=error.transient) from error
        return await asyncio.to_thread(self._read, answer)

    def _read(self, answer: SideAnswer) -> LoginPage:
        try:
            body = answer.decoded_body(_MAX_PAGE_BYTES)
        except BrokenCoding as error:
            raise LoginFailed(f"the login page cannot be read: {error}", transient=error.cut) from None
        content_type = answer.header("Content-Type")
        text, charset = decode(body, content_type=content_type, default_charset=self._plan.default_charset)
        return LoginPage(url=answer.url, status=answer.status, body=body, text=text, charset=charset)

    async def _check(self, page: LoginPage | None) -> None:
        """Raises LoginFailed if neither the last page of the login nor the start page looks logged in."""
        check = self._plan.check
        if check is not None:
            if page is not None and check in page.text:
                return
            if self._plan.start is not None:
                page = await self._fetch(self._plan.start)
            if page is None or check not in page.text:
                if page is not None and page.status >= 500:
                    raise _refusal("the start page answered", page)
                raise LoginFailed("login.check is on no page after the login: wrong user name or password?")
        elif page is not None and self._has_form:
            if page.status >= 400:
                raise _refusal("the login was answered with", page)
            if self.looks_like_login(page.body):
                raise LoginFailed("the form is shown again: wrong user name or password?")


def _refusal(what: str, page: LoginPage) -> LoginFailed:
    return LoginFailed(f"{what} {page.status}", transient=is_retried(page.status))


def _check_end(steps: LoginSteps, end: LoginEnd) -> None:
    """Raises LoginFailed if the last page of a login in the browser does not look logged in."""
    if steps.check is not None and not end.shows_check:
        raise LoginFailed(f"login.check is on no page after the login: wrong user name or password?{end.refused}")
    if end.status >= 400:
        raise LoginFailed(f"the login was answered with {end.status}", transient=is_retried(end.status))
    if steps.check is None and end.asks_again:
        raise LoginFailed(f"the form is shown again: wrong user name or password?{end.refused}")


#: ``/index.php`` and the like are the front page of a folder, whatever their ending.
_FRONT_NAME: Final = re.compile(r"/(?:index|default)(?:\.[A-Za-z0-9]+)?\Z", re.IGNORECASE)
#: A value of this length that has a digit is a token, which another visit would not have.
_TOKEN_CHARACTERS: Final = 20
#: The most parameters of a query that are looked at.
_MAX_PARAMETERS: Final = 100


@dataclass(frozen=True, slots=True)
class _Address:
    """A URL: without its query, and the parameters that tell its page from others there."""

    base: str
    told: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, url: str) -> Self:
        parsed = urls.parse(url)
        return cls(f"{parsed.origin}{parsed.path}", frozenset(_find_telling(parsed.query)))


class LoginPages:
    """The pages of one login: that of ``[login]``, and where its form was found at the last login, and is sent to.

    ``url in pages`` says whether a redirect to it means that nobody is logged in. One to the front page, to one of
    ``fronts`` (URLs without a query), or to where other pages were opened, does so only if the query is that of the
    login: for all others the page that answers will show.
    """

    def __init__(self, url: str | None, fronts: Collection[str] = ()) -> None:
        self._given = frozenset() if url is None else frozenset([_Address.of(url)])
        self._fronts = set(fronts)
        self._pages = self._given
        self._all = self._given

    def note(self, page_url: str, action_url: str) -> None:
        """Notes the page of the form, and where it is sent to; what was noted before is forgotten."""
        self._pages = self._given | {_Address.of(page_url)}
        self._all = self._pages | {_Address.of(action_url)}

    def note_opened(self, url: str) -> None:
        """Notes that a page was opened that is not the form."""
        if not any(url.startswith(address.base) for address in self._all):
            return
        opened = _Address.of(url)
        # A login's own page may greet those who are logged in.
        is_login = any(
            page.base == opened.base and page.told <= opened.told and (page.told or not opened.told)
            for page in self._pages
        )
        if not is_login and any(address.base == opened.base for address in self._all):
            self._fronts.add(opened.base)

    def __contains__(self, url: str) -> bool:
        asked = _Address.of(url)
        return any(self._is_at(address, asked) for address in self._all)

    def _is_at(self, address: _Address, asked: _Address) -> bool:
        if address.base != asked.base:
            return False
        if address.told and address.told <= asked.told:
            return True
        return (not address.told or not asked.told) and not self._is_front(address.base)

    def _is_front(self, base: str) -> bool:
        return base in self._fronts or (base.count("/") == 3 and base.endswith("/")) or bool(_FRONT_NAME.search(base))


def _find_telling(query: str) -> Iterator[tuple[str, str]]:
    """The parameters that may tell pages apart: no addresses to return to, and no tokens."""
    for number, part in enumerate(query.replace(";", "&").split("&", _MAX_PARAMETERS)):
        name, _, value = part.partition("=")
        value = unquote_plus(value)
        is_address = value.startswith("/") or "://" in value
        is_token = len(value) >= _TOKEN_CHARACTERS and any(character.isdigit() for character in value)
        if part and number < _MAX_PARAMETERS and not is_address and not is_token:
            yield unquote_plus(name), value


#: After so many renewals in a row that did not open what was closed, one page is no sign any more.
_PATIENCE: Final = 3
#: Then so many pages in a row have to be closed, and twice as many after each further renewal that did not help.
_CLOSED_IN_A_ROW: Final = 5
#: So many pages in a row show that a login is lost, if few renewals were in vain.
_SURE: Final = 3
#: The most closed pages for which an answer under way may still show that the last login helped.
_MOST_UNDECIDED: Final = 10


class Renewals:
    """The renewals of one run.

    It hears of pages that the last login opened, and of those that showed once more that nobody is logged in. A page
    that stays closed after a renewal may be one that this user must not see; while others open, it says nothing.
    """

    def __init__(self) -> None:
        self._begun = 0
        #: renewals in a row after which no page opened that was closed before
        self._in_vain = 0
        self._has_opened = False
        self._closed_in_a_row = 0

    @property
    def is_undecided(self) -> bool:
        """Whether the last renewal has opened no page so far, but still may."""
        return self._begun > 0 and not self._has_opened and self._closed_in_a_row <= _MOST_UNDECIDED

    @property
    def in_doubt(self) -> bool:
        """Whether the last renewal did not open what was closed: one page alone is no sure sign."""
        return self._in_vain > 0

    @property
    def seems_lost(self) -> bool:
        """Whether several pages in a row were closed."""
        return self._closed_in_a_row >= _SURE

    def note_opened(self, *, was_closed: bool) -> None:
        """Notes a page that the last login opened; ``was_closed``: the one before did not."""
        self._has_opened = True
        self._closed_in_a_row = 0
        if was_closed:
            self._in_vain = 0

    def note_closed(self) -> None:
        """Notes a page that the last login did not open."""
        self._closed_in_a_row += 1

    def may_begin(self) -> bool:
        """Whether a page that is closed is a reason to log in once more."""
        if not self._begun:
            return True
        if self._in_vain < _PATIENCE:
            return self._has_opened
        return self._has_opened and self._closed_in_a_row >= _CLOSED_IN_A_ROW << (self._in_vain - _PATIENCE)

    def begin(self) -> None:
        """Notes that the login is done once more."""
        self._begun += 1
        self._in_vain += 1
        self._has_opened = False
        self._closed_in_a_row = 0
