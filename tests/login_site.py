"""A site whose pages are for those who are logged in; the host name says how. Threads, port 0, loopback only.

``basic.acme.test``, ``digest.acme.test``, ``form.acme.test`` and ``cookies.acme.test`` have the same pages, for the
same user; everything else is for everybody, and only noted.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import threading
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, quote

from tests.threaded_site import QuietHandler, Seen, ThreadedSite

USER: Final = "wanda"
PASSWORD: Final = "c4n4ry-of-the-login"
COOKIE: Final = "c4n4ry-of-the-cookie"
NAMES: Final = ("one", "two", "three", "four", "five")
LOG_OUT: Final = "Log out, wanda"


@dataclass
class State:
    """What the site knows; ``lasts`` is how many pages a session is good for, ``wall`` how its end is told.

    With ``forgets`` the sessions of the first login end at its first page, and whoever has none is given one of a visitor.
    Of two requests that are then under way, one is answered only after the next login. Each page of the hosts ``counting``
    sets 40 cookies of its own, for all hosts. The form is at ``login``; ``leads`` are redirects: the start page links to them.
    What is ``closed`` opens to nobody, and there are ``more`` pages.
    """

    lasts: int = 1_000_000
    wall: str = "redirect"
    nonce_lasts: int = 1_000_000
    algorithm: str = "SHA-256"
    login: str = "/login"
    action: str = "/login"
    closed: tuple[str, ...] = ()
    more: int = 0
    leads: dict[str, str] = field(default_factory=dict)
    forgets: bool = False
    counting: tuple[str, ...] = ()
    sessions: dict[str, int] = field(default_factory=dict)
    nonces: dict[str, int] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    logins: int = 0
    strangers: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.changed = threading.Condition(self.lock)


class LoginSite(ThreadedSite):
    """The site; ``state`` may be changed while it runs."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.state = State()

    def url(self, path: str = "/", host: str = "form") -> str:
        return super().url(path, f"{host}.acme.test")

    def seen(self, host: str = "form") -> list[Seen]:
        """The requests to ``HOST.acme.test``."""
        return super().seen(f"{host}.acme.test")


class _Handler(QuietHandler):
    @property
    def state(self) -> State:
        state: State = self.site.state
        return state

    def do_GET(self) -> None:
        seen = self.read_request()
        host, body, path = seen.host, seen.body, self.path.partition("?")[0]
        with self.state.lock:
            kind = host.partition(".")[0]
            if kind == "form" and (
                self.command == "POST" or f"{self.path}&".startswith((f"{self.state.login}&", "/login?"))
            ):
                self._log_in(body)
            elif kind not in _MAY_SEE or _MAY_SEE[kind](self):
                self._page(path, host)

    do_POST = do_GET

    def _page(self, path: str, host: str) -> None:
        if path == "/robots.txt":
            self.answer(200, "User-agent: *\nDisallow: /two.html\n", "text/plain")
        elif path == "/sitemap.xml":
            listed = f"<urlset><url><loc>http://{host}/mapped.html</loc></url></urlset>"
            self.answer(200, listed, "application/xml")
        elif path == "/away.html":
            self.answer(302, "", Location=f"http://elsewhere.acme.test:{host.rpartition(':')[2]}/")
        elif path in self.state.leads:
            self.answer(302, "", Location=self.state.leads[path])
        elif path == "/" or path[1:-5] in (*NAMES, "mapped") or path.startswith("/more-") or "topic=" in self.path:
            names = (*NAMES, "away", "login", *(f"more-{number}" for number in range(self.state.more)))
            links = "".join(f'<a href="/{name}.html">{name}</a>' for name in names)
            links += "".join(f'<a href="{lead}">{lead}</a>' for lead in self.state.leads)
            self.answer(
                200,
                f"<title>{path}</title><p>The inner page {self.path} of {host}. {LOG_OUT}</p>{links}".replace(
                    "/login.html", "/login"
                ),
                cookies=self._count_views(path, host),
            )
        else:
            self.answer(404, "<p>There is nothing</p>")

    def _count_views(self, path: str, host: str) -> list[str]:
        if host.partition(".")[0] not in self.state.counting:
            return []
        page = path.strip("/").replace(".", "-")
        return [f"viewed-{page}-{number}=1; Path=/; Domain=acme.test" for number in range(40)]

    def _basic(self) -> bool:
        wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") == wanted:
            return True
        self.answer(401, "who?", **{"WWW-Authenticate": 'Basic realm="inner"'})
        return False

    def _digest(self) -> bool:
        state = self.state
        given = dict(re.findall(r'(\w+)="?([^",]*)"?', self.headers.get("Authorization") or ""))
        nonce = given.get("nonce", "")
        good = nonce in state.nonces and given.get("response") == self._expected(given)
        stale = good and state.nonces[nonce] <= 0
        if good and not stale and int(given["nc"], 16) > 0:
            state.nonces[nonce] -= 1
            return True
        fresh = secrets.token_hex(8)
        state.nonces[fresh] = state.nonce_lasts
        challenge = f'Digest realm="inner", qop="auth", algorithm={state.algorithm}, nonce="{fresh}", opaque="o"'
        self.answer(401, "who?", **{"WWW-Authenticate": challenge + (", stale=true" if stale else "")})
        return False

    def _expected(self, given: dict[str, str]) -> str:
        def h(text: str) -> str:
            return hashlib.new("md5" if self.state.algorithm == "MD5" else "sha256", text.encode()).hexdigest()

        asked = h(f"{self.command}:{self.path}")
        used = f"{given.get('nonce')}:{given.get('nc')}:{given.get('cnonce')}:{given.get('qop')}"
        return h(f"{h(f'{USER}:inner:{PASSWORD}')}:{used}:{asked}")

    def _cookies(self) -> bool:
        if self.cookie("session") == COOKIE:
            return True
        self.answer(401, "who?")
        return False

    def _form(self) -> bool:
        session, state, path = self.cookie("session"), self.state, quote(self.path)
        if state.forgets and state.logins == 1 and self.path.endswith(".html"):
            state.sessions.clear()
        if state.sessions.get(session, 0) > 0 and self.path not in state.closed:
            # Only pages wear it out.
            state.sessions[session] -= self.path.endswith(".html")
            return True
        if state.forgets:
            self._meet_stranger()
        elif state.wall == "redirect":
            self.answer(302, "", Location=f"{state.login}{'&' if '?' in state.login else '?'}next={path}")
        elif state.wall == "refresh":
            self.answer(200, f'<meta http-equiv="refresh" content="0; url={state.login}">One moment')
        elif state.wall == "form":
            self._show_form()
        else:
            self.answer(401, "who?")
        return False

    def _meet_stranger(self) -> None:
        """Gives a session of a visitor: to the first once there is a second, to all others once there was a login."""
        state = self.state
        state.strangers += 1
        state.changed.notify_all()
        if state.strangers == 1:
            state.changed.wait_for(lambda: state.strangers > 1, 20)
        else:
            state.changed.wait_for(lambda: state.logins > 1, 20)
        self.answer(302, "", Location="/login", **{"Set-Cookie": "session=of-a-visitor; Path=/"})

    def _log_in(self, body: str) -> None:
        state = self.state
        given = {name: values[-1] for name, values in parse_qs(body, keep_blank_values=True).items()}
        if self.command == "GET":
            self._show_form()
        elif given.get("token") not in state.tokens or (given.get("user"), given.get("pass")) != (USER, PASSWORD):
            self._show_form("<p>That is wrong.</p>")
        else:
            session = secrets.token_hex(16)
            state.sessions[session] = state.lasts
            state.logins += 1
            state.changed.notify_all()
            self.answer(303, "", Location="/", **{"Set-Cookie": f"session={session}; HttpOnly; Path=/"})

    def _show_form(self, say: str = "") -> None:
        token = secrets.token_hex(8)
        self.state.tokens.add(token)
        self.answer(
            200,
            f"<title>Welcome</title>{say}<form action=/search><input name=q></form><form method=post action='{self.state.action}'>"
            f"<input type=hidden name=token value={token}><input name=user><input type=password name=pass></form>",
        )


_MAY_SEE: Final = {
    "basic": _Handler._basic,
    "digest": _Handler._digest,
    "cookies": _Handler._cookies,
    "form": _Handler._form,
}
