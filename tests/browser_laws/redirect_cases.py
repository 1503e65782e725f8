"""Redirects across origins: who is the asker after them, and with which credentials (Fetch standard, 4.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.browser_laws.case import Case, Reply
from tests.browser_laws.fetch_cases import ANY, ASKER, FAILED, READ, allow
from tests.browser_laws.login import NOBODY, all_of, ask, cross_of, get, logged_in, who

_PAGE: Final = allow("[[o_as]]", credentials=True)


def go(to: str, headers: tuple[tuple[str, str], ...] = ASKER, status: int = 302) -> Reply:
    """A redirect."""
    return Reply(status=status, headers=(*headers, ("Location", to)))


class _Chain(NamedTuple):
    """Origins one after the other, and the headers of all answers; whether the last may be read."""

    origins: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    may_read: bool


#: With ``include``. An origin that leads to another one, when it is not the page's own, makes the asker ``null``.
_CHAINS: Final = {
    "to another origin": _Chain(("as", "bs"), ASKER, True),
    "to another origin that allows the page": _Chain(("as", "bs"), _PAGE, True),
    "to another origin that allows nobody": _Chain(("as", "bs"), (), False),
    "to another origin that allows all": _Chain(("as", "bs"), ANY, False),
    "from another origin back": _Chain(("bs", "as"), ASKER, True),
    "from another origin back, where the page is allowed": _Chain(("bs", "as"), _PAGE, False),
    "within another origin": _Chain(("bs", "bs"), _PAGE, True),
    "from another origin to a third": _Chain(("bs", "subs"), ASKER, True),
    "from another origin to a third that allows the page": _Chain(("bs", "subs"), _PAGE, False),
    "there and back": _Chain(("as", "bs", "as"), ASKER, True),
    "there and back, where the page is allowed": _Chain(("as", "bs", "as"), _PAGE, False),
    "over three": _Chain(("as", "bs", "subs"), ASKER, True),
    "over three, where the page is allowed": _Chain(("as", "bs", "subs"), _PAGE, False),
    "within the own origin": _Chain(("as", "as"), (), True),
    "over the same site": _Chain(("as", "subs", "as"), ASKER, True),
}


def _list_chains() -> Iterator[Case]:
    for credentials in ("include", "same-origin"):
        for name, through in _CHAINS.items():
            origins, headers, may_read = through
            if credentials == "same-origin" and headers == ANY:
                may_read = True
            files, sent, is_cross = {}, [], False
            for number, origin in enumerate(origins):
                is_last = number == len(origins) - 1
                path = "data" if is_last else f"go{number}"
                following = "data" if number == len(origins) - 2 else f"go{number + 1}"
                is_cross = is_cross or origin != "as"
                has_cookies = credentials == "include" or not is_cross
                cookies = _find_cookies(origin) if has_cookies else NOBODY
                sent.append((origin, path, cookies))
                if not is_last:
                    files[path] = go(f"[[{origins[number + 1]}]]/{following}", headers)
            files["data"] = Reply("[[who]]", headers=headers)
            yield logged_in(
                f"redirect {name}, {credentials}",
                READ.format(url=f"[[{origins[0]}]]/{sent[0][1]}", options=f"{{credentials: '{credentials}'}}"),
                (who(sent[-1][2]),) if may_read else FAILED,
                tuple(get(*each) for each in sent[: _count_sent(through, credentials)]),
                files,
            )


def _find_cookies(origin: str) -> tuple[str, ...]:
    """Chromium asks of a request which site the page is of, and not which redirects led there."""
    return cross_of(origin) if origin == "bs" else all_of(origin)


def _count_sent(chain: _Chain, credentials: str) -> int:
    """How many are asked: CORS stops at the first of another origin that does not allow the asker."""
    asker, before = "as", "as"
    for number, origin in enumerate(chain.origins):
        if before not in {origin, "as"}:
            asker = "null"
        before = origin
        is_cors = any(each != "as" for each in chain.origins[: number + 1])
        is_allowed = chain.headers == ASKER or (chain.headers == _PAGE and asker == "as")
        is_allowed = is_allowed or (chain.headers == ANY and credentials != "include")
        if is_cors and not is_allowed:
            return number + 1
    return len(chain.origins)


_OWN: Final = get("as", "go", all_of("as"))
_STOPPED: Final = ("error TypeError", "undefined", "undefined", "undefined")
_OPAQUE: Final = ("opaqueredirect", "0", "false")
#: Name, URL, options, what is read, and what is sent.
_MODES: Final = (
    ("error", "[[as]]/go", "{redirect: 'error'}", _STOPPED, (_OWN,)),
    ("manual", "[[as]]/go", "{redirect: 'manual'}", (*_OPAQUE, "as/go"), (_OWN,)),
    ("manual of another origin", "[[bs]]/go", "{redirect: 'manual'}", (*_OPAQUE, "bs/go"), (get("bs", "go"),)),
    ("follow", "[[as]]/go", "{}", ("cors", "200", "true", "bs/data"), (_OWN, get("bs"))),
    ("follow with no-cors", "[[as]]/go", "{mode: 'no-cors'}", ("opaque", "0", "false", ""), (_OWN, get("bs"))),
    ("follow with same-origin", "[[as]]/go", "{mode: 'same-origin'}", _STOPPED, (_OWN,)),
)


def _list_modes() -> Iterator[Case]:
    say = "const r = await fetch('{url}', {options}).catch(e => ({{type: failed(e)}})); done(r.type, r.status, r.redirected, r.url)"
    for name, url, options, reads, sends in _MODES:
        yield logged_in(
            f"redirect mode {name}",
            say.format(url=url, options=options),
            reads,
            sends,
            {"go": go("[[bs]]/data"), "data": Reply("[[who]]", headers=ASKER)},
        )
    yield logged_in(
        "redirect back with no-cors",
        "const r = await fetch('[[bs]]/go', {mode: 'no-cors', credentials: 'include'}); done(r.type, await r.text())",
        ("opaque", ""),
        (get("bs", "go", cross_of("bs")), get("as", "data", all_of("as"))),
        {"go": go("[[as]]/data"), "data": Reply("[[who]]", headers=ASKER)},
    )


def _list_statuses() -> Iterator[Case]:
    for status in (301, 303, 307, 308):
        yield logged_in(
            f"redirect by {status}",
            READ.format(url="go", options="{credentials: 'include'}"),
            (who(cross_of("bs")),),
            (get("as", "go", all_of("as")), get("bs", "data", cross_of("bs"))),
            {"go": go("[[bs]]/data", status=status), "data": Reply("[[who]]", headers=ASKER)},
        )


def _list_odd_targets() -> Iterator[Case]:
    for name, target, sends in (
        ("data", "data:text/plain,words", ()),
        ("a file", "file:///etc/hostname", ()),
        ("no scheme that is known", "words:words", ()),
        ("http from https", "[[b]]/data", ()),
    ):
        yield Case(
            f"redirect to {name}",
            READ.format(url="go", options="{}"),
            FAILED,
            (get("as", "go"), *sends),
            {"go": go(target), "data": Reply("[[who]]", headers=ANY)},
        )
    yield logged_in(
        "redirect from http to https",
        READ.format(url="go", options="{credentials: 'include'}"),
        (who(cross_of("bs")),),
        (get("a", "go", all_of("a")), get("bs", "data", cross_of("bs"))),
        {"go": go("[[bs]]/data"), "data": Reply("[[who]]", headers=ASKER)},
        origin="a",
    )
    yield Case(
        "redirect without a target",
        READ.format(url="go", options="{}"),
        ("words",),
        (get("as", "go"),),
        {"go": Reply("words", status=302)},
    )


def _list_scripts() -> Iterator[Case]:
    script = Reply("self.words = '[[who]]'", "text/javascript")
    allowed = Reply("self.words = '[[who]]'", "text/javascript", headers=ASKER)
    own, cross = all_of("as"), cross_of("bs")
    for name, more, file, reads, cookies in (
        ("classic script", "", script, ("load", who(cross)), (own, cross)),
        ("module", "type: 'module', ", script, ("error", "undefined"), (own, NOBODY)),
        ("module that is allowed", "type: 'module', ", allowed, ("load", "nobody"), (own, NOBODY)),
        ("script with CORS", "crossOrigin: 'use-credentials', ", allowed, ("load", who(cross)), (own, cross)),
        ("script with CORS, not allowed", "crossOrigin: 'anonymous', ", script, ("error", "undefined"), (own, NOBODY)),
    ):
        yield logged_in(
            f"redirect of a {name}",
            f"const end = await load('script', {{{more}src: 'go'}}); done(end, self.words);",
            reads,
            (get("as", "go", cookies[0]), get("bs", "lib", cookies[1])),
            {"go": go("[[bs]]/lib"), "lib": file},
        )
    yield Case(
        "redirect of a script back to the own origin",
        "onerror = message => say(message); await load('script', {src: '[[bs]]/go'}); done()",
        ("Script error.",),
        (get("bs", "go"), get("as", "lib")),
        {"go": go("[[as]]/lib"), "lib": Reply("throw Error('words')", "text/javascript")},
    )


def _list_with_headers() -> Iterator[Case]:
    reply = Reply("[[who]]", headers=ASKER)
    preflight = Reply(headers=(*ASKER, *allow(None, Allow_Headers="x-word, authorization")))
    yield Case(
        "redirect to another origin with a header: a preflight there",
        READ.format(url="go", options="{headers: {'X-Word': 'x'}}"),
        ("nobody",),
        (get("as", "go"), ask("bs"), get("bs")),
        {"go": go("[[bs]]/data"), "data": reply, "OPTIONS data": preflight},
    )
    yield Case(
        "redirect to another origin with a header that it does not allow",
        READ.format(url="go", options="{headers: {'X-Word': 'x'}}"),
        FAILED,
        (get("as", "go"), ask("bs")),
        {"go": go("[[bs]]/data"), "data": reply},
    )
    yield Case(
        "redirect after a preflight",
        READ.format(url="[[bs]]/go", options="{headers: {'X-Word': 'x'}}"),
        ("nobody",),
        (ask("bs", "go"), get("bs", "go"), ask("subs"), get("subs")),
        {"go": go("[[subs]]/data"), "data": reply, "OPTIONS go": preflight, "OPTIONS data": preflight},
    )
    yield Case(
        "redirect to another origin with Authorization: it stays behind",
        READ.format(url="go", options="{headers: {Authorization: 'Basic ' + btoa('wanda:open')}}"),
        ("nobody",),
        (get("as", "go", password=True), get("bs")),
        {"go": go("[[bs]]/data"), "data": reply, "OPTIONS data": preflight},
    )


CASES: Final = [
    *_list_chains(),
    *_list_modes(),
    *_list_statuses(),
    *_list_odd_targets(),
    *_list_scripts(),
    *_list_with_headers(),
]
