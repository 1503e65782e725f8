"""How much of a page is there without its scripts (C10)."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchcrawl.html.raw_page import find_raw_refresh, has_scripts, read_shell
from searchcrawl.rules.rendering import ENOUGH_BYTES, Need, Shell, judge

DOCS = Path("/usr/share/doc")
SITE = Path(__file__).parents[2] / "site" / "content"
REACT = b"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>React App</title>
<script defer="defer" src="/static/js/main.js"></script></head><body>
<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div></body></html>"""


@pytest.mark.parametrize(
    ("body", "shell"),
    [
        (b"", Shell(0)),
        (b"<p>a <b>bold</b> word</p>", Shell(9)),
        (REACT, Shell(0, 1, "#root", notice=True)),
        (b'<div id="app"><!--app-html--></div><script type=module src=x></script>', Shell(0, 1, "#app")),
        (b"<div class=a id=__next> \n</div><script>1</script>", Shell(0, 1, "#__next")),
        (b"<app-root></app-root><script src=a></script><script src=b></script>", Shell(0, 2, "<app-root>")),
        (b"<div id=root>there</div><script></script>", Shell(5, 1)),
        (b"<div data-id=root></div><div id=roots></div><script></script>", Shell(0, 1)),
        (b"<script>var a = '<p>text</p>'</script>", Shell(0, 1)),
        (b'<script type="application/ld+json">{"a": "b"}</script><SCRIPT>x</SCRIPT>', Shell(0, 1)),
        (b"<style>p {}</style><title>t</title><template>t</template><svg><text>t</text></svg>", Shell(0)),
        (b"<noscript><img src=x></noscript><script></script>", Shell(0, 1)),
        (b"<!-- a <p>comment</p> -->b<!---->c", Shell(2)),
        (b"1 < 2 and 3 > 2", Shell(8)),
        (b"never <b", Shell(5)),
        (b"<script>never closed <p>text", Shell(0, 1)),
        (b"<!-- never closed <p>text", Shell(0)),
    ],
)
def test_c10_shell_when_it_is_read_then_text_scripts_and_signs_are_counted(body: bytes, shell: Shell) -> None:
    assert read_shell(body) == shell
    assert has_scripts(body) is (shell.scripts > 0)


def test_c10_shell_when_there_is_enough_text_then_the_rest_is_not_read() -> None:
    body = b"<p>" + b"word " * 1000 + b"</p><script>" + b"x" * 100_000

    assert read_shell(body, enough=1500).scripts == 0
    assert read_shell(body).scripts == 1


@pytest.mark.parametrize("folder", [DOCS, SITE])
def test_c10_pages_when_they_are_ordinary_then_none_needs_a_browser_for_certain(folder: Path) -> None:
    judged = {}
    for path in folder.rglob("*.html"):
        body = path.read_bytes() if path.is_file() else b""
        if has_scripts(body):
            judged[path.name] = judge(read_shell(body, enough=ENOUGH_BYTES)).need

    doubtful = [name for name, need in judged.items() if need is Need.DOUBTFUL]

    assert Need.CERTAIN not in judged.values()
    # Templates and searches, which are frames indeed.
    assert len(doubtful) <= max(len(judged) // 20, 1), doubtful


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'<meta http-equiv="refresh" content="0; url=/a?b=1&amp;c=2">', "/a?b=1&c=2"),
        (b"<META\nCONTENT=0;/a\nHTTP-EQUIV=refresh>", "/a"),
        (b"<meta charset=x><meta http-equiv='Refresh' content=' 5 ; URL = \"/a\" '>", "/a"),
        (b'<meta http-equiv="refresh" content="0"><meta http-equiv="refresh" content="0; /b">', "/b"),
        (b'<meta http-equiv="refresh" content="101; /a">', None),
        (b'<meta http-equiv="refresher" content="0; /a">', None),
        (b'<meta http-equiv="refresh" data-content="0; /a">', None),
        (b'<p>http-equiv="refresh" content="0; /a"', None),
        (b"", None),
    ],
)
def test_refresh_when_a_page_has_one_then_its_target_is_found(body: bytes, found: str | None) -> None:
    assert find_raw_refresh(body) == found


@pytest.mark.parametrize(
    "piece", [b"<meta ", b"http-equiv ", b"http-equiv=refresh ", b"<meta http-equiv=refresh ", b" "]
)
def test_refresh_when_a_page_is_made_to_cost_time_then_is_given_up(piece: bytes) -> None:
    assert find_raw_refresh(piece * (16_000 // len(piece)) + b"content='" + b"1" * 300) is None
