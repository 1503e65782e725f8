"""Scripts, modules and styles of other origins: what runs, what is read of it, and with which credentials (HTML standard, 8.1)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Final

from tests.browser_laws.case import Case, Reply
from tests.browser_laws.fetch_cases import allow
from tests.browser_laws.login import LOGIN, NOBODY, all_of, cross_of, get, who

_WORDS: Final = "self.words = '[[who]]'"
_JS: Final = "text/javascript"
_NOSNIFF: Final = (("X-Content-Type-Options", "nosniff"),)
_ANY: Final = allow("*")
_ASKER: Final = allow(credentials=True)
_LOAD: Final = "const end = await load('script', {{{more}src: '{url}'}}); done(end, self.words);"


def list_element_cases() -> Iterator[Case]:
    """All of them."""
    yield from _list_scripts()
    yield from _list_scripts_with_cors()
    yield from _list_calling_scripts()
    yield from _list_types()
    yield from _list_modules()
    yield from _list_imports()
    yield from _list_script_errors()
    yield from _list_integrity()
    yield from _list_styles()
    yield from _list_odd_styles()


#: The page, the origin of the script, and the cookies that go along.
_SCRIPT_RELATIONS: Final = (
    ("as", "as", all_of("as")),
    ("as", "subs", all_of("subs")),
    ("as", "bs", cross_of("bs")),
    ("a", "a", all_of("a")),
    ("a", "sub", all_of("sub")),
    ("a", "b", NOBODY),
    ("a", "as", cross_of("as")),
    ("b", "bs", cross_of("bs")),
)


def _list_scripts() -> Iterator[Case]:
    for page, target, cookies in _SCRIPT_RELATIONS:
        yield Case(
            f"script of {target} in a page of {page}",
            page,
            _LOAD.format(more="", url=f"[[{target}]]/lib"),
            ("load", who(cookies)),
            (get(target, "lib", cookies),),
            {"lib": Reply(_WORDS, _JS)},
            cookies=LOGIN,
        )


def _list_scripts_with_cors() -> Iterator[Case]:
    for kind, credentials in (("anonymous", False), ("use-credentials", True)):
        for name, headers in (("nobody", ()), ("all", _ANY), ("the page", _ASKER)):
            cookies = cross_of("bs") if credentials else NOBODY
            may_run = headers == _ASKER or (headers == _ANY and not credentials)
            yield Case(
                f"script with crossorigin {kind}, allowed to {name}",
                "as",
                _LOAD.format(more=f"crossOrigin: '{kind}', ", url="[[bs]]/lib"),
                ("load", who(cookies)) if may_run else ("error", "undefined"),
                (get("bs", "lib", cookies),),
                {"lib": Reply(_WORDS, _JS, headers=headers)},
                cookies=LOGIN,
            )


def _list_calling_scripts() -> Iterator[Case]:
    yield Case(
        "script that calls a function of the page",
        "as",
        "self.take = words => say(words); await load('script', {src: '[[bs]]/lib?callback=take'}); done()",
        (who(cross_of("bs")),),
        (get("bs", "lib?callback=take", cross_of("bs")),),
        {"lib": Reply("take('[[who]]')", _JS)},
        cookies=LOGIN,
    )
    yield Case(
        "script of another origin that loads data as the page",
        "as",
        "self.ready = done; await load('script', {src: '[[bs]]/lib'})",
        (who(all_of("as")),),
        (get("bs", "lib"), get("as", "data", all_of("as"))),
        {"lib": Reply("fetch('[[as]]/data').then(r => r.text()).then(ready)", _JS), "data": Reply("[[who]]")},
        cookies=tuple(cookie for cookie in LOGIN if cookie.domain != "b.test"),
    )


#: The type, more headers, and whether the script runs.
_TYPES: Final = (
    ("text/plain", (), True),
    ("text/plain", _NOSNIFF, False),
    ("text/html", _NOSNIFF, False),
    ("application/json", _NOSNIFF, False),
    ("image/png", (), False),
    ("text/csv", (), False),
    ("application/x-words", (), True),
    (_JS, _NOSNIFF, True),
)


def _list_types() -> Iterator[Case]:
    for kind, headers, runs in _TYPES:
        yield Case(
            f"script of another origin as {kind}{' with nosniff' if headers else ''}",
            "as",
            _LOAD.format(more="", url="[[bs]]/lib"),
            ("load", "nobody") if runs else ("error", "undefined"),
            (get("bs", "lib"),),
            {"lib": Reply(_WORDS, kind, headers=headers)},
        )
    for name, body, kind in (
        ("data", '{"words": "[[who]]"}', "application/json"),
        ("a document", "<!doctype html><p>[[who]]", "text/html"),
    ):
        yield Case(
            f"script of another origin that is {name}",
            "as",
            "onerror = message => say(message); say(await load('script', {src: '[[bs]]/lib'})); done()",
            # What is surely no script is not given to the page at all.
            ("error",),
            (get("bs", "lib", cross_of("bs")),),
            {"lib": Reply(body, kind)},
            cookies=LOGIN,
        )
    for status in (404, 500):
        yield Case(
            f"script of another origin with status {status}",
            "as",
            _LOAD.format(more="", url="[[bs]]/lib"),
            ("error", "undefined"),
            (get("bs", "lib"),),
            {"lib": Reply(_WORDS, _JS, status=status)},
        )


_MODULE: Final = "self.words = '[[who]]'; export const words = '[[who]]'"


def _list_modules() -> Iterator[Case]:
    for name, headers, may_run in (("nobody", (), False), ("all", _ANY, True), ("the page", _ASKER, True)):
        yield Case(
            f"module allowed to {name}",
            "as",
            _LOAD.format(more="type: 'module', ", url="[[bs]]/lib"),
            ("load", "nobody") if may_run else ("error", "undefined"),
            (get("bs", "lib"),),
            {"lib": Reply(_MODULE, _JS, headers=headers)},
            cookies=LOGIN,
        )
        yield Case(
            f"module by import(), allowed to {name}",
            "as",
            "done(await import('[[bs]]/lib').then(m => m.words).catch(failed))",
            ("nobody",) if may_run else ("error TypeError",),
            (get("bs", "lib"),),
            {"lib": Reply(_MODULE, _JS, headers=headers)},
            cookies=LOGIN,
        )
        yield Case(
            f"module with crossorigin use-credentials, allowed to {name}",
            "as",
            _LOAD.format(more="type: 'module', crossOrigin: 'use-credentials', ", url="[[bs]]/lib"),
            ("load", who(cross_of("bs"))) if headers == _ASKER else ("error", "undefined"),
            (get("bs", "lib", cross_of("bs")),),
            {"lib": Reply(_MODULE, _JS, headers=headers)},
            cookies=LOGIN,
        )


def _list_imports() -> Iterator[Case]:
    yield Case(
        "module of the own origin that imports one of another",
        "as",
        "done(await import('[[as]]/lib').then(m => m.words).catch(failed))",
        ("nobody",),
        (get("as", "lib", all_of("as")), get("bs", "more")),
        {
            "lib": Reply("export {words} from '[[bs]]/more'", _JS),
            "more": Reply(_MODULE, _JS, headers=_ANY),
        },
        cookies=LOGIN,
    )
    yield Case(
        "module of another origin that imports its neighbour",
        "as",
        "done(await import('[[bs]]/lib').then(m => m.words).catch(failed))",
        ("error TypeError",),
        (get("bs", "lib"), get("bs", "more")),
        {"lib": Reply("export {words} from './more'", _JS, headers=_ANY), "more": Reply(_MODULE, _JS)},
        cookies=LOGIN,
    )
    yield Case(
        "module that is no script",
        "as",
        _LOAD.format(more="type: 'module', ", url="[[bs]]/lib"),
        ("error", "undefined"),
        (get("bs", "lib"),),
        {"lib": Reply(_MODULE, "text/plain", headers=_ANY)},
    )
    yield Case(
        "data as a module of another origin",
        "as",
        "done(await import('[[bs]]/lib', {with: {type: 'json'}}).then(m => m.default.words).catch(failed))",
        ("nobody",),
        (get("bs", "lib"),),
        {"lib": Reply('{"words": "[[who]]"}', "application/json", headers=_ANY)},
        cookies=LOGIN,
    )


def _list_script_errors() -> Iterator[Case]:
    for name, more, target, headers, reads in (
        ("another origin", "", "bs", (), "Script error."),
        ("another origin with CORS", "crossOrigin: 'anonymous', ", "bs", _ANY, "Uncaught Error: words"),
        ("the own origin", "", "as", (), "Uncaught Error: words"),
        ("the same site", "", "subs", (), "Script error."),
    ):
        yield Case(
            f"error in a script of {name}",
            "as",
            "onerror = (message, file) => say(message) || say(file);"
            f"await load('script', {{{more}src: '[[{target}]]/lib'}}); done()",
            (reads, "" if reads == "Script error." else f"{target}/lib"),
            (get(target, "lib"),),
            {"lib": Reply("throw Error('words')", _JS, headers=headers)},
        )


def _list_integrity() -> Iterator[Case]:
    body = "self.words = 'whole'"
    digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
    for name, more, headers, given, runs in (
        ("without CORS", "", _ANY, digest, False),
        ("with CORS", "crossOrigin: 'anonymous', ", _ANY, digest, True),
        ("with CORS, of another file", "crossOrigin: 'anonymous', ", _ANY, digest[::-1][1:] + "=", False),
    ):
        yield Case(
            f"integrity of a script of another origin {name}",
            "as",
            _LOAD.format(more=f"{more}integrity: 'sha256-{given}', ", url="[[bs]]/lib"),
            ("load", "whole") if runs else ("error", "undefined"),
            (get("bs", "lib"),),
            {"lib": Reply(body, _JS, headers=headers)},
        )


_STYLE: Final = (
    "say(await load('link', {{rel: 'stylesheet', {more}href: '{url}'}}));"
    "say(getComputedStyle(document.body).getPropertyValue('--words'));"
    "try {{ say([...document.styleSheets].flatMap(s => [...s.cssRules]).length) }} catch (e) {{ say(failed(e)) }} done()"
)


def _list_styles() -> Iterator[Case]:
    css = "body {{ --words: '{}' }}"
    for name, target, more, headers, reads, cookies in (
        ("the own origin", "as", "", (), ("1",), all_of("as")),
        ("the same site", "subs", "", (), ("error SecurityError",), all_of("subs")),
        ("another origin", "bs", "", (), ("error SecurityError",), cross_of("bs")),
        ("another origin, allowed and not asked for", "bs", "", _ANY, ("error SecurityError",), cross_of("bs")),
        ("another origin with CORS", "bs", "crossOrigin: 'anonymous', ", _ANY, ("1",), NOBODY),
        ("another origin with credentials", "bs", "crossOrigin: 'use-credentials', ", _ASKER, ("1",), cross_of("bs")),
    ):
        yield Case(
            f"style of {name}",
            "as",
            _STYLE.format(more=more, url=f"[[{target}]]/style"),
            ("load", f"'{who(cookies)}'", *reads),
            (get(target, "style", cookies),),
            {"style": Reply(css.format("[[who]]"), "text/css", headers=headers)},
            cookies=LOGIN,
        )


def _list_odd_styles() -> Iterator[Case]:
    # The standard has an error for another type as well; Chromium loads a style without rules.
    for name, more, kind, end in (
        ("that nobody may have with CORS", "crossOrigin: 'anonymous', ", "text/css", "error"),
        ("of another type", "", "text/plain", "load"),
        ("that is data", "", "application/json", "load"),
    ):
        yield Case(
            f"style of another origin {name}",
            "as",
            _STYLE.format(more=more, url="[[bs]]/style"),
            (end, "", "error SecurityError"),
            (get("bs", "style"),),
            {"style": Reply("body { --words: 'x' }", kind)},
        )
    yield Case(
        "style of the own origin that imports one of another",
        "as",
        "say(await load('link', {rel: 'stylesheet', href: 'style'}));"
        "const rule = document.styleSheets[0].cssRules[0];"
        "try { say(rule.styleSheet.cssRules.length) } catch (e) { say(failed(e)) } done()",
        ("load", "error SecurityError"),
        (get("as", "style", all_of("as")), get("bs", "more", cross_of("bs"))),
        {"style": Reply("@import '[[bs]]/more';", "text/css"), "more": Reply("body { color: red }", "text/css")},
        cookies=LOGIN,
    )
