"""One case: a page, what its origin and others answer, and what the standards say that it reads and that servers see."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import unquote

#: The origins by their short names; ``s`` at the end is https. ``sub`` and ``other`` are the site of ``a``, ``b`` is not.
HOSTS: Final = {"a": "a.test", "sub": "sub.a.test", "other": "other.a.test", "b": "b.test"}
ORIGINS: Final = {
    name + end: (scheme, host) for name, host in HOSTS.items() for end, scheme in (("", "http"), ("s", "https"))
}
#: Those that ask for a password.
LOCKED_ORIGINS: Final = ("b", "bs")
JS: Final = "text/javascript"
HTML: Final = "text/html; charset=utf-8"
#: Where a browser gets to know the password, before the page of a case that has one.
UNLOCK: Final = "unlock"
#: What a page calls when it is done; ``say`` gathers what it has read.
PRELUDE: Final = """
const said = [];
const show = text => String(text).replace(/(https?:\\/\\/[a-z.]+:\\d+)(\\/\\d+)?/g, (all, o) => NAMES[o] || 'somewhere');
function say(text) { said.push(show(text)) }
function done(...texts) {
  texts.forEach(say);
  const p = document.createElement('p');
  p.id = 'verdict';
  p.textContent = 'verdict: ' + encodeURIComponent(JSON.stringify(said)) + ';';
  document.body.append(p);
}
const text = r => r.text();
const failed = e => 'error ' + (e && e.name);
const load = (tag, more) => new Promise(end => {
  const element = Object.assign(document.createElement(tag), more);
  element.onload = () => end('load');
  element.onerror = () => end('error');
  document.body.append(element);
});
const hear = () => new Promise(end => { onmessage = e => end(e.data) });
const wait = ms => new Promise(end => setTimeout(end, ms));
"""
_VERDICT: Final = re.compile(r"verdict: (%5B[^;<]*);")
_MARK: Final = re.compile(r"\[\[(\w+)\]\]")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a path is answered. In bodies and headers ``[[b]]`` is the address of an origin for this case.

    Of the request ``[[asker]]`` is the Origin, ``[[who]]`` the credentials that came with it, ``[[referrer]]`` the Referer, and
    ``[[site]]`` what it says of who asks.
    """

    body: str = ""
    kind: str = "text/plain"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    #: it asks for a password where none came
    locked: bool = False


class Cookie(NamedTuple):
    """A cookie that is there before the page is opened; its name says what it is."""

    name: str
    domain: str
    path: str = "/"
    https: bool = False
    http_only: bool = False
    same_site: str = ""


class Seen(NamedTuple):
    """A request as its server sees it: what counts of it."""

    origin: str
    method: str
    path: str
    cookies: tuple[str, ...]
    has_password: bool
    asker: str
    site: str
    mode: str
    referrer: str

    def __str__(self) -> str:
        password = " +password" if self.has_password else ""
        return f"{self.method} {self.origin}/{self.path}" + "".join(f" {name}" for name in self.cookies) + password


class Verdict(NamedTuple):
    """What a page has read, and what servers saw."""

    read: tuple[str, ...]
    seen: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """``script`` runs in a page of ``origin`` with ``head`` in its head. ``reads`` and ``sends`` are what the standards say.

    ``sends`` has the requests but for that of the page itself, with the cookies that go along. ``files`` are answered by each
    origin alike. ``stricter`` says why a crawl may send and read less than bare Chromium, where it may.
    """

    name: str
    script: str
    reads: tuple[str, ...]
    sends: tuple[str, ...] = ()
    files: Mapping[str, Reply] = field(default_factory=dict)
    origin: str = "as"
    head: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    cookies: tuple[Cookie, ...] = ()
    has_password: bool = False
    stricter: str = ""

    def build_page(self) -> Reply:
        """The page itself."""
        names = json.dumps({f"[[o_{name}]]": name for name in ORIGINS})
        script = f"const NAMES = {names};{PRELUDE}\n(async () => {{ {self.script} }})().catch(e => done('threw ' + e));"
        html = f"<!doctype html><title>case</title>{self.head}<body><script>{script}</script>"
        return Reply(html, "text/html; charset=utf-8", headers=self.headers)

    def find_reply(self, method: str, path: str) -> Reply | None:
        """What a path is answered; None where it has nothing."""
        if path == "page" and method == "GET":
            return self.build_page()
        if path == UNLOCK and self.has_password:
            return Reply("open", locked=True)
        return self.files.get(path if method == "GET" else f"{method} {path}")


def read_verdict(html: str) -> tuple[str, ...] | None:
    """What a page says that it has read; None as long as it has said nothing."""
    found = _VERDICT.search(html)
    return None if found is None else tuple(json.loads(unquote(found[1])))


def fill_marks(text: str, values: Mapping[str, str]) -> str:
    """A text with the value of each mark."""
    return _MARK.sub(lambda found: values[found[1]], text)
