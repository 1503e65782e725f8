"""Data of other origins: fetch and XMLHttpRequest, with and without credentials, and preflights (Fetch standard, 3.3 and 4.8)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

from tests.browser_laws.case import Case, Reply
from tests.browser_laws.login import NOBODY, all_of, ask, cross_of, get, logged_in, who

_EXACT: Final = "[[asker]]"
#: What ``Access-Control-Allow-Origin`` may be, by what it is called in a name.
_ALLOWED_ORIGINS: Final = {
    "none": None,
    "any": "*",
    "exact": _EXACT,
    "other": "[[o_subs]]",
    "null": "null",
    "two": "[[asker]], [[o_bs]]",
}
_CREDENTIALS: Final = ("omit", "same-origin", "include")
#: How a script asks for data, and says what it got.
READ: Final = "done(await fetch('{url}', {options}).then(text).catch(failed));"


def allow(origin: str | None = _EXACT, *, credentials: bool = False, **more: str) -> tuple[tuple[str, str], ...]:
    """The headers of CORS; ``more`` with underscores in the names, without what all of them begin with."""
    found = [] if origin is None else [("Access-Control-Allow-Origin", origin)]
    found += [("Access-Control-Allow-Credentials", "true")] if credentials else []
    return (*found, *((f"Access-Control-{name.replace('_', '-')}", value) for name, value in more.items()))


#: Allowed to all, and to whoever asks with credentials.
ANY: Final = allow("*")
ASKER: Final = allow(credentials=True)
FAILED: Final = ("error TypeError",)


def _fetch(
    name: str,
    options: str,
    headers: tuple[tuple[str, str], ...],
    cookies: tuple[str, ...],
    *,
    may_read: bool = True,
    target: str = "bs",
    origin: str = "as",
) -> Case:
    """Data of ``target``, asked for with ``options``."""
    return logged_in(
        name,
        READ.format(url=f"[[{target}]]/data", options=options),
        (who(cookies),) if may_read else FAILED,
        (get(target, "data", cookies),),
        {"data": Reply("[[who]]", headers=headers)},
        origin=origin,
    )


def _list_cors() -> Iterator[Case]:
    for credentials, allowed, with_credentials in product(_CREDENTIALS, _ALLOWED_ORIGINS.items(), (False, True)):
        name, origin = allowed
        is_included = credentials == "include"
        may_read = origin == _EXACT or (origin == "*" and not is_included)
        yield _fetch(
            f"cors fetch, {credentials}, allowed {name}{' with credentials' if with_credentials else ''}",
            f"{{credentials: '{credentials}'}}",
            allow(origin, credentials=with_credentials),
            cross_of("bs") if is_included else NOBODY,
            may_read=may_read and (with_credentials or not is_included),
        )


def _list_other_modes() -> Iterator[Case]:
    for credentials in _CREDENTIALS:
        cookies = cross_of("bs") if credentials == "include" else NOBODY
        yield logged_in(
            f"no-cors fetch, {credentials}",
            f"const r = await fetch('[[bs]]/data', {{mode: 'no-cors', credentials: '{credentials}'}});"
            "done(r.type, r.status, r.url, await r.text())",
            ("opaque", "0", "", ""),
            (get("bs", "data", cookies),),
            {"data": Reply("[[who]]", headers=ASKER)},
        )
        yield logged_in(
            f"same-origin fetch of another origin, {credentials}",
            READ.format(url="[[bs]]/data", options=f"{{mode: 'same-origin', credentials: '{credentials}'}}"),
            FAILED,
            (),
            {"data": Reply("[[who]]", headers=ASKER)},
        )
    for value in ("TRUE", "false"):
        name, headers = f"cors fetch, include, credentials allowed by {value}", allow(Allow_Credentials=value)
        yield _fetch(name, "{credentials: 'include'}", headers, cross_of("bs"), may_read=False)


def _list_relations() -> Iterator[Case]:
    """From each origin to others of the same site, of another, and of another scheme."""
    relations = [
        ("a", "a", all_of("a")),
        ("as", "as", all_of("as")),
        ("a", "sub", all_of("sub")),
        ("as", "subs", all_of("subs")),
        ("sub", "a", all_of("a")),
        ("subs", "as", all_of("as")),
        ("a", "b", NOBODY),
        ("b", "a", NOBODY),
        # Another scheme is another site (RFC 6265bis, 5.2).
        ("a", "as", cross_of("as")),
        ("a", "bs", cross_of("bs")),
        ("bs", "subs", cross_of("subs")),
    ]
    for page, target, included in relations:
        for credentials in _CREDENTIALS:
            is_sent = credentials == "include" or (credentials == "same-origin" and page == target)
            cookies = included if is_sent else NOBODY
            name, options = f"cors fetch from {page} to {target}, {credentials}", f"{{credentials: '{credentials}'}}"
            yield _fetch(name, options, ASKER, cookies, target=target, origin=page)
    name, cookies = "fetch of the same site without CORS", all_of("subs")
    yield _fetch(name, "{credentials: 'include'}", (), cookies, may_read=False, target="subs")


def _list_xhr() -> Iterator[Case]:
    for with_credentials, name, allowed in product((False, True), ("none", "any", "exact"), (False, True)):
        origin = _ALLOWED_ORIGINS[name]
        may_read = (not with_credentials and origin in {"*", _EXACT}) or (origin == _EXACT and allowed)
        cookies = cross_of("bs") if with_credentials else NOBODY
        yield logged_in(
            f"XMLHttpRequest{' with credentials' if with_credentials else ''}, allowed {name}"
            f"{' with credentials' if allowed else ''}",
            "const x = new XMLHttpRequest(); x.open('GET', '[[bs]]/data');"
            f"x.withCredentials = {str(with_credentials).lower()};"
            "x.onloadend = () => done(x.status, x.responseText); x.send();",
            ("200", who(cookies)) if may_read else ("0", ""),
            (get("bs", "data", cookies),),
            {"data": Reply("[[who]]", headers=allow(origin, credentials=allowed))},
        )


_WORD: Final = allow(None, Allow_Headers="x-word")
#: What a preflight is answered, and whether the request may follow it.
_ANSWERS: Final = {
    "the header allowed": (Reply(headers=(*ASKER, *_WORD)), True),
    "the header allowed among others": (Reply(headers=(*ASKER, *allow(None, Allow_Headers="x-a, X-WORD"))), True),
    "no header allowed": (Reply(headers=ASKER), False),
    "another header allowed": (Reply(headers=(*ASKER, *allow(None, Allow_Headers="x-words"))), False),
    "no origin allowed": (Reply(headers=_WORD), False),
    "another origin allowed": (Reply(headers=allow("[[o_subs]]", credentials=True, Allow_Headers="x-word")), False),
    "status 204": (Reply(status=204, headers=(*ASKER, *_WORD)), True),
    "status 404": (Reply(status=404, headers=(*ASKER, *_WORD)), False),
    "status 500": (Reply(status=500, headers=(*ASKER, *_WORD)), False),
    "a redirect": (Reply(status=302, headers=(*ASKER, *_WORD, ("Location", "[[bs]]/there"))), False),
}


def _build_preflight(name: str, options: str, answer: Reply, cookies: tuple[str, ...], *, may_send: bool) -> Case:
    return logged_in(
        f"preflight, {name}",
        READ.format(url="[[bs]]/data", options=options),
        (who(cookies),) if may_send else FAILED,
        (get("bs", "data", cookies), ask("bs")) if may_send else (ask("bs"),),
        {"data": Reply("[[who]]", headers=ASKER), "OPTIONS data": answer, "OPTIONS there": answer},
    )


def _list_preflights() -> Iterator[Case]:
    for credentials in ("omit", "include"):
        cookies = cross_of("bs") if credentials == "include" else NOBODY
        options = f"{{credentials: '{credentials}', headers: {{'X-Word': 'x'}}}}"
        for name, (answer, may_send) in _ANSWERS.items():
            yield _build_preflight(f"{credentials}, {name}", options, answer, cookies, may_send=may_send)
    for name, options, allowed, may_send in (
        ("any header allowed, omit", "{headers: {'X-Word': 'x'}}", "*", True),
        ("any header allowed, include", "{credentials: 'include', headers: {'X-Word': 'x'}}", "*", False),
        # The standard wants it by its name; Chromium only warns.
        ("any header allowed, and Authorization sent", "{headers: {Authorization: 'x'}}", "*", True),
        ("Authorization allowed by name", "{headers: {Authorization: 'x'}}", "authorization", True),
        ("a type that forms do not have", "{headers: {'Content-Type': 'application/json'}}", "content-type", True),
    ):
        named = Reply(headers=(*ASKER, *allow(None, Allow_Headers=allowed)))
        yield _build_preflight(name, options, named, NOBODY, may_send=may_send)


def _list_without_preflights() -> Iterator[Case]:
    yield Case(
        "no preflight for headers that a form has",
        READ.format(url="[[bs]]/data", options="{headers: {'Accept-Language': 'eo', 'Content-Type': 'text/plain'}}"),
        ("nobody",),
        (get("bs"),),
        {"data": Reply("[[who]]", headers=allow())},
    )
    yield logged_in(
        "no preflight to the page's own origin",
        READ.format(url="data", options="{headers: {'X-Word': 'x'}}"),
        (who(all_of("as")),),
        (get("as", "data", all_of("as")),),
        {"data": Reply("[[who]]")},
    )
    yield Case(
        "preflight allowed, the answer itself not",
        READ.format(url="[[bs]]/data", options="{headers: {'X-Word': 'x'}}"),
        FAILED,
        (get("bs"), ask("bs")),
        {"data": Reply("[[who]]"), "OPTIONS data": Reply(headers=allow("*", Allow_Headers="x-word"))},
    )
    yield Case(
        "no-cors fetch leaves out what a form does not have",
        "const r = await fetch('[[bs]]/data', {mode: 'no-cors', headers: {'X-Word': 'x'}}); done(r.type)",
        ("opaque",),
        (get("bs"),),
        {"data": Reply("[[who]]", headers=allow())},
    )


def _list_exposed() -> Iterator[Case]:
    own = (("X-One", "1"), ("X-Two", "2"), ("Set-Cookie", "c=1; Secure; SameSite=None"))
    script = (
        "const r = await fetch('{url}', {{credentials: '{credentials}'}});"
        "done(...['X-One', 'X-Two', 'Content-Type', 'Set-Cookie'].map(n => r.headers.get(n)))"
    )
    for name, exposed, credentials, reads in (
        ("none", None, "omit", ("null", "null")),
        ("one", "X-One", "omit", ("1", "null")),
        ("all by name, and cookies", "X-One, x-two, set-cookie", "include", ("1", "2")),
        ("all by a star", "*", "omit", ("1", "2")),
        ("a star with credentials", "*", "include", ("null", "null")),
    ):
        more = {} if exposed is None else {"Expose_Headers": exposed}
        yield Case(
            f"headers exposed: {name}",
            script.format(url="[[bs]]/data", credentials=credentials),
            (*reads, "text/plain", "null"),
            (get("bs"),),
            {"data": Reply("", headers=(*allow(credentials=True, **more), *own))},
        )
    yield Case(
        "headers of the page's own origin",
        script.format(url="data", credentials="include"),
        ("1", "2", "text/plain", "null"),
        (get("as"),),
        {"data": Reply("", headers=own)},
    )


CASES: Final = [
    *_list_cors(),
    *_list_other_modes(),
    *_list_relations(),
    *_list_xhr(),
    *_list_preflights(),
    *_list_without_preflights(),
    *_list_exposed(),
]
