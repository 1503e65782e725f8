"""Frames: who reads whose document, what they say to each other, and who may be framed (HTML standard, 7; CSP 3, 6.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.browser_laws.case import HTML, Case, Reply
from tests.browser_laws.fetch_cases import ASKER
from tests.browser_laws.login import all_of, cross_of, get, logged_in, who

#: A document that says to the page what it was asked with.
_TALK: Final = "<!doctype html><p>words [[who]]</p><script>parent.postMessage('[[who]]', '*')</script>"
#: ``heard`` is what a frame has said. Where it is to say nothing, it is not waited for as long.
_OPEN: Final = (
    "const frame = document.createElement('iframe'); {more} frame.{source}; const message = hear();"
    "const heard = ms => Promise.race([message, wait(ms).then(() => 'silence')]);"
    "document.body.append(frame); await new Promise(end => frame.onload = end);"
)
_HEARD: Final = "done(await heard(3500))"
_UNHEARD: Final = "done(await heard(700))"
_PEEK: Final = "say(frame.contentDocument ? frame.contentDocument.body.textContent.slice(0, 5) : 'closed');"


def _wait(reads: str) -> str:
    return _UNHEARD if reads == "silence" else _HEARD


def _open(source: str, more: str = "") -> str:
    return _OPEN.format(source=source, more=more)


#: The page, the origin of the frame, and the cookies that go along.
_RELATIONS: Final = (
    ("as", "as", all_of("as")),
    ("as", "subs", all_of("subs")),
    ("as", "bs", cross_of("bs")),
    ("a", "a", all_of("a")),
    ("a", "sub", all_of("sub")),
    ("a", "b", ()),
    ("a", "as", cross_of("as")),
    ("bs", "as", cross_of("as")),
)


def _list_relations() -> Iterator[Case]:
    for page, target, cookies in _RELATIONS:
        yield logged_in(
            f"frame of {target} in a page of {page}",
            _open(f"src = '[[{target}]]/frame'") + _PEEK + _HEARD,
            ("words" if page == target else "closed", who(cookies)),
            (get(target, "frame", cookies),),
            {"frame": Reply(_TALK, HTML)},
            origin=page,
        )
    yield logged_in(
        "frame that a redirect leads to another origin",
        _open("src = 'go'") + _PEEK + _HEARD,
        ("closed", who(cross_of("bs"))),
        (get("as", "go", all_of("as")), get("bs", "frame", cross_of("bs"))),
        {"go": Reply(status=302, headers=(("Location", "[[bs]]/frame"),)), "frame": Reply(_TALK, HTML)},
    )
    yield logged_in(
        "frame without credentials",
        _open("src = '[[bs]]/frame'", "frame.credentialless = true;") + _HEARD,
        ("nobody",),
        (get("bs", "frame"),),
        {"frame": Reply(_TALK, HTML)},
    )
    inner = "<!doctype html><iframe src='[[as]]/inner'></iframe><script>onmessage = e => parent.postMessage(e.data, '*')</script>"
    yield logged_in(
        "frame of the page's origin in one of another",
        _open("src = '[[bs]]/frame'") + _HEARD,
        # A frame of another site stands between them.
        (who(cross_of("as")),),
        (get("bs", "frame", cross_of("bs")), get("as", "inner", cross_of("as"))),
        {"frame": Reply(inner, HTML), "inner": Reply(_TALK, HTML)},
    )


def _list_sandboxes() -> Iterator[Case]:
    own = get("as", "frame", all_of("as"))
    for sandbox, reads in (
        ("", ("closed", "silence")),
        ("allow-scripts", ("closed", who(all_of("as")))),
        ("allow-same-origin", ("words", "silence")),
        ("allow-scripts allow-same-origin", ("words", who(all_of("as")))),
    ):
        yield logged_in(
            f"frame of the own origin with sandbox '{sandbox}'",
            _open("src = 'frame'", f"frame.sandbox = '{sandbox}';") + _PEEK + _wait(reads[1]),
            reads,
            (own,),
            {"frame": Reply(_TALK, HTML)},
        )
    for name, source, peeks, asker in (
        ("srcdoc", "srcdoc = '{}'", True, "as"),
        ("blob", "src = URL.createObjectURL(new Blob(['{}'], {{type: 'text/html'}}))", True, "as"),
        ("data", "src = 'data:text/html,' + encodeURIComponent('{}')", False, "null"),
    ):
        inner = "<p>words<script>parent.postMessage(origin, \"*\")</' + 'script>"
        yield Case(
            f"frame with a document by {name}",
            _open(source.format(inner)) + _PEEK + _HEARD,
            ("words" if peeks else "closed", asker),
        )


def _list_data_of_sandboxes() -> Iterator[Case]:
    load = "fetch('[[as]]/data', {credentials: 'include'}).then(r => r.text()).catch(e => e.name).then(t => parent.postMessage(t, '*'))"
    document = f"<!doctype html><p>words<script>{load}</script>"
    for name, more, headers, got in (
        ("", "", (), who(all_of("as"))),
        (" with a sandbox", "frame.sandbox = 'allow-scripts';", (), "TypeError"),
        (" with a sandbox, allowed", "frame.sandbox = 'allow-scripts';", ASKER, who(cross_of("as"))),
    ):
        yield logged_in(
            f"frame of the own origin{name} that loads data",
            _open("src = 'frame'", more) + _HEARD,
            (got,),
            # An origin that is nobody's is of no site.
            (get("as", "frame", all_of("as")), get("as", "data", cross_of("as") if more else all_of("as"))),
            {"frame": Reply(document, HTML), "data": Reply("[[who]]", headers=headers)},
        )


def _list_refused() -> Iterator[Case]:
    options, policy = "X-Frame-Options", "Content-Security-Policy"
    for name, target, headers, is_shown in (
        ("X-Frame-Options DENY", "as", ((options, "DENY"),), False),
        ("X-Frame-Options SAMEORIGIN", "as", ((options, "SAMEORIGIN"),), True),
        ("X-Frame-Options SAMEORIGIN of another origin", "bs", ((options, "SAMEORIGIN"),), False),
        ("X-Frame-Options of no meaning", "bs", ((options, "ALLOW"),), True),
        ("frame-ancestors 'none'", "as", ((policy, "frame-ancestors 'none'"),), False),
        ("frame-ancestors 'self'", "bs", ((policy, "frame-ancestors 'self'"),), False),
        ("frame-ancestors with the page", "bs", ((policy, "frame-ancestors [[o_as]]"),), True),
        (f"frame-ancestors before {options}", "bs", ((policy, "frame-ancestors [[o_as]]"), (options, "DENY")), True),
    ):
        cookies = all_of(target) if target == "as" else cross_of(target)
        yield logged_in(
            f"frame of {target} with {name}",
            _open(f"src = '[[{target}]]/frame'") + (_HEARD if is_shown else _UNHEARD),
            (who(cookies) if is_shown else "silence",),
            (get(target, "frame", cookies),),
            {"frame": Reply(_TALK, HTML, headers=headers)},
        )


_ASK: Final = "fetch('{url}', {{credentials: 'include'}}).then(r => r.text())"
_ASK_OWN, _ASK_PAGE = _ASK.format(url="data"), _ASK.format(url="[[as]]/data")
_SENT_TO_PAGE: Final = (get("as", "data", cross_of("as")),)
#: Name, what the frame does, headers of the data, what it gets, and what is sent beside the frame.
_INSIDE: Final = (
    ("its own data", _ASK_OWN, (), who(cross_of("bs")), (get("bs", "data", cross_of("bs")),)),
    ("data of the page", _ASK_PAGE, (), "TypeError", _SENT_TO_PAGE),
    ("data of the page that it may have", _ASK_PAGE, ASKER, who(cross_of("as")), _SENT_TO_PAGE),
    ("its cookies", "Promise.resolve(document.cookie)", (), "b_none=1", ()),
    ("the page", "Promise.resolve().then(() => parent.document.title)", (), "SecurityError", ()),
    ("the address of the page", "Promise.resolve().then(() => parent.location.href)", (), "SecurityError", ()),
    ("how many frames the page has", "Promise.resolve().then(() => parent.length)", (), "1", ()),
    ("where it is framed", "Promise.resolve(location.ancestorOrigins[0])", (), "as", ()),
)


def _list_scripts_inside() -> Iterator[Case]:
    """What a frame of another origin loads and sees."""
    for name, code, headers, reads, sends in _INSIDE:
        document = (
            f"<!doctype html><script>{code}.catch(e => e.name).then(t => parent.postMessage(String(t), '*'))</script>"
        )
        yield logged_in(
            f"frame of another origin reads {name}",
            _open("src = '[[bs]]/frame'") + _HEARD,
            (reads,),
            (get("bs", "frame", cross_of("bs")), *sends),
            {"frame": Reply(document, HTML), "data": Reply("[[who]]", headers=headers)},
        )


def _list_windows() -> Iterator[Case]:
    for name, code, reads in (
        ("its document", "frame.contentWindow.document.title", "error SecurityError"),
        ("its address", "frame.contentWindow.location.href", "error SecurityError"),
        ("a variable", "frame.contentWindow.words", "error SecurityError"),
        ("its storage", "frame.contentWindow.localStorage.length", "error SecurityError"),
        ("how many frames it has", "frame.contentWindow.length", "0"),
        ("whether it is closed", "frame.contentWindow.closed", "false"),
    ):
        yield Case(
            f"page asks a frame of another origin for {name}",
            _open("src = '[[bs]]/frame'") + f"try {{ done({code}) }} catch (e) {{ done(failed(e)) }}",
            (reads,),
            (get("bs", "frame"),),
            {"frame": Reply("<!doctype html><title>frame</title>", HTML)},
        )
    echo = "<!doctype html><script>onmessage = e => parent.postMessage(e.origin + ' ' + e.data, '*')</script>"
    for name, target, reads in (
        ("all", "*", "as words"),
        ("the frame", "[[o_bs]]", "as words"),
        ("another", "[[o_subs]]", "silence"),
    ):
        yield Case(
            f"message to a frame of another origin, for {name}",
            _open("src = '[[bs]]/frame'") + f"frame.contentWindow.postMessage('words', '{target}');" + _wait(reads),
            (reads,),
            (get("bs", "frame"),),
            {"frame": Reply(echo, HTML)},
        )
    for name, target, reads in (("its own origin", "[[o_bs]]", "silence"), ("the page", "[[o_as]]", "words")):
        yield Case(
            f"message of a frame of another origin, for {name}",
            _open("src = '[[bs]]/frame'") + _wait(reads),
            (reads,),
            (get("bs", "frame"),),
            {"frame": Reply(f"<!doctype html><script>parent.postMessage('words', '{target}')</script>", HTML)},
        )


def _list_domains() -> Iterator[Case]:
    keyed = (("Origin-Agent-Cluster", "?0"),)
    document = "<!doctype html><script>document.domain = 'a.test'</script><p>words"
    for name, headers, peeks in (("", (), False), (" where both ask for it", keyed, True)):
        yield Case(
            f"document.domain of the same site{name}",
            "document.domain = 'a.test';" + _open("src = '[[subs]]/frame'") + _PEEK + "done()",
            ("words" if peeks else "closed",),
            (get("subs", "frame"),),
            {"frame": Reply(document, HTML, headers=headers)},
            headers=headers,
        )
    yield Case(
        "document.domain of another site",
        "try { document.domain = 'b.test'; done(document.domain) } catch (e) { done(failed(e)) }",
        ("error SecurityError",),
        headers=keyed,
    )


CASES: Final = [
    *_list_relations(),
    *_list_sandboxes(),
    *_list_data_of_sandboxes(),
    *_list_refused(),
    *_list_scripts_inside(),
    *_list_windows(),
    *_list_domains(),
]
