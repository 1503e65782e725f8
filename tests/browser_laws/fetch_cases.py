"""Data of other origins: fetch and XMLHttpRequest, with and without credentials, and preflights (Fetch standard, 3.3 and 4.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.browser_laws.case import Case, Reply
from tests.browser_laws.login import LOGIN, NOBODY, all_of, ask, cross_of, get, who

_ERROR: Final = ("error TypeError",)
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


def list_fetch_cases() -> Iterator[Case]:
    """All of them."""
    yield from _list_cors()
    yield from _list_other_modes()
    yield from _list_relations()
    yield from _list_xhr()
    yield from _list_preflights()
    yield from _list_named_headers()
    yield from _list_without_preflights()
    yield from _list_exposed()


def _list_cors() -> Iterator[Case]:
    for credentials in _CREDENTIALS:
        for name, origin in _ALLOWED_ORIGINS.items():
            for with_credentials in (False, True):
                is_included = credentials == "include"
                may_read = origin == _EXACT or (origin == "*" and not is_included)
                may_read = may_read and (with_credentials or not is_included)
                cookies = cross_of("bs") if is_included else NOBODY
                yield Case(
                    f"cors fetch, {credentials}, allowed {name}{' with credentials' if with_credentials else ''}",
                    "as",
                    READ.format(url="[[bs]]/data", options=f"{{credentials: '{credentials}'}}"),
                    (who(cookies),) if may_read else _ERROR,
                    (get("bs", "data", cookies),),
                    {"data": Reply("[[who]]", headers=allow(origin, credentials=with_credentials))},
                    cookies=LOGIN,
                )


def _list_other_modes() -> Iterator[Case]:
    for credentials in _CREDENTIALS:
        cookies = cross_of("bs") if credentials == "include" else NOBODY
        yield Case(
            f"no-cors fetch, {credentials}",
            "as",
            f"const r = await fetch('[[bs]]/data', {{mode: 'no-cors', credentials: '{credentials}'}});"
            "done(r.type, r.status, r.url, await r.text())",
            ("opaque", "0", "", ""),
            (get("bs", "data", cookies),),
            {"data": Reply("[[who]]", headers=allow(credentials=True))},
            cookies=LOGIN,
        )
        yield Case(
            f"same-origin fetch of another origin, {credentials}",
            "as",
            READ.format(url="[[bs]]/data", options=f"{{mode: 'same-origin', credentials: '{credentials}'}}"),
            _ERROR,
            (),
            {"data": Reply("[[who]]", headers=allow(credentials=True))},
            cookies=LOGIN,
        )
    for value in ("TRUE", "false"):
        yield Case(
            f"cors fetch, include, credentials allowed by {value}",
            "as",
            READ.format(url="[[bs]]/data", options="{credentials: 'include'}"),
            _ERROR,
            (get("bs", "data", cross_of("bs")),),
            {"data": Reply("[[who]]", headers=allow(Allow_Credentials=value))},
            cookies=LOGIN,
        )


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
            yield Case(
                f"cors fetch from {page} to {target}, {credentials}",
                page,
                READ.format(url=f"[[{target}]]/data", options=f"{{credentials: '{credentials}'}}"),
                (who(cookies),),
                (get(target, "data", cookies),),
                {"data": Reply("[[who]]", headers=allow(credentials=True))},
                cookies=LOGIN,
            )
    yield Case(
        "fetch of the same site without CORS",
        "as",
        READ.format(url="[[subs]]/data", options="{credentials: 'include'}"),
        _ERROR,
        (get("subs", "data", all_of("subs")),),
        {"data": Reply("[[who]]")},
        cookies=LOGIN,
    )


def _list_xhr() -> Iterator[Case]:
    for with_credentials in (False, True):
        for name in ("none", "any", "exact"):
            for allowed in (False, True):
                origin = _ALLOWED_ORIGINS[name]
                may_read = (origin == _EXACT and (allowed or not with_credentials)) or (
                    origin == "*" and not with_credentials
                )
                cookies = cross_of("bs") if with_credentials else NOBODY
                yield Case(
                    f"XMLHttpRequest{' with credentials' if with_credentials else ''}, allowed {name}"
                    f"{' with credentials' if allowed else ''}",
                    "as",
                    "const x = new XMLHttpRequest(); x.open('GET', '[[bs]]/data');"
                    f"x.withCredentials = {str(with_credentials).lower()};"
                    "x.onloadend = () => done(x.status, x.responseText); x.send();",
                    ("200", who(cookies)) if may_read else ("0", ""),
                    (get("bs", "data", cookies),),
                    {"data": Reply("[[who]]", headers=allow(origin, credentials=allowed))},
                    cookies=LOGIN,
                )


_BOTH: Final = allow(credentials=True)
_SENT: Final = {"X-Word": "x"}
#: What a preflight is answered, and whether the request may follow it.
_ANSWERS: Final = {
    "the header allowed": (Reply(headers=(*_BOTH, *allow(None, Allow_Headers="x-word"))), True),
    "the header allowed among others": (Reply(headers=(*_BOTH, *allow(None, Allow_Headers="x-a, X-WORD"))), True),
    "no header allowed": (Reply(headers=_BOTH), False),
    "another header allowed": (Reply(headers=(*_BOTH, *allow(None, Allow_Headers="x-words"))), False),
    "no origin allowed": (Reply(headers=allow(None, Allow_Headers="x-word")), False),
    "another origin allowed": (Reply(headers=allow("[[o_subs]]", credentials=True, Allow_Headers="x-word")), False),
    "status 204": (Reply(status=204, headers=(*_BOTH, *allow(None, Allow_Headers="x-word"))), True),
    "status 404": (Reply(status=404, headers=(*_BOTH, *allow(None, Allow_Headers="x-word"))), False),
    "status 500": (Reply(status=500, headers=(*_BOTH, *allow(None, Allow_Headers="x-word"))), False),
    "a redirect": (
        Reply(
            status=302,
            headers=(*_BOTH, *allow(None, Allow_Headers="x-word"), ("Location", "[[bs]]/there")),
        ),
        False,
    ),
}


def _list_preflights() -> Iterator[Case]:
    for credentials in ("omit", "include"):
        cookies = cross_of("bs") if credentials == "include" else NOBODY
        for name, (answer, may_send) in _ANSWERS.items():
            yield Case(
                f"preflight, {credentials}, {name}",
                "as",
                READ.format(url="[[bs]]/data", options=f"{{credentials: '{credentials}', headers: {_SENT}}}"),
                (who(cookies),) if may_send else _ERROR,
                (get("bs", "data", cookies), ask("bs")) if may_send else (ask("bs"),),
                {"data": Reply("[[who]]", headers=_BOTH), "OPTIONS data": answer, "OPTIONS there": answer},
                cookies=LOGIN,
            )


def _list_named_headers() -> Iterator[Case]:
    any_header = Reply(headers=(*allow(credentials=True), *allow(None, Allow_Headers="*")))
    yield _build_preflight("any header allowed, omit", "{headers: {'X-Word': 'x'}}", any_header, NOBODY)
    yield _build_preflight(
        "any header allowed, include", "{credentials: 'include', headers: {'X-Word': 'x'}}", any_header, None
    )
    # The standard wants it by its name; Chromium only warns.
    yield _build_preflight(
        "any header allowed, and Authorization sent", "{headers: {Authorization: 'x'}}", any_header, NOBODY
    )
    named = Reply(headers=(*_BOTH, *allow(None, Allow_Headers="authorization")))
    yield _build_preflight("Authorization allowed by name", "{headers: {Authorization: 'x'}}", named, NOBODY)
    typed = Reply(headers=(*_BOTH, *allow(None, Allow_Headers="content-type")))
    yield _build_preflight(
        "a type that forms do not have", "{headers: {'Content-Type': 'application/json'}}", typed, NOBODY
    )


def _list_without_preflights() -> Iterator[Case]:
    yield Case(
        "no preflight for headers that a form has",
        "as",
        READ.format(url="[[bs]]/data", options="{headers: {'Accept-Language': 'eo', 'Content-Type': 'text/plain'}}"),
        ("nobody",),
        (get("bs"),),
        {"data": Reply("[[who]]", headers=allow())},
    )
    yield Case(
        "no preflight to the page's own origin",
        "as",
        READ.format(url="data", options="{headers: {'X-Word': 'x'}}"),
        (who(all_of("as")),),
        (get("as", "data", all_of("as")),),
        {"data": Reply("[[who]]")},
        cookies=LOGIN,
    )
    yield Case(
        "preflight allowed, the answer itself not",
        "as",
        READ.format(url="[[bs]]/data", options="{headers: {'X-Word': 'x'}}"),
        _ERROR,
        (get("bs"), ask("bs")),
        {"data": Reply("[[who]]"), "OPTIONS data": Reply(headers=allow("*", Allow_Headers="x-word"))},
    )
    yield Case(
        "no-cors fetch leaves out what a form does not have",
        "as",
        "const r = await fetch('[[bs]]/data', {mode: 'no-cors', headers: {'X-Word': 'x'}}); done(r.type)",
        ("opaque",),
        (get("bs"),),
        {"data": Reply("[[who]]", headers=allow())},
    )


def _build_preflight(name: str, options: str, answer: Reply, cookies: tuple[str, ...] | None) -> Case:
    return Case(
        f"preflight, {name}",
        "as",
        READ.format(url="[[bs]]/data", options=options),
        _ERROR if cookies is None else (who(cookies),),
        (ask("bs"),) if cookies is None else (get("bs", "data", cookies), ask("bs")),
        {"data": Reply("[[who]]", headers=allow(credentials=True)), "OPTIONS data": answer},
        cookies=LOGIN,
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
            "as",
            script.format(url="[[bs]]/data", credentials=credentials),
            (*reads, "text/plain", "null"),
            (get("bs"),),
            {"data": Reply("", headers=(*allow(credentials=True, **more), *own))},
        )
    yield Case(
        "headers of the page's own origin",
        "as",
        script.format(url="data", credentials="include"),
        ("1", "2", "text/plain", "null"),
        (get("as"),),
        {"data": Reply("", headers=own)},
    )
