"""Scripts, modules and styles of other origins: what runs, what is read of it, and with which credentials (HTML standard, 8.1)."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Final

from tests.browser_laws.case import JS, Case, Reply
from tests.browser_laws.fetch_cases import ANY, ASKER, FAILED
from tests.browser_laws.login import LOGIN, NOBODY, all_of, cross_of, get, logged_in, who

_WORDS: Final = "self.words = '[[who]]'"
_NOSNIFF: Final = (("X-Content-Type-Options", "nosniff"),)


def _script(
    name: str,
    lib: Reply,
    cookies: tuple[str, ...] | None,
    *,
    runs: bool = True,
    words: str = "",
    target: str = "bs",
    more: str = "",
    origin: str = "as",
) -> Case:
    """A script of ``target``; ``cookies`` go along, None: nobody is logged in. Where it ``runs``, its ``words`` are read."""
    return Case(
        name,
        f"const end = await load('script', {{{more}src: '[[{target}]]/lib'}}); done(end, self.words);",
        ("load", words or who(cookies or NOBODY)) if runs else ("error", "undefined"),
        (get(target, "lib", cookies or NOBODY),),
        {"lib": lib},
        origin=origin,
        cookies=() if cookies is None else LOGIN,
    )


def _list_scripts() -> Iterator[Case]:
    # The page, the origin of the script, and the cookies that go along.
    for page, target, cookies in (
        ("as", "as", all_of("as")),
        ("as", "subs", all_of("subs")),
        ("as", "bs", cross_of("bs")),
        ("a", "a", all_of("a")),
        ("a", "sub", all_of("sub")),
        ("a", "b", NOBODY),
        ("a", "as", cross_of("as")),
        ("b", "bs", cross_of("bs")),
    ):
        yield _script(f"script of {target} in a page of {page}", Reply(_WORDS, JS), cookies, target=target, origin=page)


def _list_scripts_with_cors() -> Iterator[Case]:
    for kind, cookies in (("anonymous", NOBODY), ("use-credentials", cross_of("bs"))):
        for name, headers in (("nobody", ()), ("all", ANY), ("the page", ASKER)):
            yield _script(
                f"script with crossorigin {kind}, allowed to {name}",
                Reply(_WORDS, JS, headers=headers),
                cookies,
                runs=headers == ASKER or (headers == ANY and not cookies),
                more=f"crossOrigin: '{kind}', ",
            )


def _list_calling_scripts() -> Iterator[Case]:
    yield logged_in(
        "script that calls a function of the page",
        "self.take = words => say(words); await load('script', {src: '[[bs]]/lib?callback=take'}); done()",
        (who(cross_of("bs")),),
        (get("bs", "lib?callback=take", cross_of("bs")),),
        {"lib": Reply("take('[[who]]')", JS)},
    )
    yield Case(
        "script of another origin that loads data as the page",
        "self.ready = done; await load('script', {src: '[[bs]]/lib'})",
        (who(all_of("as")),),
        (get("bs", "lib"), get("as", "data", all_of("as"))),
        {"lib": Reply("fetch('[[as]]/data').then(r => r.text()).then(ready)", JS), "data": Reply("[[who]]")},
        cookies=tuple(cookie for cookie in LOGIN if cookie.domain != "b.test"),
    )


def _list_types() -> Iterator[Case]:
    # The type, more headers, and whether the script runs.
    for kind, headers, runs in (
        ("text/plain", (), True),
        ("text/plain", _NOSNIFF, False),
        ("text/html", _NOSNIFF, False),
        ("application/json", _NOSNIFF, False),
        ("image/png", (), False),
        ("text/csv", (), False),
        ("application/x-words", (), True),
        (JS, _NOSNIFF, True),
    ):
        name = f"script of another origin as {kind}{' with nosniff' if headers else ''}"
        yield _script(name, Reply(_WORDS, kind, headers=headers), None, runs=runs)
    for name, body, kind in (
        ("data", '{"words": "[[who]]"}', "application/json"),
        ("a document", "<!doctype html><p>[[who]]", "text/html"),
    ):
        yield logged_in(
            f"script of another origin that is {name}",
            "onerror = message => say(message); say(await load('script', {src: '[[bs]]/lib'})); done()",
            # What is surely no script is not given to the page at all.
            ("error",),
            (get("bs", "lib", cross_of("bs")),),
            {"lib": Reply(body, kind)},
        )
    for status in (404, 500):
        yield _script(
            f"script of another origin with status {status}", Reply(_WORDS, JS, status=status), None, runs=False
        )


_MODULE: Final = "self.words = '[[who]]'; export const words = '[[who]]'"


def _list_modules() -> Iterator[Case]:
    for name, headers in (("nobody", ()), ("all", ANY), ("the page", ASKER)):
        module = Reply(_MODULE, JS, headers=headers)
        yield _script(f"module allowed to {name}", module, NOBODY, runs=bool(headers), more="type: 'module', ")
        yield logged_in(
            f"module by import(), allowed to {name}",
            "done(await import('[[bs]]/lib').then(m => m.words).catch(failed))",
            ("nobody",) if headers else FAILED,
            (get("bs", "lib"),),
            {"lib": module},
        )
        yield _script(
            f"module with crossorigin use-credentials, allowed to {name}",
            module,
            cross_of("bs"),
            runs=headers == ASKER,
            more="type: 'module', crossOrigin: 'use-credentials', ",
        )


def _list_imports() -> Iterator[Case]:
    yield logged_in(
        "module of the own origin that imports one of another",
        "done(await import('[[as]]/lib').then(m => m.words).catch(failed))",
        ("nobody",),
        (get("as", "lib", all_of("as")), get("bs", "more")),
        {
            "lib": Reply("export {words} from '[[bs]]/more'", JS),
            "more": Reply(_MODULE, JS, headers=ANY),
        },
    )
    yield logged_in(
        "module of another origin that imports its neighbour",
        "done(await import('[[bs]]/lib').then(m => m.words).catch(failed))",
        FAILED,
        (get("bs", "lib"), get("bs", "more")),
        {"lib": Reply("export {words} from './more'", JS, headers=ANY), "more": Reply(_MODULE, JS)},
    )
    no_script = Reply(_MODULE, "text/plain", headers=ANY)
    yield _script("module that is no script", no_script, None, runs=False, more="type: 'module', ")
    yield logged_in(
        "data as a module of another origin",
        "done(await import('[[bs]]/lib', {with: {type: 'json'}}).then(m => m.default.words).catch(failed))",
        ("nobody",),
        (get("bs", "lib"),),
        {"lib": Reply('{"words": "[[who]]"}', "application/json", headers=ANY)},
    )


def _list_script_errors() -> Iterator[Case]:
    for name, more, target, headers, reads in (
        ("another origin", "", "bs", (), "Script error."),
        ("another origin with CORS", "crossOrigin: 'anonymous', ", "bs", ANY, "Uncaught Error: words"),
        ("the own origin", "", "as", (), "Uncaught Error: words"),
        ("the same site", "", "subs", (), "Script error."),
    ):
        yield Case(
            f"error in a script of {name}",
            "onerror = (message, file) => say(message) || say(file);"
            f"await load('script', {{{more}src: '[[{target}]]/lib'}}); done()",
            (reads, "" if reads == "Script error." else f"{target}/lib"),
            (get(target, "lib"),),
            {"lib": Reply("throw Error('words')", JS, headers=headers)},
        )


def _list_integrity() -> Iterator[Case]:
    body = "self.words = 'whole'"
    digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
    for name, more, headers, given, runs in (
        ("without CORS", "", ANY, digest, False),
        ("with CORS", "crossOrigin: 'anonymous', ", ANY, digest, True),
        ("with CORS, of another file", "crossOrigin: 'anonymous', ", ANY, digest[::-1][1:] + "=", False),
    ):
        yield _script(
            f"integrity of a script of another origin {name}",
            Reply(body, JS, headers=headers),
            None,
            runs=runs,
            words="whole",
            more=f"{more}integrity: 'sha256-{given}', ",
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
        ("another origin, allowed and not asked for", "bs", "", ANY, ("error SecurityError",), cross_of("bs")),
        ("another origin with CORS", "bs", "crossOrigin: 'anonymous', ", ANY, ("1",), NOBODY),
        ("another origin with credentials", "bs", "crossOrigin: 'use-credentials', ", ASKER, ("1",), cross_of("bs")),
    ):
        yield logged_in(
            f"style of {name}",
            _STYLE.format(more=more, url=f"[[{target}]]/style"),
            ("load", f"'{who(cookies)}'", *reads),
            (get(target, "style", cookies),),
            {"style": Reply(css.format("[[who]]"), "text/css", headers=headers)},
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
            _STYLE.format(more=more, url="[[bs]]/style"),
            (end, "", "error SecurityError"),
            (get("bs", "style"),),
            {"style": Reply("body { --words: 'x' }", kind)},
        )
    yield logged_in(
        "style of the own origin that imports one of another",
        "say(await load('link', {rel: 'stylesheet', href: 'style'}));"
        "const rule = document.styleSheets[0].cssRules[0];"
        "try { say(rule.styleSheet.cssRules.length) } catch (e) { say(failed(e)) } done()",
        ("load", "error SecurityError"),
        (get("as", "style", all_of("as")), get("bs", "more", cross_of("bs"))),
        {"style": Reply("@import '[[bs]]/more';", "text/css"), "more": Reply("body { color: red }", "text/css")},
    )


CASES: Final = [
    *_list_scripts(),
    *_list_scripts_with_cors(),
    *_list_calling_scripts(),
    *_list_types(),
    *_list_modules(),
    *_list_imports(),
    *_list_script_errors(),
    *_list_integrity(),
    *_list_styles(),
    *_list_odd_styles(),
]
