"""Passwords (RFC 7617): ``b`` asks for one that the browser has. A crawl sends it where it knows who asks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from tests.browser_laws.case import JS, Case, Reply
from tests.browser_laws.fetch_cases import ASKER, FAILED, READ, allow
from tests.browser_laws.login import get

#: Makes a case in which the browser has the password.
_unlocked: Final = partial(Case, has_password=True)
_DATA: Final = {"data": Reply("[[who]]", headers=ASKER, locked=True)}
_SCRIPT: Final = "say(await load('script', {{{more}src: '{url}'}})); done(self.words)"
_LIB: Final = {"lib": Reply("self.words = '[[who]]'", JS, headers=ASKER, locked=True)}
_UNKNOWN: Final = "a crawl sends a password of an origin to its own pages, and where CORS decides who reads"


_OPENED: Final = ("200", "password")
_CLOSED: Final = ("401", "locked")
#: The page, the origin of the data, how it is asked, what is read, whether the password goes along, and why it may not.
_FETCHES: Final = (
    ("bs", "bs", "{}", _OPENED, True, ""),
    ("bs", "bs", "{credentials: 'include'}", _OPENED, True, ""),
    ("bs", "bs", "{credentials: 'omit'}", _CLOSED, False, ""),
    ("b", "b", "{}", _OPENED, True, ""),
    ("b", "b", "{credentials: 'omit'}", _CLOSED, False, ""),
    ("as", "bs", "{credentials: 'include'}", _OPENED, True, ""),
    ("as", "bs", "{credentials: 'same-origin'}", _CLOSED, False, ""),
    ("as", "bs", "{credentials: 'omit'}", _CLOSED, False, ""),
    ("as", "bs", "{mode: 'no-cors', credentials: 'include'}", ("0", ""), True, _UNKNOWN),
    ("as", "bs", "{mode: 'no-cors'}", ("0", ""), False, ""),
    ("a", "b", "{credentials: 'include'}", _OPENED, True, _UNKNOWN),
    ("a", "b", "{credentials: 'omit'}", _CLOSED, False, ""),
)


def _list_data() -> Iterator[Case]:
    asks = "const r = await fetch('{url}', {options}).catch(e => ({{status: failed(e), text: () => ''}})); done(r.status, await r.text())"
    for page, target, options, reads, is_sent, stricter in _FETCHES:
        yield _unlocked(
            f"password: fetch from {page} to {target}, {options}",
            asks.format(url=f"[[{target}]]/data", options=options),
            reads,
            (get(target, password=is_sent),),
            _DATA,
            stricter=stricter,
            origin=page,
        )
    for name, headers, options in (
        ("all", allow("*"), "{credentials: 'include'}"),
        ("nobody", (), "{credentials: 'include'}"),
    ):
        yield _unlocked(
            f"password: data that {name} may have",
            READ.format(url="[[bs]]/data", options=options),
            FAILED,
            (get("bs", password=True),),
            {"data": Reply("[[who]]", headers=headers, locked=True)},
        )


def _list_redirects() -> Iterator[Case]:
    go = {"go": Reply(status=302, headers=(("Location", "[[bs]]/data"), *ASKER))}
    for name, page, url, stricter in (
        ("to another origin", "as", "go", ""),
        ("there and back", "bs", "[[as]]/go", _UNKNOWN),
    ):
        yield _unlocked(
            f"password: redirect of data {name}",
            READ.format(url=url, options="{credentials: 'include'}"),
            ("password",),
            (get("as", "go"), get("bs", password=True)),
            {**go, **_DATA},
            stricter=stricter,
            origin=page,
        )


def _list_parts() -> Iterator[Case]:
    for name, page, target, more, stricter in (
        ("script of the own origin", "bs", "bs", "", ""),
        ("script of the own origin over http", "b", "b", "", ""),
        ("script of another origin", "as", "bs", "", _UNKNOWN),
        ("script of another origin with credentials", "as", "bs", "crossOrigin: 'use-credentials', ", ""),
        ("module of the own origin", "bs", "bs", "type: 'module', ", ""),
    ):
        yield _unlocked(
            f"password: {name}",
            _SCRIPT.format(more=more, url=f"[[{target}]]/lib"),
            ("load", "password"),
            (get(target, "lib", password=True),),
            _LIB,
            stricter=stricter,
            origin=page,
        )


def _list_other_parts() -> Iterator[Case]:
    yield _unlocked(
        "password: script of another origin without credentials",
        _SCRIPT.format(more="crossOrigin: 'anonymous', ", url="[[bs]]/lib"),
        ("error", "undefined"),
        (get("bs", "lib"),),
        _LIB,
    )
    talk = Reply("<!doctype html><script>parent.postMessage('[[who]]', '*')</script>", "text/html", locked=True)
    for page, target, stricter in (("bs", "bs", ""), ("as", "bs", _UNKNOWN)):
        yield _unlocked(
            f"password: frame of {target} in a page of {page}",
            f"const message = hear(); load('iframe', {{src: '[[{target}]]/frame'}});"
            "done(await Promise.race([message, wait(2500).then(() => 'silence')]))",
            ("password",),
            (get(target, "frame", password=True),),
            {"frame": talk},
            stricter=stricter,
            origin=page,
        )
    yield _unlocked(
        "password: worker of the own origin loads data",
        "const w = new Worker('work'); w.onmessage = e => done(e.data)",
        ("password",),
        (get("bs", "work"), get("bs", password=True)),
        {"work": Reply("fetch('data').then(r => r.text()).then(postMessage)", JS), **_DATA},
        origin="bs",
    )


CASES: Final = [*_list_data(), *_list_redirects(), *_list_parts(), *_list_other_parts()]
