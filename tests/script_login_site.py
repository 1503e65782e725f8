"""A site whose login needs a browser: ``app.acme.test``, with ``sso.acme.test``. Threads, port 0, loopback only.

A script builds the form, sends it as JSON with a token from a cookie, and keeps another token in the browser. Below
``/app/`` all pages have the same shell, which shows its text to those who have that token; all others have a cookie.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs

from tests.login_site import PASSWORD, USER
from tests.threaded_site import APP, QuietHandler, ThreadedSite

SSO: Final = "sso.acme.test"
FOREIGN: Final = "foreign.acme.test"
PLAIN: Final = ("one", "two", "three")
RENDERED: Final = ("four", "five", "six")
LOG_OUT: Final = "Sign out, wanda"
#: How late the script of others is: until then the page shows its button, which does nothing yet.
_SLOW_SECONDS: Final = 0.7

_LOGIN: Final = """<!DOCTYPE html><title>Welcome</title><div id=app></div>
<div id=consent style="position:fixed;inset:0"><button>Agree</button></div>
<script src="http://%(foreign)s/counter.js"></script><script>
consent.onclick = () => consent.remove();
const send = async event => {
  event.preventDefault();
  const token = document.cookie.split('; ').find(part => part.startsWith('xsrf=')).slice(5);
  const answer = await fetch('/api/session', {method: 'POST', body: JSON.stringify({user: user.value, pass: secret.value}),
    headers: {'Content-Type': 'application/json', 'X-Xsrf': token}});
  if (!answer.ok) { document.getElementById('app').append('That is wrong.'); return; }
  localStorage.token = (await answer.json()).token;
  document.cookie = 'chosen=yes; path=/';
  location.href = '/welcome';
};
setTimeout(() => {
  document.getElementById('app').innerHTML =
    '<form><input id=user><input type=password id=secret name=secret><button>Sign in</button></form>';
  document.forms[0].onsubmit = send;
}, 200);
</script>"""
_SHELL: Final = """<!DOCTYPE html><html><head><title>App</title></head><body><div id=root></div><script>
const show = async () => {
  const headers = {Authorization: 'Bearer ' + localStorage.token};
  const answer = await fetch('/api' + location.pathname, {headers});
  if (answer.status === 401) { location.replace('/login'); return; }
  document.getElementById('root').innerHTML = await answer.text();
};
if (localStorage.token) show(); else location.replace('/login');
</script></body></html>"""
_SSO_FORM: Final = (
    "<title>Who are you?</title><form method=post action='/auth%s'><input name=user><input type=password name=pass>"
    "<button>Go on</button></form>"
)


@dataclass
class State:
    """What the site knows; ``lasts`` is how many pages of the application a session is good for."""

    lasts: int = 1_000_000
    password: str = PASSWORD
    #: token by cookie
    sessions: dict[str, str] = field(default_factory=dict)
    uses: dict[str, int] = field(default_factory=dict)
    codes: set[str] = field(default_factory=set)
    logins: int = 0
    #: the page that answers with 503
    broken: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


class ScriptLoginSite(ThreadedSite):
    """The site; ``state`` may be changed while it runs."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.state = State()


class _Handler(QuietHandler):
    @property
    def state(self) -> State:
        state: State = self.site.state
        return state

    def do_GET(self) -> None:
        seen = self.read_request()
        self.host, _, self.port = seen.host.partition(":")
        body = seen.body
        if self.host == FOREIGN:
            time.sleep(_SLOW_SECONDS)
        with self.state.lock:
            if self.path == self.state.broken:
                self.answer(503, "not now")
            elif self.host == SSO:
                self._answer_sso(body)
            elif self.host == APP:
                self._answer_app(body)
            else:
                self.answer(404, "nothing")

    do_POST = do_GET

    def _answer_app(self, body: str) -> None:
        path = self.path.partition("?")[0]
        if path == "/robots.txt":
            self.answer(200, "User-agent: *\nDisallow: /login\nDisallow: /api/session\n", "text/plain")
        elif path == "/login":
            page = _LOGIN % {"foreign": f"{FOREIGN}:{self.port}"}
            self.answer(200, page, **{"Set-Cookie": f"xsrf={secrets.token_hex(8)}; Path=/"})
        elif path == "/sso":
            self.answer(
                302, "", Location=f"http://{SSO}:{self.port}/auth?next=app", **{"Set-Cookie": "asked=1; Path=/"}
            )
        elif path == "/callback":
            self._call_back()
        elif path == "/api/session":
            self._open_session(body)
        elif path == "/welcome":
            self.answer(302, "", Location="/", **{"Set-Cookie": "welcomed=1; Path=/"})
        elif path.startswith("/app/"):
            self.answer(200, _SHELL)
        elif path.startswith("/api/app/"):
            self._answer_data(path.rpartition("/")[2])
        else:
            self._answer_page(path)

    def _answer_page(self, path: str) -> None:
        if self.cookie("session") not in self.state.sessions:
            self.answer(302, "", Location="/login")
        elif path == "/" or path[1:-5] in PLAIN:
            links = [*(f"/{name}.html" for name in PLAIN), *(f"/app/{name}" for name in RENDERED)]
            anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
            words = " ".join(f"plain words of {path} number {number}" for number in range(30))
            self.answer(200, f"<title>{path}</title><p>{words} {LOG_OUT}</p>{anchors}")
        else:
            self.answer(404, "<p>There is nothing</p>")

    def _answer_data(self, name: str) -> None:
        state, session = self.state, self.cookie("session")
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if not token or state.sessions.get(session) != token:
            self.answer(401, "who?")
            return
        if name not in RENDERED:
            self.answer(404, "<p>There is no such page.</p>")
            return
        state.uses[session] = state.uses.get(session, 0) + 1
        if state.uses[session] >= state.lasts:
            del state.sessions[session]
        self.answer(200, f"<h1>Page {name}</h1><p>{f'inner text of {name} ' * 30}{LOG_OUT}</p>")

    def _open_session(self, body: str) -> None:
        given = json.loads(body) if self.headers.get("Content-Type") == "application/json" else {}
        has_token = self.cookie("xsrf") and self.cookie("xsrf") == self.headers.get("X-Xsrf")
        if not has_token or (given.get("user"), given.get("pass")) != (USER, self.state.password):
            self.answer(403, "{}", "application/json")
            return
        cookie, token = self._begin()
        self.answer(200, json.dumps({"token": token}), "application/json", **{"Set-Cookie": cookie})

    def _begin(self) -> tuple[str, str]:
        session, token = secrets.token_hex(16), secrets.token_hex(16)
        self.state.sessions[session] = token
        self.state.logins += 1
        return f"session={session}; HttpOnly; Path=/", token

    def _answer_sso(self, body: str) -> None:
        if self.command == "GET":
            query = self.path.partition("?")[2]
            page = _SSO_FORM % (f"?{query}" if query else "")
            self.answer(200, page, **{"Set-Cookie": "flow=of-the-sso; Path=/; HttpOnly"})
            return
        given = {name: values[-1] for name, values in parse_qs(body).items()}
        if self.cookie("flow") != "of-the-sso" or (given.get("user"), given.get("pass")) != (USER, self.state.password):
            self.answer(200, _SSO_FORM % "")
            return
        code = secrets.token_hex(8)
        self.state.codes.add(code)
        self.answer(303, "", Location=f"http://{APP}:{self.port}/callback?code={code}")

    def _call_back(self) -> None:
        code = self.path.partition("code=")[2]
        if code not in self.state.codes or self.cookie("asked") != "1":
            self.answer(403, "no")
            return
        self.state.codes.discard(code)
        self.answer(302, "", Location="/", **{"Set-Cookie": self._begin()[0]})
