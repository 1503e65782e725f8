"""A real browser: what it shows of a page, and what a page that misbehaves costs (C10, X-O7)."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from searchcrawl.render.browser_request import DecodedAnswer
from searchcrawl.render.chromium import ChromiumFiles
from searchcrawl.render.rendered_page import BrowserUnavailable, RenderedPage, RenderFailed
from searchcrawl.sources.fetch_tables import Render, RenderAction
from tests.live_browsers import list_network_services
from tests.page_wall import NO_ANSWER, SCRIPTS, SITE, UNKNOWN_ROBOTS, RunningBrowser, need_browser
from tests.site.client import ROOT


@pytest.fixture(autouse=True)
def _forget(running: RunningBrowser) -> None:
    running.wall.asked.clear()


def _script(code: str) -> str:
    return f"<!DOCTYPE html><title>t</title><div id=app></div><script>const app = document.getElementById('app');{code}</script>"


def test_text_that_a_script_writes_is_in_the_page(running: RunningBrowser) -> None:
    page = running.render("/text", _script("app.textContent = 'written ' + (1 + 1)"))

    assert "written 2" in page.html
    assert page.html.startswith("<!DOCTYPE html>")
    assert (page.url, page.status, page.redirects) == (f"{SITE}/text", 200, ())


def test_scripts_and_data_are_loaded_and_pictures_are_not(running: RunningBrowser) -> None:
    running.wall.pages[f"{SITE}/app.js"] = "fetch('/data.json').then(r => r.json()).then(d => app.textContent = d.text)"
    running.wall.pages[f"{SITE}/data.json"] = '{"text": "from the data"}'
    running.wall.pages[f"{SCRIPTS}/library.js"] = "globalThis.library = 1"
    body = "<img src=/a.png><link rel=stylesheet href=/a.css><video src=/v.mp4></video><script src=/app.js></script>"

    page = running.render("/data", _script("") + body + f"<script src={SCRIPTS}/library.js></script>")

    assert "from the data" in page.html
    assert running.wall.paths() == {"/data", "/app.js", "/data.json", "/a.css"}
    assert f"{SCRIPTS}/library.js" in {url for _, url in running.wall.asked}
    assert page.refused["kind image"] == 1
    assert page.received_bytes > 100


def test_answer_that_is_known_is_not_asked_for_again(running: RunningBrowser) -> None:
    body = _script("app.textContent = 'known'").encode()
    answer = DecodedAnswer(f"{SITE}/known", 200, (("content-type", "text/html"),), body)

    page = running.run(running.browser.render(f"{SITE}/known", answer=answer))

    assert "known</div>" in page.html
    assert running.wall.asked == []


def test_slow_data_is_waited_for(running: RunningBrowser) -> None:
    running.wall.pages[f"{SITE}/slow.json"] = (1.0, '{"text": "late"}')

    page = running.render(
        "/slow", _script("fetch('/slow.json').then(r => r.json()).then(d => app.textContent = d.text)")
    )

    assert "late" in page.html


def test_page_is_not_taken_for_quiet_before_its_browser_has_handed_it_the_answer(running: RunningBrowser) -> None:
    def hold() -> str:
        (network,) = list_network_services(os.getpid())
        os.kill(network, signal.SIGSTOP)
        threading.Timer(1.0, os.kill, (network, signal.SIGCONT)).start()
        return '{"text": "handed over late"}'

    running.wall.pages[f"{SITE}/held.json"] = hold
    script = "fetch('/held.json').then(r => r.json()).then(d => app.textContent = d.text)"
    page = running.render("/held", _script(f"setTimeout(() => {script}, 50)"))

    assert "handed over late" in page.html


_WAITED = {
    "a script that comes late": (
        Render(quiet_ms=50, max_seconds=8),
        (0.6, "app.textContent = 'at last'"),
        _script("") + "<script src=/late.js></script>",
    ),
    "what an answer that was waited for does a moment later": (
        Render(quiet_ms=600, max_seconds=8),
        (0.9, "setTimeout(() => app.textContent = 'at last', 150)"),
        _script("") + "<script async src=/late.js></script>",
    ),
    "a page that never says that it is complete": (
        Render(quiet_ms=50, max_seconds=20),
        (0, ""),
        _script("setTimeout(() => { document.open(); document.write('<p>at last'); })"),
    ),
    "a selector": (
        Render(wait_for="#done", max_seconds=8),
        (0, ""),
        _script("setTimeout(() => app.innerHTML = '<i id=done>at last</i>', 1500)"),
    ),
}


@pytest.mark.parametrize("name", _WAITED)
def test_page_is_waited_for_until_it_is_there_and_no_longer(name: str) -> None:
    options, late, html = _WAITED[name]
    with RunningBrowser(options) as running:
        running.wall.pages[f"{SITE}/late.js"] = late
        page = running.render("/waited", html)

    assert "at last" in page.html
    assert page.seconds < 7


def test_page_that_never_is_quiet_is_taken_as_it_is_after_max_seconds(running: RunningBrowser) -> None:
    page = running.render("/busy", _script("setInterval(() => app.textContent = 'tick ' + Date.now(), 20)"))

    assert "tick " in page.html
    assert 1.5 < page.seconds < 10


def test_shadow_roots_and_frames_of_the_same_origin_stand_in_the_page(running: RunningBrowser) -> None:
    running.wall.pages[f"{SITE}/inner"] = "<p>text of the frame</p>"
    code = (
        "const root = app.attachShadow({mode: 'open'}); root.innerHTML = '<p>shadow <slot></slot></p>';"
        "app.innerHTML = '<b>given</b>'"
    )

    page = running.render("/shadow", _script(code) + "<iframe src=/inner></iframe>")

    assert "<p>shadow <b>given</b></p>" in page.html
    assert "text of the frame" in page.html


def test_routes_of_the_history_are_told(running: RunningBrowser) -> None:
    page = running.render("/routes", _script("history.pushState({}, '', '/routes/a'); history.pushState({}, '', 'b')"))

    assert set(page.routes) == {f"{SITE}/routes/a", f"{SITE}/routes/b"}
    assert page.redirects == ()


@pytest.mark.parametrize(
    ("path", "html", "target", "status"),
    [
        ("/by-script", _script("location.href = '/elsewhere?a=1'"), f"{SITE}/elsewhere?a=1", 302),
        ("/by-meta", "<meta http-equiv=refresh content='0; url=/m'>x", f"{SITE}/m", 302),
        ("/outside", _script("location.replace('http://other.test/x')"), "http://other.test/x", 302),
    ],
)  # fmt: skip
def test_move_of_a_page_is_told_and_not_made(
    running: RunningBrowser, path: str, html: str, target: str, status: int
) -> None:
    page = running.render(path, html)

    assert (page.url, page.redirects) == (target, ((f"{SITE}{path}", status),))
    assert running.wall.paths() == {path}


def test_redirect_of_a_server_is_told_and_not_followed(running: RunningBrowser) -> None:
    answer = DecodedAnswer(f"{SITE}/moved", 301, (("location", "/new"),), b"")
    running.wall.pages[f"{SITE}/moved"] = answer

    page = running.run(running.browser.render(f"{SITE}/moved"))

    assert (page.url, page.redirects) == (f"{SITE}/new", ((f"{SITE}/moved", 301),))
    assert running.wall.paths() == {"/moved"}


def test_list_that_grows_when_it_is_scrolled_is_read_to_the_asked_length() -> None:
    code = (
        "let n = 0; const add = () => { for (let i = 0; i < 20; i++) app.insertAdjacentHTML('beforeend', "
        "`<p style='height:200px'>item ${n++}</p>`); }; add();"
        "addEventListener('scroll', () => { if (n < 80) add(); })"
    )
    with RunningBrowser(Render(quiet_ms=150, max_seconds=5, scroll=2)) as running:
        page = running.render("/list", _script(code))

    assert "item 59" in page.html
    assert "item 79" not in page.html


def test_actions_are_done_one_after_the_other_on_the_pages_that_they_match() -> None:
    code = (
        "app.innerHTML = '<button id=more>more</button>'; more.onclick = () => fetch('/more.json').then(r => r.json())"
        ".then(d => { app.insertAdjacentHTML('beforeend', `<p id=got>${d.text}</p>`) })"
    )
    actions = (
        RenderAction(click="#more"),
        RenderAction(wait="#got"),
        RenderAction(match="*/other", click="#nowhere"),
    )
    with RunningBrowser(Render(quiet_ms=150, max_seconds=2, actions=actions)) as running:
        running.wall.pages[f"{SITE}/more.json"] = (0.3, '{"text": "after the click"}')
        page = running.render("/clicked", _script(code))
        other = running.render("/other", _script(code))

    assert "after the click" in page.html
    assert page.gave_up is None
    assert "after the click" in other.html
    assert (other.gave_up or "").startswith("render.actions: click #nowhere: ")


@pytest.mark.parametrize(
    ("options", "code", "gave_up"),
    [
        ({}, "app.textContent = 'x'", None),
        ({}, "setInterval(() => app.textContent = Date.now(), 20)", None),
        ({}, "setTimeout(() => fetch('/never.json'), 50)", "no answer of http://site.test/never.json within 1 s"),
        ({"wait_for": "#never"}, "app.textContent = 'x'", "no element of render.wait_for (#never) within 1 s"),
    ],
)
def test_page_that_is_not_waited_for_any_longer_says_what_it_waited_for(
    options: dict[str, Any], code: str, gave_up: str | None
) -> None:
    with RunningBrowser(Render(quiet_ms=150, max_seconds=1, **options), seconds=10) as running:
        running.wall.pages[f"{SITE}/never.json"] = (60.0, "{}")
        page = running.render("/given-up", _script(code))

    assert (page.gave_up or "").startswith(gave_up or "")
    assert (page.gave_up is None) is (gave_up is None)


def test_parts_of_a_page_are_told_with_how_they_ended(running: RunningBrowser) -> None:
    running.wall.pages |= {
        f"{SITE}/parts.js": "fetch('/parts.json'); fetch('/gone.json'); fetch('/lost.json').catch(() => 0); fetch('/robots.json').catch(() => 0)",
        f"{SITE}/robots.json": UNKNOWN_ROBOTS,
        f"{SITE}/parts.json": "{}",
        f"{SITE}/lost.json": NO_ANSWER,
        f"{SITE}/parts.css": "a {}",
        f"{SITE}/inner.html": "<p>frame",
    }
    body = "<script src=/parts.js></script><link rel=stylesheet href=/parts.css><iframe src=/inner.html></iframe><img src=/i.png>"

    page = running.render("/told", _script("") + body)

    assert {(part.url.removeprefix(SITE), part.kind, part.code, part.type) for part in page.parts} == {
        ("/parts.js", "script", 200, "text/javascript"),
        ("/parts.json", "data", 200, "application/json"),
        ("/gone.json", "data", 404, "text/plain"),
        ("/lost.json", "data", 905, ""),
        ("/robots.json", "data", 951, ""),
        ("/parts.css", "style", 200, "text/css"),
        ("/inner.html", "frame", 200, "text/html"),
    }
    assert page.refused == {"kind image": 1, "robots.txt of its host: 503": 1}


def test_page_that_loads_more_than_its_budget_fails_and_the_others_do_not() -> None:
    with RunningBrowser(Render(quiet_ms=150, max_seconds=2, max_page_mb=1_000_000 / (1 << 20), pages=2)) as running:
        for number in range(60):
            running.wall.pages[f"{SITE}/big{number}.js"] = "x = 1;" + " " * 300_000
        scripts = "".join(f"<script async src=/big{number}.js></script>" for number in range(60))
        with pytest.raises(RenderFailed) as failed:
            running.render("/large", _script("") + scripts)
        page = running.render("/small", _script("app.textContent = 'small'"))

    assert (int(failed.value.code), "more than 1000000 bytes of one page" in str(failed.value)) == (904, True)
    assert "small" in page.html


def test_page_that_asks_for_thousands_of_things_fails(running: RunningBrowser) -> None:
    with pytest.raises(RenderFailed) as failed:
        running.render("/many", _script("for (let i = 0; i < 2000; i++) fetch('/many' + i).catch(() => 0)"))

    assert (int(failed.value.code), "more than 500 requests" in str(failed.value)) == (904, True)


_MISBEHAVING = [
    ("endless script", _script("for (;;) {}"), {902}),
    ("endless script later", _script("setTimeout(() => { for (;;) {} }, 50)"), {902}),
    ("300,000 nodes of much text", _script("app.innerHTML = '<p>0123456789</p>'.repeat(300000)"), {902, 904}),
    ("more text than a body may have", _script("app.textContent = 'x'.repeat(5_000_000)"), {904}),
]


@pytest.mark.parametrize(("html", "codes"), [case[1:] for case in _MISBEHAVING], ids=[case[0] for case in _MISBEHAVING])
def test_page_that_misbehaves_costs_itself_only(running: RunningBrowser, html: str, codes: set[int]) -> None:
    running.wall.pages[f"{SITE}/bad"] = html
    running.wall.pages[f"{SITE}/good"] = _script("app.textContent = 'good'")

    async def both() -> tuple[object, object]:
        bad = asyncio.ensure_future(running.browser.render(f"{SITE}/bad"))
        good = asyncio.ensure_future(running.browser.render(f"{SITE}/good"))
        results = await asyncio.gather(bad, good, return_exceptions=True)
        return results[0], results[1]

    failed, page = running.run(both())

    assert isinstance(failed, RenderFailed)
    assert int(failed.code) in codes
    assert "good" in page.html
    assert "good" in running.render("/good", _script("app.textContent = 'good'")).html


@pytest.mark.parametrize(
    "code",
    [
        "for (let i = 0; i < 50; i++) alert(i); app.textContent = 'after'",
        "for (let i = 0; i < 20; i++) window.open('/popup' + i); app.textContent = 'after'",
        (
            "for (let i = 0; i < 20; i++) { const a = document.createElement('a'); a.href = '/popup' + i;"
            "a.target = '_blank'; a.click(); } app.textContent = 'after'"
        ),
        "onbeforeunload = () => 'stay'; app.textContent = 'after'",
        "window.print(); app.textContent = 'after'",
    ],
)
def test_page_that_wants_attention_is_read_as_it_is(running: RunningBrowser, code: str) -> None:
    page = running.render("/attention", _script(code))

    assert "after" in page.html
    assert running.wall.paths() == {"/attention"}


def test_answer_that_never_ends_costs_its_page(running: RunningBrowser) -> None:
    running.wall.pages[f"{SITE}/endless"] = (300.0, "x")

    with pytest.raises(RenderFailed) as failed:
        running.run(running.browser.render(f"{SITE}/endless"))

    assert int(failed.value.code) == 902
    assert running.wall.waiting == 0


# Blocks that are never written to: they count, and cost nothing.
_GREEDY = """<p id="app">none</p><script>
const taken = [];
try { for (let count = 0; count < 120; count++) taken.push(new ArrayBuffer(50e6)); }
finally { document.getElementById("app").textContent = `took ${taken.length * 50} MB`; }
</script>"""


def test_page_that_wants_gigabytes_then_it_gets_two_and_the_next_one_is_rendered() -> None:
    with RunningBrowser() as running:
        greedy = running.render("/greedy", _GREEDY)
        next_one = running.render("/next", "<p>modest</p>")

    took = re.search(r"took (\d+) MB", greedy.html)
    assert took is not None
    assert 500 <= int(took[1]) <= 2_200
    assert "modest" in next_one.html


async def _wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise TimeoutError


def _render_while_browsers_are_killed(running: RunningBrowser, times: int) -> object:
    """What becomes of a page whose answer takes a second, if the browser is killed meanwhile so many times."""
    running.wall.pages[f"{SITE}/slow"] = (1.0, "slow text")

    async def kill() -> None:
        await _wait_until(lambda: running.wall.waiting > 0 and running.browser._instance is not None)
        instance = running.browser._instance
        assert instance is not None
        pid = instance.files.find_pid()
        assert pid is not None
        os.killpg(pid, signal.SIGKILL)
        await _wait_until(lambda: running.browser._instance is not instance and not running.wall.waiting)

    async def render() -> object:
        rendering = asyncio.ensure_future(running.browser.render(f"{SITE}/slow"))
        for _ in range(times):
            await kill()
        return (await asyncio.gather(rendering, return_exceptions=True))[0]

    return running.run(render())


def test_page_when_its_browser_is_killed_once_then_another_one_renders_it(running: RunningBrowser) -> None:
    page = _render_while_browsers_are_killed(running, 1)

    assert isinstance(page, RenderedPage)
    assert "slow text" in page.html


def test_page_when_its_browser_dies_twice_then_it_fails_and_the_next_one_is_rendered(running: RunningBrowser) -> None:
    failed = _render_while_browsers_are_killed(running, 2)

    assert isinstance(failed, RenderFailed)
    assert int(failed.code) in {904, 905}
    assert "again" in running.render("/again", _script("app.textContent = 'again'")).html


def test_browser_leaves_no_process_and_no_file() -> None:
    with RunningBrowser() as running:
        running.render("/x", _script(""))
        instance = running.browser._instance
        assert instance is not None
        pid, folder = instance.files.find_pid(), instance.files.folder
        assert pid is not None
        assert instance.files.measure_memory() > 1_000_000
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")

    assert b"HOME=" in environment
    assert b"PYTHON" not in environment
    assert f"Uid:\t{os.geteuid() or 65534}" in status
    assert not folder.exists()
    assert not Path(f"/proc/{pid}").exists()


def test_files_of_a_browser_whose_crawler_was_killed_are_deleted_by_the_next_one() -> None:
    need_browser()
    script = (
        "import sys; from searchcrawl.render.chromium import ChromiumFiles;"
        "files = ChromiumFiles(); print(files.folder, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crawler:
        assert crawler.stdout is not None
        left = Path(crawler.stdout.readline().strip())
        crawler.kill()
    assert (left / "start").exists()

    starting = ChromiumFiles()
    try:
        assert not left.exists()
        assert starting.script.exists()
    finally:
        starting.remove()


def test_files_of_a_browser_when_they_cannot_be_written_then_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_browser()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))

    with pytest.raises(BrowserUnavailable, match=r"the files of the browser cannot be written: .*No such file"):
        ChromiumFiles()
