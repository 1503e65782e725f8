"""One login by a form or by cookies: done once, shared by all requests, done again once if it is lost (C10)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Final, Protocol

from searchcrawl import clock, urls
from searchcrawl.codes import is_retried
from searchcrawl.exceptions import InvalidUrl
from searchcrawl.html.page import has_password_field
from searchcrawl.http.cookies import CookieJar
from searchcrawl.login.form import FilledForm, LoginFailed, Wanted, fill_form

logger = logging.getLogger(__name__)

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
#: These have the same sent again.
_SENT_AGAIN: Final = frozenset({307, 308})
_MAX_REDIRECTS: Final = 10
#: A login that cannot be done now is tried so often in a run, with growing pauses.
_MAX_TRIES: Final = 5
_PAUSE_SECONDS: Final = 2.0
_MAX_RENEWALS: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a request of the login; ``body`` without content codings, ``text`` decoded from ``charset``."""

    url: str
    status: int
    location: str | None = None
    body: bytes = field(default=b"", repr=False)
    text: str = field(default="", repr=False)
    charset: str = "utf-8"


class Ask(Protocol):
    """Sends one request with the cookies that belong to it, and follows nothing; raises LoginFailed."""

    def __call__(self, url: str, form: bytes | None = None, *, referrer: str | None = None) -> Awaitable[Answer]:
        """GET, or POST of ``form``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the session has to do: ``url`` and ``wanted`` as in ``[login]``, ``cookies`` to begin with.

    ``start`` is a page that only those see who are logged in, asked for where ``check`` was not met before.
    """

    url: str | None
    wanted: Wanted | None = None
    cookies: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cookie_origins: Collection[str] = ()
    check: str | None = None
    start: str | None = None


class LoginSession:
    """The state of one login; all methods are for the event loop.

    ``generation`` rises with each login, and is 0 while there is none: who was sent with an older one may be
    sent again.
    """

    def __init__(self, plan: Plan, jar: CookieJar, ask: Ask, *, now: Callable[[], float] = clock.monotonic) -> None:
        self._plan = plan
        self._jar = jar
        self._ask = ask
        self._now = now
        self._task: asyncio.Task[None] | None = None
        self._failed: LoginFailed | None = None
        self._again_at = 0.0
        self._tries = 0
        self._renewals = 0
        self._logins = 0
        self._places: set[str] = {_place(plan.url)} if plan.url is not None else set()
        self._form: FilledForm | None = None
        check = plan.check or ""
        self._checks = {check.encode(), check.encode("windows-1252", "xmlcharrefreplace")}
        self.generation = 0

    async def ready(self) -> None:
        """Returns once somebody is logged in; raises LoginFailed."""
        if self.generation:
            return
        if self._failed is not None and (not self._failed.transient or self._now() < self._again_at):
            raise self._failed
        await self._log_in()

    async def renew(self, generation: int) -> bool:
        """Whether there is a login newer than ``generation``: a lost one is renewed once in a run."""
        if self.generation > generation:
            return True
        if self._task is None:
            if self._renewals >= _MAX_RENEWALS or not self.generation:
                # Not again in this run, or in vain.
                return False
            self._renewals += 1
            logger.info("the login was lost: once more")
        try:
            await self._log_in()
        except LoginFailed:
            return False
        return True

    @property
    def pause_seconds(self) -> float:
        """How long to wait after a transient failure."""
        return max(self._again_at - self._now(), 0.0)

    def is_login_page(self, url: str) -> bool:
        """Whether a URL is that of the login, whatever its query."""
        return _place(url) in self._places

    def looks_like_login(self, body: bytes) -> bool:
        """Whether a page asks for the password again: it has the form, and not what only others have."""
        check = self._plan.check
        if self._form is None and check is None:
            return False
        if not has_password_field(body, self._form.password_field if self._form is not None else None):
            return False
        return check is None or not any(form in body for form in self._checks)

    async def _log_in(self) -> None:
        if self._task is None:
            self._task = asyncio.ensure_future(self._try())
            self._task.add_done_callback(self._done)
        # One page that is cancelled must not take the login from the others.
        await asyncio.shield(self._task)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled():
            # Whoever waited has it; nobody may have.
            task.exception()

    async def _try(self) -> None:
        # Until it is done, others wait for it.
        self.generation = 0
        try:
            await self._go_through()
        except LoginFailed as error:
            self._tries += 1
            final = not error.transient or self._tries >= _MAX_TRIES
            self._failed = LoginFailed(str(error), transient=not final)
            self._again_at = self._now() + _PAUSE_SECONDS * 2**self._tries
            logger.warning("login failed: %s", error)
            raise self._failed from None
        self._failed = None
        self._tries = 0
        self._logins += 1
        self.generation = self._logins
        logger.info("logged in")

    async def _go_through(self) -> None:
        plan = self._plan
        self._jar.clear()
        for name, value in plan.cookies:
            for origin in plan.cookie_origins:
                self._jar.set(f"{origin}/", name, value)
        answer = None
        if plan.url is not None:
            answer = await self._follow(await self._ask(plan.url))
            if plan.wanted is not None:
                answer = await self._send_form(answer, plan.url, plan.wanted)
            elif answer.status >= 400:
                raise _refused("login.url answered", answer)
        await self._check(answer)

    async def _send_form(self, page: Answer, url: str, wanted: Wanted) -> Answer:
        if page.status != 200:
            raise _refused("the login page answered", page)
        own = urls.parse(url).origin
        if urls.parse(page.url).origin != own:
            raise LoginFailed(f"the login page leads to another origin: {_shown(page.url)}; name that one in login.url")
        form = fill_form(page.text, url=page.url, charset=page.charset, wanted=wanted)
        if urls.parse(form.url).origin != own:
            raise LoginFailed(f"the form leads to another origin: {_shown(form.url)}; nothing was sent")
        self._form = form
        self._places |= {_place(page.url), _place(form.url)}
        answer = await self._ask(form.url, form.body, referrer=page.url)
        return await self._follow(answer, form=form)

    async def _follow(self, answer: Answer, *, form: FilledForm | None = None) -> Answer:
        """The answer at the end of all redirects; what was sent is sent again to its own origin alone."""
        for _ in range(_MAX_REDIRECTS):
            if answer.status not in _REDIRECTS or not answer.location:
                return answer
            try:
                target = urls.resolve(answer.location, answer.url)
            except InvalidUrl:
                raise LoginFailed(f"{_shown(answer.url)} redirects to what is no URL") from None
            if form is None or answer.status not in _SENT_AGAIN:
                form = None
                answer = await self._ask(target)
            elif urls.parse(target).origin == urls.parse(form.url).origin:
                answer = await self._ask(target, form.body, referrer=answer.url)
            else:
                raise LoginFailed(f"the form is sent on to another origin: {_shown(target)}; nothing was sent there")
        raise LoginFailed(f"more than {_MAX_REDIRECTS} redirects from {_shown(self._plan.url or '')}")

    async def _check(self, answer: Answer | None) -> None:
        """Raises LoginFailed where the last page of the login, or else the start page, does not look logged in."""
        check = self._plan.check
        if check is not None:
            if answer is not None and check in answer.text:
                return
            if self._plan.start is not None:
                answer = await self._follow(await self._ask(self._plan.start))
            if answer is None or check not in answer.text:
                if answer is not None and answer.status >= 500:
                    raise _refused("the start page answered", answer)
                raise LoginFailed("login.check is on no page after the login: wrong user name or password?")
        elif answer is not None and self._form is not None:
            if answer.status >= 400:
                raise _refused("the login was answered with", answer)
            if self.looks_like_login(answer.body):
                raise LoginFailed("the form is shown again: wrong user name or password?")


def _refused(what: str, answer: Answer) -> LoginFailed:
    return LoginFailed(f"{what} {answer.status}", transient=is_retried(answer.status))


def _place(url: str) -> str:
    parsed = urls.parse(url)
    return f"{parsed.origin}{parsed.path}"


def _shown(url: str) -> str:
    """A URL for messages: its query may be what opens doors."""
    return url.partition("?")[0][:200]
