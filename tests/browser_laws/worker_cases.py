"""Workers, and documents and data that have no server: whose origin they are (HTML standard, 10.2; Fetch standard, 4.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.browser_laws.case import JS, Case, Reply
from tests.browser_laws.fetch_cases import ASKER
from tests.browser_laws.login import NOBODY, all_of, cross_of, get, logged_in, who

_START: Final = (
    "const end = new Promise(end => {{ try {{ const w = new Worker({url}{options}); w.onmessage = e => end(e.data);"
    "w.onerror = () => end('error') }} catch (e) {{ end(failed(e)) }} }}); done(await end)"
)
_BLOB: Final = "URL.createObjectURL(new Blob([`{code}`], {{type: 'text/javascript'}}))"
_DATA: Final = "'data:text/javascript,' + encodeURIComponent(`{code}`)"
_ASK: Final = "fetch('{url}', {{credentials: 'include'}}).then(r => r.text()).catch(e => e.name).then(t => postMessage(String(t)))"
_IMPORT: Final = "try {{ importScripts('{url}'); postMessage(self.words) }} catch (e) {{ postMessage(e.name) }}"


def _list_starts() -> Iterator[Case]:
    talk = Reply("postMessage('[[who]]')", JS)
    own = all_of("as")
    for name, url, options, reads, sends in (
        ("of the own origin", "'work'", "", who(own), (get("as", "work", own),)),
        ("of the own origin, as a module", "'work'", ", {type: 'module'}", who(own), (get("as", "work", own),)),
        (
            "of the own origin, a module without credentials",
            "'work'",
            ", {type: 'module', credentials: 'omit'}",
            "nobody",
            (get("as", "work"),),
        ),
        ("of another origin", "'[[bs]]/work'", "", "error SecurityError", ()),
        ("of the same site", "'[[subs]]/work'", "", "error SecurityError", ()),
        ("that a redirect leads to another origin", "'go'", "", "error", (get("as", "go", own),)),
    ):
        yield logged_in(
            f"worker {name}",
            _START.format(url=url, options=options),
            (reads,),
            sends,
            {"work": talk, "go": Reply(status=302, headers=(("Location", "[[bs]]/work"), *ASKER))},
        )
    yield logged_in(
        "shared worker of the own origin",
        "const w = new SharedWorker('work'); w.port.onmessage = e => done(e.data); w.onerror = () => done('error')",
        (who(own),),
        (get("as", "work", own),),
        {"work": Reply("onconnect = e => e.ports[0].postMessage('[[who]]')", JS)},
    )
    yield logged_in(
        "shared worker of another origin",
        "try { new SharedWorker('[[bs]]/work'); done('started') } catch (e) { done(failed(e)) }",
        ("error SecurityError",),
    )


def _list_data_inside() -> Iterator[Case]:
    own, cross = all_of("as"), cross_of("bs")
    for name, url, target, headers, cookies, may_read in (
        ("blob asks its origin", _BLOB, "as", (), own, True),
        ("blob asks another origin", _BLOB, "bs", (), cross, False),
        ("blob asks another origin that allows it", _BLOB, "bs", ASKER, cross, True),
        ("data asks the page's origin", _DATA, "as", (), cross_of("as"), False),
        ("data asks the page's origin, which allows it", _DATA, "as", ASKER, cross_of("as"), True),
        ("data asks another origin that allows it", _DATA, "bs", ASKER, cross, True),
    ):
        yield logged_in(
            f"worker by {name}",
            _START.format(url=url.format(code=_ASK.format(url=f"[[{target}]]/data")), options=""),
            (who(cookies) if may_read else "TypeError",),
            (get(target, "data", cookies),),
            {"data": Reply("[[who]]", headers=headers)},
        )
    for page, target, cookies in (
        ("as", "bs", cross),
        ("as", "subs", all_of("subs")),
        ("a", "sub", all_of("sub")),
        ("a", "b", NOBODY),
    ):
        yield logged_in(
            f"worker of {page} asks {target}",
            _START.format(url="'work'", options=""),
            (who(cookies),),
            (get(page, "work", all_of(page)), get(target, "data", cookies)),
            {"work": Reply(_ASK.format(url=f"[[{target}]]/data"), JS), "data": Reply("[[who]]", headers=ASKER)},
            origin=page,
        )


def _list_imports() -> Iterator[Case]:
    for name, target, kind, reads, cookies in (
        ("its own origin", "as", JS, who(all_of("as")), all_of("as")),
        ("the same site", "subs", JS, who(all_of("subs")), all_of("subs")),
        ("another origin", "bs", JS, who(cross_of("bs")), cross_of("bs")),
        ("another origin, not a script by its type", "bs", "text/plain", "NetworkError", cross_of("bs")),
    ):
        yield logged_in(
            f"worker that imports a script of {name}",
            _START.format(url=_BLOB.format(code=_IMPORT.format(url=f"[[{target}]]/lib")), options=""),
            (reads,),
            (get(target, "lib", cookies),),
            {"lib": Reply("self.words = '[[who]]'", kind)},
        )
    for name, headers, reads in (("not allowed", (), "error"), ("allowed", ASKER, "nobody")):
        yield logged_in(
            f"worker module that imports one of another origin, {name}",
            _START.format(url="'work'", options=", {type: 'module'}"),
            (reads,),
            (get("as", "work", all_of("as")), get("bs", "lib")),
            {
                "work": Reply("import {words} from '[[bs]]/lib'; postMessage(words)", JS),
                "lib": Reply("export const words = '[[who]]'", JS, headers=headers),
            },
        )


def _list_local_data() -> Iterator[Case]:
    for name, code, reads in (
        ("a data URL", "fetch('data:text/plain,words').then(text)", "words"),
        ("a data URL with same-origin", "fetch('data:text/plain,words', {mode: 'same-origin'}).then(text)", "words"),
        ("a blob URL", "fetch(URL.createObjectURL(new Blob(['words']))).then(text)", "words"),
        ("a file", "fetch('file:///etc/hostname').then(text)", "error TypeError"),
        ("about:blank", "fetch('about:blank').then(text)", "error TypeError"),
    ):
        yield Case(f"fetch of {name}", f"done(await {code}.catch(failed))", (reads,))
    frame = (
        "const frame = document.createElement('iframe'); frame.sandbox = 'allow-scripts'; frame.srcdoc ="
        "`<script>fetch('${URL.createObjectURL(new Blob(['words']))}').then(r => r.text()).catch(e => e.name)"
        ".then(t => parent.postMessage(t, '*'))</` + 'script>'; document.body.append(frame); done(await hear())"
    )
    yield Case("fetch of a blob URL of another origin", frame, ("TypeError",))


CASES: Final = [*_list_starts(), *_list_data_inside(), *_list_imports(), *_list_local_data()]
