"""Spiders in Python that open pages in a browser, as the documentation of scrapy-playwright says (L7, X-D15)."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import environment, run_apart, use_settings_module
from tests.certificates import write_certificate
from tests.conftest import part_missing
from tests.hostile_server import HostileServer, redirect, whole
from tests.page_wall import need_browser
from tests.public_address import ADDRESS, PublicAddress, may_make_networks, public_address

pytestmark = pytest.mark.extended

#: What each spider of these tests begins with; ``start`` of the test follows.
HEAD: Final = """
import sys
import scrapy
from scrapy_playwright.page import PageMethod

class Own(scrapy.Spider):
    name = "own"
    custom_settings = {"ROBOTSTXT_OBEY": False, "RETRY_TIMES": 0}

    def ask(self, url, *methods, **meta):
        given = {"playwright": True, "playwright_page_methods": [PageMethod(*each) for each in methods], **meta}
        return scrapy.Request(url, meta=given, errback=self.fail, dont_filter=True)

    def parse(self, response):
        is_file = "playwright_suggested_filename" in response.meta
        shown = response.text if is_file else response.css("#shown::text").get("")
        yield {"url": response.url, "shown": shown, "flags": response.flags}

    def fail(self, failure):
        yield {"url": failure.request.url, "failed": type(failure.value).__name__, "why": str(failure.value)}

    async def start(self):
        base = self.base
"""
SHOW: Final = "<!DOCTYPE html><body><p id=shown></p><script>const show = text => document.getElementById('shown').textContent = text;%s</script>"
CLICK: Final = "document.body.insertAdjacentHTML('beforeend', '<button onclick=\"show(\\'clicked\\')\">more</button>')"
COOKIES: Final = "show(document.cookie || 'none'); document.cookie = 'been=here'"
#: Asks for what a page must not reach, in the ways that a page has, and shows what it got.
REACH: Final = """(async () => {
  const urls = %s, got = [];
  for (const url of urls) {
    try { await fetch(url, {mode: 'no-cors'}); got.push(url); } catch (error) {}
    for (const kind of ['img', 'iframe', 'script']) {
      const part = document.createElement(kind);
      await new Promise(then => { part.onload = part.onerror = then; part.src = url; document.body.append(part); setTimeout(then, 1000); });
    }
  }
  const worker = new Worker(URL.createObjectURL(new Blob([`fetch('${urls[0]}').then(() => postMessage(1), () => postMessage(0))`])));
  const socket = await new Promise(then => {
    const opened = new WebSocket(urls[0].replace('http', 'ws')); opened.onopen = () => then('socket'); opened.onerror = () => then('');
  });
  const of_worker = await new Promise(then => worker.onmessage = message => then(message.data ? 'worker' : ''));
  show('got: ' + got.join() + socket + of_worker);
})()"""


def page(script: str, *headers: str) -> bytes:
    return whole((SHOW % script).encode(), "200 OK", *headers)


class Project:
    """A project whose only spider starts with the requests of a test."""

    def __init__(self, folder: Path, *inside: str) -> None:
        self.folder = folder
        self._inside = inside
        use_settings_module(folder, "SPIDER_MODULES = ['spiders']\n")
        (folder / "spiders").mkdir()
        (folder / "spiders" / "__init__.py").touch()

    def crawl(
        self, base: str, start: str, *options: str, head: str = HEAD, **variables: str
    ) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
        """Crawls with ``start`` as the body of the spider's ``start``; how that ended, and the items."""
        lines = "".join(f"        {line}\n" for line in start.strip().splitlines())
        (self.folder / "spiders" / "own.py").write_text(head + lines, "utf-8")
        command = (sys.executable, "-m", "scrapy", "crawl", "own", "-a", f"base={base}", "-O", "items.jsonl")
        ended = run_apart(self.folder, *self._inside, *command, *options, **variables)
        items = self.folder / "items.jsonl"
        return ended, [json.loads(line) for line in items.read_text("utf-8").splitlines()] if items.exists() else []


@pytest.fixture
def server() -> Iterator[HostileServer]:
    need_browser()
    with HostileServer() as server:
        server.answers |= dict.fromkeys(("/text", "/text?plain"), page("show('of a script')"))
        server.answers |= {"/click": page(CLICK), "/cookies": page(COOKIES)}
        yield server


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def network() -> Iterator[PublicAddress]:
    need_browser()
    if not may_make_networks():
        part_missing("only root of this machine, with unshare, nsenter and ip, may make a network of its own")
    with public_address() as network:
        yield network


def test_spider_when_it_asks_for_pages_in_a_browser_then_it_gets_them_as_scrapy_playwright_says(
    project: Project, server: HostileServer
) -> None:
    server.answers["/file"] = whole(b"what is in the file", "200 OK", "Content-Disposition: attachment; filename=a.txt")
    server.choices["/form"] = lambda request: page(f"show('{request.split(' ')[0]}')")

    ended, items = project.crawl(
        server.url,
        """
yield self.ask(base + "/text")
yield self.ask(base + "/click", ("click", "button"))
yield scrapy.Request(base + "/text?plain")
yield scrapy.FormRequest(base + "/form", formdata={"word": "lamp"}, meta={"playwright": True})
yield self.ask(base + "/file")
for name in ("one", "two", "one"):
    yield self.ask(base + "/cookies", playwright_context=name)
""",
        "-s",
        "CONCURRENT_REQUESTS=1",
    )

    assert ended.returncode == 0, ended.stderr
    shown: dict[str, list[str]] = {}
    for item in items:
        shown.setdefault(item["url"].removeprefix(server.url), []).append(item["shown"])
    assert shown == {
        "/text": ["of a script"],
        "/click": ["clicked"],
        "/text?plain": [""],
        "/form": ["POST"],
        "/file": ["what is in the file"],
        # Each context has cookies of its own.
        "/cookies": ["none", "none", "been=here"],
    }
    assert [item["url"].removeprefix(server.url) for item in items if item["flags"] != ["playwright"]] == [
        "/text?plain"
    ]
    assert "'playwright/browser_count': 1" in ended.stderr


def test_spider_when_it_asks_for_no_page_in_a_browser_then_nothing_of_one_is_loaded(
    project: Project, server: HostileServer
) -> None:
    head = HEAD.replace("from scrapy_playwright.page import PageMethod", "")
    loaded = "sorted({name.partition('.')[0] for name in sys.modules if 'playwright' in name})"
    head = head.replace('"flags": response.flags', f'"loaded": {loaded}')

    ended, items = project.crawl(server.url, 'yield scrapy.Request(base + "/text")', head=head)

    assert ended.returncode == 0, ended.stderr
    assert [item["loaded"] for item in items] == [["searchcrawl"]]


def test_spider_when_there_is_no_browser_then_it_ends_with_exit_4_and_says_what_to_install(
    project: Project, server: HostileServer, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "setpriv").symlink_to(shutil.which("setpriv") or "")
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / "scrapy_playwright.py").write_text("raise ImportError('it is not there')", "utf-8")
    asks = 'for number in range(3):\n    yield self.ask(f"{base}/text?{number}")'
    without = HEAD.replace("from scrapy_playwright.page import PageMethod", "")
    (tmp_path / "sitecustomize.py").touch()

    no_program, _ = project.crawl(server.url, asks, PATH=str(tmp_path / "bin"))
    no_package, _ = project.crawl(
        server.url, asks, head=without, PYTHONPATH=f"{tmp_path / 'stub'}:{environment()['PYTHONPATH']}"
    )
    no_such, _ = project.crawl(server.url, asks, "-s", 'PLAYWRIGHT_LAUNCH_OPTIONS={"executable_path": "/no/browser"}')

    assert (no_program.returncode, no_package.returncode, no_such.returncode) == (4, 4, 4)
    assert "chromium-headless-shell is not installed; on Debian: apt-get install" in no_program.stderr
    assert "scrapy-playwright is not installed: pip install 'searchcrawl[playwright]'" in no_package.stderr
    assert "the browser does not start: " in no_such.stderr
    assert "/no/browser" in no_such.stderr
    assert server.requests == []


def test_spider_when_its_project_names_the_handler_of_scrapy_playwright_then_that_finds_the_browser_too(
    project: Project, server: HostileServer
) -> None:
    named = '{"http": "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"}'

    ended, items = project.crawl(server.url, 'yield self.ask(base + "/text")', "-s", f"DOWNLOAD_HANDLERS={named}")

    assert ended.returncode == 0, ended.stderr
    assert [item["shown"] for item in items] == ["of a script"]


GUARD: Final = ("-s", "SEARCHCRAWL_GUARD=1")
#: A request of the spider by a page that it has, to a private address.
ASKS_ITSELF: Final = """    async def ask_itself(self, page):
        url = page.url.replace(page.url.split("/")[2].partition(":")[0], "127.0.0.1")
        try:
            return (await page.request.get(url + "?itself")).status
        except Exception as error:
            return type(error).__name__
"""


def test_l7_spider_when_the_guard_is_on_then_pages_reach_public_addresses_only(
    tmp_path: Path, network: PublicAddress
) -> None:
    project = Project(tmp_path, *network.inside)
    head = HEAD.replace("    async def start", f"{ASKS_ITSELF}\n    async def start")
    with network.build_server() as server:
        private = [f"http://{host}:{server.port}/secret" for host in ("127.0.0.1", "localhost", "[::1]", "10.0.0.1")]
        public = f"http://{ADDRESS}:{server.port}"
        server.answers |= {
            **dict.fromkeys(("/text", "/page", "/page?itself"), page("show('of a script')")),
            "/reach": page(REACH % json.dumps([*private, public + "/away"])),
            "/away": redirect("302 Found", private[0]),
            "/move": page(f"location = '{private[0]}'"),
        }

        ended, items = project.crawl(
            public,
            f"""
yield self.ask(base + "/text")
yield self.ask(base + "/reach", ("wait_for_function", "document.getElementById('shown').textContent"))
yield self.ask(base + "/move", ("wait_for_timeout", 1000))
yield self.ask(base + "/page", (self.ask_itself,))
for url in (base + "/away", "{private[0]}", "{private[1]}"):
    yield self.ask(url)
""",
            *GUARD,
            head=head,
        )

        found = {item["url"]: item for item in items}
        assert ended.returncode == 0, ended.stderr
        assert (found[public + "/text"]["shown"], found[public + "/page"]["shown"]) == ("of a script", "of a script")
        assert found[public + "/reach"]["shown"] == "got: "
        for refused in (public + "/away", *private[:2]):
            assert found[refused]["failed"] == "CannotResolveHostError"
            assert "refused by the address guard of searchcrawl: SEARCHCRAWL_GUARD" in found[refused]["why"]
        assert "the browser of a spider was refused an address: 127.0.0.1 may not be reached" in ended.stderr
        assert {request.split(" ")[1] for request in server.requests} == {
            "/text", "/reach", "/away", "/move", "/page",
        }  # fmt: skip


@pytest.mark.parametrize("verified", [False, True])
def test_l7_spider_when_the_guard_is_on_then_certificates_are_checked_as_for_plain_requests(
    tmp_path: Path, network: PublicAddress, verified: bool
) -> None:
    project = Project(tmp_path, *network.inside)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(write_certificate(tmp_path))
    with network.build_server(tls=tls) as server:
        server.answers["/text"] = page("show('of a script')")

        ended, items = project.crawl(
            f"https://{ADDRESS}:{server.port}",
            'yield self.ask(base + "/text")\nyield scrapy.Request(base + "/text", errback=self.fail)',
            *GUARD,
            "-s",
            f"DOWNLOAD_VERIFY_CERTIFICATES={int(verified)}",
        )

        assert ended.returncode == 0, ended.stderr
        assert {item.get("shown", item.get("failed")) for item in items} == (
            {"CertificateRefused"} if verified else {"of a script", ""}
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PLAYWRIGHT_CDP_URL", "http://127.0.0.1:9"),
        ("PLAYWRIGHT_CONNECT_URL", "ws://127.0.0.1:9"),
        ("PLAYWRIGHT_BROWSER_TYPE", "firefox"),
        ("PLAYWRIGHT_LAUNCH_OPTIONS", '{"proxy": {"server": "http://127.0.0.1:9"}}'),
        ("PLAYWRIGHT_CONTEXTS", '{"default": {"proxy": {"server": "http://127.0.0.1:9"}}}'),
    ],
)
def test_l7_spider_when_the_guard_is_on_then_a_setting_that_leads_round_it_is_refused(
    project: Project, server: HostileServer, name: str, value: str
) -> None:
    ended, _ = project.crawl(server.url, 'yield self.ask(base + "/text")', *GUARD, "-s", f"{name}={value}")

    assert ended.returncode == 4
    assert f"a page in a browser: {name}: " in ended.stderr
    assert "SEARCHCRAWL_GUARD" in ended.stderr
    assert server.requests == []
