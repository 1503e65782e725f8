"""Cookies: who reads, sets and sends them (RFC 6265bis, 5.5 to 5.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.browser_laws.case import HTML, Case, Cookie, Reply
from tests.browser_laws.fetch_cases import ASKER
from tests.browser_laws.login import all_of, cross_of, get, logged_in, who

_NAMES: Final = "document.cookie.split('; ').map(c => c.split('=')[0]).sort().join('+')"
_INCLUDE: Final = "{credentials: 'include'}"
_HOST: Final = "a.test"
#: What is sent from other sites as well.
_NONE: Final = "c=1; Secure; SameSite=None"


def _list_given() -> Iterator[Case]:
    """What a page of ``as`` or ``a`` has of one cookie: document.cookie, and what is sent to its own and to others."""
    for name, cookie, shown, sends in (
        ("http only", Cookie("c", _HOST, http_only=True), "", {"a": True, "as": True, "sub": False}),
        ("secure", Cookie("c", _HOST, https=True), "", {"a": False, "as": None, "sub": False}),
        ("for all hosts below", Cookie("c", ".a.test"), "c", {"a": True, "as": None, "sub": True}),
        ("for one host", Cookie("c", _HOST), "c", {"a": True, "sub": False}),
        ("for another path", Cookie("c", _HOST, path="/N/deep/"), "", {"a": False}),
        ("for the path", Cookie("c", _HOST, path="/N/"), "c", {"a": True}),
        ("of another host below", Cookie("c", "other.a.test"), "", {"a": False, "sub": False, "other": True}),
        ("strict", Cookie("c", _HOST, same_site="Strict"), "c", {"a": True}),
    ):
        targets = {target: bool(is_sent) for target, is_sent in sends.items() if target != "as"}
        ask = "".join(f"say(await fetch('[[{target}]]/data', {_INCLUDE}).then(text));" for target in targets)
        yield Case(
            f"cookie {name}",
            f"say({_NAMES}); {ask} done()",
            (shown, *("c" if is_sent else "nobody" for is_sent in targets.values())),
            tuple(get(target, "data", ("c",) if is_sent else ()) for target, is_sent in targets.items()),
            {"data": Reply("[[who]]", headers=ASKER)},
            cookies=(cookie,),
            origin="a",
        )
    yield Case(
        "cookie for a path below",
        "say(await fetch('deep/data').then(text)); say(await fetch('deeper').then(text)); done()",
        ("c", "nobody"),
        (get("as", "deep/data", ("c",)), get("as", "deeper")),
        {"deep/data": Reply("[[who]]"), "deeper": Reply("[[who]]")},
        cookies=(Cookie("c", _HOST, path="/N/deep"),),
    )
    for page, reads in (("as", all_of("as")), ("a", all_of("a")), ("subs", all_of("subs"))):
        yield logged_in(f"cookies that a page of {page} reads", f"done({_NAMES})", (who(reads),), origin=page)


#: Name, page, what a script sets, what it sees of it afterwards, and what is sent.
_SET_BY_SCRIPTS: Final = (
    ("plain", "as", "c=1", "c", ("c",)),
    ("for all hosts below", "subs", "c=1; domain=a.test", "c", ("c",)),
    ("for another site", "as", "c=1; domain=b.test", "", ()),
    ("for a whole top level", "as", "c=1; domain=test", "", ()),
    ("for a host below", "as", "c=1; domain=sub.a.test", "", ()),
    ("http only", "as", "c=1; httponly", "", ()),
    ("secure on http", "a", "c=1; secure", "", ()),
    ("SameSite=None on http", "a", "c=1; samesite=none", "", ()),
    ("with the prefix for one host", "as", "__Host-c=1; secure; path=/", "__Host-c", ("__Host-c",)),
    ("with the prefix for one host, for more", "as", "__Host-c=1; secure; path=/; domain=a.test", "", ()),
    ("with the prefix for https, without it", "as", "__Secure-c=1", "", ()),
    ("for another path", "as", "c=1; path=/elsewhere", "", ()),
)


def _list_set_by_scripts() -> Iterator[Case]:
    for name, page, text, shown, sent in _SET_BY_SCRIPTS:
        yield Case(
            f"cookie set by a script: {name}",
            f"document.cookie = '{text}'; say(document.cookie.split('=')[0]); done(await fetch('data').then(text))",
            (shown, who(sent)),
            (get(page, "data", sent),),
            {"data": Reply("[[who]]")},
            origin=page,
        )
    yield Case(
        "cookie that is http only is not replaced by a script",
        "document.cookie = 'c=2; path=/'; say(document.cookie); done(await fetch('data').then(text))",
        ("", "c"),
        (get("as", "data", ("c",)),),
        {"data": Reply("[[who]]")},
        cookies=(Cookie("c", _HOST, http_only=True),),
    )
    yield Case(
        "cookie that is secure is not replaced over http",
        "document.cookie = 'c=2; path=/'; say(document.cookie); done(await fetch('data').then(text))",
        ("", "nobody"),
        (get("a"),),
        {"data": Reply("[[who]]")},
        cookies=(Cookie("c", _HOST, https=True),),
        origin="a",
    )
    yield logged_in(
        "cookies of a document that is nobody's",
        "const frame = document.createElement('iframe'); frame.sandbox = 'allow-scripts';"
        "frame.srcdoc = `<script>try { parent.postMessage(document.cookie, '*') }"
        "catch (e) { parent.postMessage(e.name, '*') }</` + 'script>';"
        "document.body.append(frame); done(await hear())",
        ("SecurityError",),
    )


def _list_set_by_servers() -> Iterator[Case]:
    for name, page, text, shown, sent in (
        ("http only", "as", "c=1; HttpOnly", "", ("c",)),
        ("for another site", "as", "c=1; Domain=b.test", "", ()),
        ("secure on http", "a", "c=1; Secure", "", ()),
        ("over and done", "as", "old=1; Path=/; Max-Age=0", "", ()),
        ("with the prefix for one host, without a path", "as", "__Host-c=1; Secure", "", ()),
    ):
        yield Case(
            f"cookie set by the page's server: {name}",
            f"await fetch('set'); say({_NAMES}); done(await fetch('data').then(text))",
            (shown, who(sent)),
            (get(page, "set", ("old",) if "old" in text else ()), get(page, "data", sent)),
            {"set": Reply(headers=(("Set-Cookie", text),)), "data": Reply("[[who]]")},
            cookies=(Cookie("old", _HOST),) if "old" in text else (),
            origin=page,
        )


#: Name, server, cookie, how it is asked, and whether it gets the cookie with the next request.
_SET_BY_OTHERS: Final = (
    ("another site", "bs", _NONE, _INCLUDE, True),
    ("another site that was asked without credentials", "bs", _NONE, "{credentials: 'omit'}", False),
    ("another site, lax", "bs", "c=1; SameSite=Lax", _INCLUDE, False),
    ("another site, strict", "bs", "c=1; SameSite=Strict", _INCLUDE, False),
    ("another site, without a word", "bs", "c=1", _INCLUDE, False),
    ("another site, not secure", "bs", "c=1; SameSite=None", _INCLUDE, False),
    ("another site, for the page", "bs", f"{_NONE}; Domain=a.test", _INCLUDE, False),
    ("another site, partitioned", "bs", f"{_NONE}; Partitioned", _INCLUDE, True),
    ("another site, with no-cors", "bs", _NONE, "{mode: 'no-cors', credentials: 'include'}", True),
    ("the same site", "subs", "c=1; SameSite=Strict", _INCLUDE, True),
    ("the same site, for all hosts", "subs", "c=1; Domain=a.test", _INCLUDE, True),
)


def _list_set_by_others() -> Iterator[Case]:
    """Set by a server that the page asks, and sent to it with the next request, or not."""
    for name, target, text, how, kept in _SET_BY_OTHERS:
        yield Case(
            f"cookie set by {name}",
            f"await fetch('[[{target}]]/set', {how}); say(document.cookie);"
            f"done(await fetch('[[{target}]]/data', {_INCLUDE}).then(text))",
            ("c=1" if "Domain=a.test" in text and target == "subs" else "", "c" if kept else "nobody"),
            (get(target, "set"), get(target, "data", ("c",) if kept else ())),
            {"set": Reply(headers=(("Set-Cookie", text), *ASKER)), "data": Reply("[[who]]", headers=ASKER)},
        )


def _list_set_by_frames() -> Iterator[Case]:
    for name, text, kept in (
        ("none", _NONE, True),
        ("lax", "c=1; SameSite=Lax", False),
        ("partitioned", f"{_NONE}; Partitioned", True),
    ):
        yield Case(
            f"cookie set by a frame of another site, {name}",
            "const frame = document.createElement('iframe'); frame.src = '[[bs]]/frame';"
            "document.body.append(frame); done(await hear())",
            ("c" if kept else "nobody",),
            (get("bs", "frame"), get("bs", "data", ("c",) if kept else ())),
            {
                "frame": Reply(
                    "<script>fetch('data').then(r => r.text()).then(t => parent.postMessage(t, '*'))</script>",
                    HTML,
                    headers=(("Set-Cookie", text),),
                ),
                "data": Reply("[[who]]"),
            },
        )


def _list_set_on_the_way() -> Iterator[Case]:
    yield logged_in(
        "cookie set on the way by a redirect",
        f"done(await fetch('[[bs]]/go', {_INCLUDE}).then(text))",
        ("b_none+c",),
        (get("bs", "go", cross_of("bs")), get("bs", "data", ("b_none", "c"))),
        {
            "go": Reply(status=302, headers=(("Location", "data"), ("Set-Cookie", _NONE), *ASKER)),
            "data": Reply("[[who]]", headers=ASKER),
        },
    )
    yield Case(
        "cookie set by a script of another origin is the page's",
        "await load('script', {src: '[[bs]]/lib'}); say(document.cookie); done(await fetch('data').then(text))",
        ("c=1", "c"),
        (get("bs", "lib"), get("as", "data", ("c",))),
        {"lib": Reply("document.cookie = 'c=1'", "text/javascript"), "data": Reply("[[who]]")},
    )


CASES: Final = [
    *_list_given(),
    *_list_set_by_scripts(),
    *_list_set_by_servers(),
    *_list_set_by_others(),
    *_list_set_by_frames(),
    *_list_set_on_the_way(),
]
