"""Policies of pages and answers: mixed content, CSP, Referrer-Policy, CORP, COEP, and what is said of the asker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.browser_laws.case import HTML, JS, Case, Reply
from tests.browser_laws.fetch_cases import ANY, FAILED, READ, allow
from tests.browser_laws.login import all_of, cross_of, get, logged_in, who

_Headers = tuple[tuple[str, str], ...]
_FETCH: Final = READ.format(url="{url}", options="{{}}")
_SCRIPT: Final = "say(await load('script', {{src: '{url}'}})); done(self.words)"
_FRAME: Final = (
    "const message = hear(); const frame = document.createElement('iframe'); frame.src = '{url}'; document.body.append(frame);"
    "done(await Promise.race([message, wait({ms}).then(() => 'silence')]))"
)
_TALK: Final = Reply("<!doctype html><script>parent.postMessage('[[who]]', '*')</script>", HTML)
_ASK_OWN, _ASK_OTHER = _FETCH.format(url="data"), _FETCH.format(url="[[bs]]/data")
_LOAD_OTHER: Final = _SCRIPT.format(url="[[bs]]/lib")
_NOT_LOADED: Final = ("error", "undefined")
_LIB: Final = Reply("self.words = '[[who]]'", JS)
_DATA: Final = Reply("[[who]]", headers=ANY)


_INLINE: Final = "script-src 'unsafe-inline'"
_STYLE: Final = "done(await load('link', {rel: 'stylesheet', href: '[[b]]/style'}))"
_XHR: Final = (
    "const x = new XMLHttpRequest(); x.open('GET', '[[b]]/data'); x.onloadend = () => done(x.status); x.send()"
)
#: Name, script, and what it reads.
_MIXED: Final = (
    ("data", _FETCH.format(url="[[b]]/data"), FAILED),
    ("data of its own host", _FETCH.format(url="[[a]]/data"), FAILED),
    ("data with no-cors", "done(await fetch('[[b]]/data', {mode: 'no-cors'}).catch(failed))", FAILED),
    ("data by XMLHttpRequest", _XHR, ("0",)),
    ("a script", _SCRIPT.format(url="[[b]]/lib"), _NOT_LOADED),
    ("a module", "done(await import('[[b]]/lib').catch(failed))", FAILED),
    ("a style", _STYLE, ("error",)),
    ("a frame", _FRAME.format(url="[[b]]/frame", ms=700), ("silence",)),
    (
        "a socket",
        "try { new WebSocket('[[b]]/socket'.replace('http', 'ws')); done('open') } catch (e) { done(failed(e)) }",
        ("error SecurityError",),
    ),
    (
        "events",
        "const e = new EventSource('[[b]]/events'); e.onerror = () => done('error ' + e.readyState)",
        ("error 2",),
    ),
)


def _list_mixed() -> Iterator[Case]:
    for name, script, reads in _MIXED:
        yield logged_in(
            f"https page loads {name} over http",
            script,
            reads,
            (),
            {"data": _DATA, "lib": Reply(_LIB.body, JS, headers=ANY), "style": Reply("", "text/css"), "frame": _TALK},
        )
    inner = "<!doctype html><script>fetch('[[b]]/data').then(r => r.text()).catch(e => e.name).then(t => parent.postMessage(t, '*'))</script>"
    yield Case(
        "https frame in an http page loads data over http",
        _FRAME.format(url="[[bs]]/frame", ms=3500),
        ("TypeError",),
        (get("bs", "frame"),),
        {"frame": Reply(inner, HTML), "data": _DATA},
        origin="a",
    )
    yield Case(
        "http page loads a script over https",
        _LOAD_OTHER,
        ("load", "nobody"),
        (get("bs", "lib"),),
        {"lib": _LIB},
        origin="a",
    )


#: Name, policy, script of the page, what it reads, and what is sent.
_CONTENT_POLICIES: Final = (
    ("connect-src 'self', another origin", "connect-src 'self'", _ASK_OTHER, FAILED, ()),
    ("connect-src 'self', the own origin", "connect-src 'self'", _ASK_OWN, ("nobody",), (get("as"),)),
    ("connect-src with the other origin", "connect-src [[o_bs]]", _ASK_OTHER, ("nobody",), (get("bs"),)),
    (
        "connect-src 'self', a redirect to another origin",
        "connect-src 'self'",
        _FETCH.format(url="go"),
        FAILED,
        (get("as", "go"),),
    ),
    ("connect-src with another path", "connect-src [[bs]]/elsewhere/", _ASK_OTHER, FAILED, ()),
    ("default-src 'none'", f"default-src 'none'; {_INLINE}", _ASK_OWN, FAILED, ()),
    ("script-src without the other origin", _INLINE, _LOAD_OTHER, _NOT_LOADED, ()),
    ("script-src with the other origin", f"{_INLINE} [[o_bs]]", _LOAD_OTHER, ("load", "nobody"), (get("bs", "lib"),)),
    ("script-src with the other scheme only", f"{_INLINE} http://b.test", _LOAD_OTHER, _NOT_LOADED, ()),
    ("no eval", _INLINE, "try { done(eval('1')) } catch (e) { done(failed(e)) }", ("error EvalError",), ()),
    (
        "style-src 'self'",
        "style-src 'self'",
        "done(await load('link', {rel: 'stylesheet', href: '[[bs]]/style'}))",
        ("error",),
        (),
    ),
    ("frame-src 'self'", "frame-src 'self'", _FRAME.format(url="[[bs]]/frame", ms=700), ("silence",), ()),
    (
        "frame-src with the other origin",
        "frame-src [[o_bs]]",
        _FRAME.format(url="[[bs]]/frame", ms=3500),
        ("nobody",),
        (get("bs", "frame"),),
    ),
    ("sandbox", "sandbox allow-scripts", _ASK_OWN, ("null nobody",), (get("as"),)),
)


def _list_content_policies() -> Iterator[Case]:
    for name, policy, script, reads, sends in _CONTENT_POLICIES:
        data = Reply("null [[who]]", headers=allow("null")) if name == "sandbox" else _DATA
        files = {
            "data": data,
            "go": Reply(status=302, headers=(("Location", "[[bs]]/data"), *ANY)),
            "lib": _LIB,
            "style": Reply("", "text/css"),
            "frame": _TALK,
        }
        yield Case(f"CSP {name}", script, reads, sends, files, headers=(("Content-Security-Policy", policy),))
    yield Case(
        "CSP of a meta element",
        _ASK_OTHER,
        FAILED,
        (),
        {"data": _DATA},
        head="<meta http-equiv=Content-Security-Policy content=\"connect-src 'self'\">",
    )
    yield Case(
        "CSP that only reports",
        _ASK_OTHER,
        ("nobody",),
        (get("bs"),),
        {"data": _DATA},
        headers=(("Content-Security-Policy-Report-Only", "connect-src 'self'"),),
    )


#: The policy, and what the own origin and another one see.
_REFERRERS: Final = (
    ("", "as/page", "as"),
    ("no-referrer", "none", "none"),
    ("origin", "as", "as"),
    ("strict-origin", "as", "as"),
    ("same-origin", "as/page", "none"),
    ("origin-when-cross-origin", "as/page", "as"),
    ("strict-origin-when-cross-origin", "as/page", "as"),
    ("no-referrer-when-downgrade", "as/page", "as/page"),
    ("unsafe-url", "as/page", "as/page"),
)


def _list_referrers() -> Iterator[Case]:
    """What another origin, and the own one over http, see of the page's address."""
    data = {"data": Reply("[[referrer]]", headers=ANY)}
    for policy, own, other in _REFERRERS:
        yield Case(
            f"Referrer-Policy {policy or 'none'}",
            "say(await fetch('data').then(text)); done(await fetch('[[bs]]/data').then(text))",
            (own, other),
            (get("as"), get("bs")),
            data,
            headers=(("Referrer-Policy", policy),) if policy else (),
        )
    for name, options, reads in (
        ("no referrer", "{referrer: ''}", "none"),
        ("a policy", "{referrerPolicy: 'unsafe-url'}", "as/page"),
        ("another address of the own origin", "{referrer: '/elsewhere', referrerPolicy: 'unsafe-url'}", "as/elsewhere"),
    ):
        yield Case(
            f"fetch with {name}",
            READ.format(url="[[bs]]/data", options=options.replace("'/elsewhere'", "'elsewhere'")),
            (reads,),
            (get("bs"),),
            data,
        )
    yield Case(
        "referrer from https to http",
        "done(await fetch('[[bs]]/data').then(text))",
        ("a",),
        (get("bs"),),
        data,
        origin="a",
    )


def _list_resource_policies() -> Iterator[Case]:
    for policy, origin, may_load in (
        ("same-origin", "bs", False),
        ("same-origin", "subs", False),
        ("same-origin", "as", True),
        ("same-site", "bs", False),
        ("same-site", "subs", True),
        ("cross-origin", "bs", True),
    ):
        headers = (("Cross-Origin-Resource-Policy", policy),)
        cookies = all_of(origin) if origin != "bs" else cross_of("bs")
        yield logged_in(
            f"script of {origin} with CORP {policy}",
            _SCRIPT.format(url=f"[[{origin}]]/lib"),
            ("load", who(cookies)) if may_load else _NOT_LOADED,
            (get(origin, "lib", cookies),),
            {"lib": Reply(_LIB.body, JS, headers=headers)},
        )
    headers = (("Cross-Origin-Resource-Policy", "same-origin"),)
    yield Case(
        "no-cors fetch with CORP same-origin",
        "done(await fetch('[[bs]]/data', {mode: 'no-cors'}).then(r => r.type).catch(failed))",
        FAILED,
        (get("bs"),),
        {"data": Reply(headers=headers)},
    )
    yield Case(
        "cors fetch with CORP same-origin",
        _ASK_OTHER,
        ("nobody",),
        (get("bs"),),
        {"data": Reply("[[who]]", headers=(*headers, *ANY))},
    )


def _list_embedder_policies() -> Iterator[Case]:
    required: _Headers = (("Cross-Origin-Embedder-Policy", "require-corp"),)
    free = (("Cross-Origin-Embedder-Policy", "credentialless"),)
    shared: _Headers = (("Cross-Origin-Resource-Policy", "cross-origin"),)
    cookies = cross_of("bs")
    for name, page, reply, sent, may_load in (
        ("require-corp, a script without a word", required, (), cookies, False),
        ("require-corp, a script for all", required, shared, cookies, True),
        ("credentialless, a script without a word", free, (), (), True),
    ):
        yield logged_in(
            f"COEP {name}",
            _LOAD_OTHER,
            ("load", who(sent)) if may_load else _NOT_LOADED,
            (get("bs", "lib", sent),),
            {"lib": Reply(_LIB.body, JS, headers=reply)},
            headers=page,
        )
    framed: tuple[tuple[str, _Headers, bool], ...] = (
        ("without a word", (), False),
        ("that has it too", (*required, *shared), True),
    )
    for name, reply, is_shown in framed:
        yield logged_in(
            f"COEP require-corp, a frame {name}",
            _FRAME.format(url="[[bs]]/frame", ms=3500 if is_shown else 700),
            (who(cookies) if is_shown else "silence",),
            (get("bs", "frame", cookies),),
            {"frame": Reply(_TALK.body, HTML, headers=reply)},
            headers=required,
        )
    opener = (("Cross-Origin-Opener-Policy", "same-origin"),)
    for name, given, reads in (
        ("neither", (), "false"),
        ("COEP alone", required, "false"),
        ("COEP and COOP", (*required, *opener), "true"),
    ):
        yield Case(f"page with {name} is isolated", "done(crossOriginIsolated)", (reads,), headers=given)


def _list_sites() -> Iterator[Case]:
    for page, target, reads in (
        ("as", "as", "same-origin"),
        ("as", "subs", "same-site"),
        ("as", "bs", "cross-site"),
        ("a", "as", "cross-site"),
        ("a", "a", "none"),
        ("a", "b", "none"),
    ):
        yield Case(
            f"Sec-Fetch-Site from {page} to {target}",
            _FETCH.format(url=f"[[{target}]]/data"),
            (reads,),
            (get(target),),
            {"data": Reply("[[site]]", headers=ANY)},
            origin=page,
        )
    yield Case(
        "Sec-Fetch-Site after a redirect there and back",
        _FETCH.format(url="[[bs]]/go"),
        ("cross-site",),
        (get("bs", "go"), get("as")),
        {
            "go": Reply(status=302, headers=(("Location", "[[as]]/data"), *ANY)),
            "data": Reply("[[site]]", headers=ANY),
        },
    )


CASES: Final = [
    *_list_mixed(),
    *_list_content_policies(),
    *_list_referrers(),
    *_list_resource_policies(),
    *_list_embedder_policies(),
    *_list_sites(),
]
