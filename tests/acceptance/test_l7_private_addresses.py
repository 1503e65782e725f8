"""L7: nothing leads a crawl to an address that is not listed: no spelling, name, redirect, file or form."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import run_apart
from tests.canary import SPELLINGS, Canary
from tests.crawl_forks import COMMANDS
from tests.hostile_server import HostileServer, head, redirect, whole
from tests.site.client import ROOT, write_project
from tests.stored_rows import query_columns

#: What DNS says of names; the last one changes its mind with each question.
NAMES: Final = (
    "pinned.test",
    "deep.below.wild.test",
    "PINNED.TEST.",
    "dns.test",
    "both.test",
    "mixed.test",
    "rebinding.test",
)
_DNS: Final = """
import itertools, socket
real, turns = socket.getaddrinfo, itertools.cycle([["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2", "127.0.0.1"]])
known = {"dns.test": ["127.0.0.2"], "both.test": ["127.0.0.2", "::1"], "mixed.test": ["127.0.0.2", "::1"]}

def asked(host, port, family=0, kind=0, proto=0, flags=0):
    name = (host.decode() if isinstance(host, bytes) else str(host)).lower().rstrip(".")
    found = next(turns) if name == "rebinding.test" else known.get(name)
    if found is None:
        return real(host, port, family, kind, proto, flags | socket.AI_NUMERICHOST)
    return [
        (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port, 0, 0)[: 4 if ":" in one else 2])
        for one in found
    ]

socket.getaddrinfo = asked
"""
_STATUSES: Final = ("301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent")
_FORM: Final = "<form method=post action='{action}'><input name=u><input type=password name=p></form>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """What a crawl through everything that leads to the canary came to."""

    canary: list[str]
    exit_code: int
    printed: str
    codes: dict[str, int]
    asked: list[str]
    ways: int


def laid_out(site: HostileServer, other: HostileServer, canary: Canary) -> int:
    """Has the site lead to the canary in all the ways that it has; how many these are."""
    there = f"127.0.0.2:{canary.port}"
    links = [f"http://{host}:{canary.port}/{number}" for number, host in enumerate([*SPELLINGS, *NAMES])]
    links += [f"http://{host}:{canary.wildcard_port}/" for host in ("0.0.0.0", "0", "[::]")]
    links += [f"https://{there}/", f"//{there}/relative", f"http://me:secret@{there}/"]
    site.answers["/robots.txt"] = whole(
        f"Sitemap: http://{there}/sitemap.xml\nSitemap: {site.url}/listed.xml\nSitemap: {site.url}/moved.xml\n".encode()
    )
    entries = f"<url><loc>http://{there}/listed</loc></url>"
    site.answers["/listed.xml"] = whole(f"<urlset>{entries}</urlset>".encode())
    site.answers["/sitemap.xml"] = whole(
        f"<sitemapindex><sitemap><loc>http://{there}/child.xml</loc></sitemap></sitemapindex>".encode()
    )
    site.answers["/moved.xml"] = redirect("302 Found", f"http://127.2:{canary.port}/moved.xml")
    other.answers["/robots.txt"] = redirect("302 Found", f"http://{there}/robots.txt")
    links.append(f"{other.url}/behind-robots")
    pages = {
        "/refresh": whole(f'<meta http-equiv="refresh" content="0;url=http://{there}/refresh">'.encode()),
        "/canonical": whole(
            f'<head><link rel="canonical" href="http://{there}/canonical"></head>canonical words'.encode()
        ),
        "/header": whole(b"header words", "200 OK", f'Link: <http://{there}/header>; rel="canonical"'),
        "/frames": whole(
            f'<iframe src="http://{there}/frame"></iframe><map><area href="http://{there}/area"></map>'
            f'<noscript><a href="http://{there}/noscript">x</a></noscript>frame words'.encode()
        ),
        "/based": whole(f'<base href="http://{there}/"><a href="based">x</a> based words'.encode()),
        "/refresh-header": head("200 OK", f"Refresh: 0;url=http://{there}/header-refresh", "Content-Length: 0"),
    }
    for number, status in enumerate(_STATUSES):
        for spelling in ("127.0.0.2", "2130706434", "pinned.test"):
            pages[f"/redirect-{number}-{spelling}"] = redirect(status, f"http://{spelling}:{canary.port}/to-{number}")
    site.answers |= pages
    anchors = "".join(f'<a href="{link}">x</a>' for link in [*links, *pages, "/ok"])
    site.answers["/"] = whole(f"<title>start</title>{anchors}".encode())
    return len(links) + len(pages)


def source_of(site: HostileServer, **tables: Any) -> dict[str, Any]:
    return {
        "start": {"urls": [f"{site.url}/"]},
        "scope": {"include_hosts": None, "allow_all": True, "depth": 2},
        "fetch": {
            "retries": 0,
            "timeout_seconds": 10,
            "private_networks": ["127.0.0.1/32"],
            "resolve": {"pinned.test": "127.0.0.2", "*.wild.test": "127.0.0.2"},
        },
        **tables,
    }


def crawl(folder: Path, canary: Canary) -> subprocess.CompletedProcess[str]:
    """A process of its own: its DNS lies, and its environment names the canary as its proxy."""
    proxy = f"http://127.0.0.2:{canary.port}"
    variables = {"PYTHONPATH": f"{folder}:{ROOT}", "http_proxy": proxy, "https_proxy": proxy, "no_proxy": ""}
    return run_apart(folder, sys.executable, "-m", "searchcrawl", "crawl", "demo", "--json", **variables)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """One crawl through all of it."""
    folder = tmp_path_factory.mktemp("private")
    (folder / "sitecustomize.py").write_text(_DNS, "utf-8")
    with ExitStack() as stack:
        site, other = stack.enter_context(HostileServer()), stack.enter_context(HostileServer())
        canary = stack.enter_context(Canary())
        ways = laid_out(site, other, canary)
        write_project(folder, site.port, **source_of(site))
        ended = crawl(folder, canary)
        rows = query_columns(folder, "SELECT url, code FROM urls")
        yield Crawled(
            canary=list(canary.seen),
            exit_code=ended.returncode,
            printed=ended.stdout + ended.stderr,
            codes={row["url"]: row["code"] for row in rows},
            asked=[text.split(" ", 2)[1] for text in site.requests],
            ways=ways,
        )


def test_private_address_when_led_to_in_every_way_then_listener_sees_no_connection(crawled: Crawled) -> None:
    assert crawled.ways >= 30
    assert crawled.exit_code == 0, crawled.printed
    # All of them were tried.
    assert {"/ok", "/refresh", "/canonical", "/frames", "/redirect-1-pinned.test", "/moved.xml"} <= set(crawled.asked)
    assert crawled.canary == []


def test_private_address_when_it_is_a_row_then_its_code_says_that_it_may_not_be_reached(crawled: Crawled) -> None:
    plain = {
        url: code for url, code in crawled.codes.items() if url.startswith(("http://127.0.0.2:", "http://pinned.test:"))
    }

    assert len(plain) >= 15
    assert set(plain.values()) == {907}
    led = {code for url, code in crawled.codes.items() if "/redirect-1-" in url or "/redirect-3-" in url}
    assert led == {907}
    assert next(code for url, code in crawled.codes.items() if url.endswith("/behind-robots")) == 907
    # The name was allowed as long as DNS named the address that is: nobody listens there.
    assert next(code for url, code in crawled.codes.items() if url.startswith("http://rebinding.test:")) == 906


def test_login_when_it_leads_to_a_private_address_then_listener_sees_no_connection(
    tmp_path: Path,
) -> None:
    with HostileServer() as site, Canary() as canary:
        there = f"http://127.0.0.2:{canary.port}/login"
        site.answers |= {
            "/form": whole(_FORM.format(action=there).encode()),
            "/away": redirect("302 Found", there),
            "/good": whole(_FORM.format(action="/take").encode()),
            "/take": redirect("302 Found", there),
            "/again": whole(_FORM.format(action="/send-on").encode()),
            "/send-on": redirect("307 Temporary Redirect", there),
        }
        codes = []
        for path in ("/form", "/away", "/good", "/again"):
            login = {"type": "form", "url": site.url + path, "username": "me", "password": "open-sesame"}
            folder = write_project(tmp_path / path[1:], site.port, **source_of(site, login=login))
            codes.append(COMMANDS.run(folder, "crawl", "demo").returncode)
        posted = [text.split(" ", 2)[1] for text in site.requests if text.startswith("POST")]

        assert codes == [8, 8, 8, 8]
        assert posted == ["/take", "/send-on"]
        assert canary.seen == []
