"""No spelling, name, redirect or file leads to an address that is not listed (L7, X-N1, X-N2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.canary import SPELLINGS, Canary
from tests.crawl_forks import COMMANDS
from tests.hostile_server import HostileServer, redirect, whole

#: Names that lead there, by ``fetch.resolve`` or by DNS.
NAMES = ["pinned.test", "deep.below.wild.test", "PINNED.TEST.", "dns.test", "both.test", "mixed.test"]
RESOLVE = {"pinned.test": "127.0.0.2", "*.wild.test": "127.0.0.2"}
DNS = {"dns.test": ["127.0.0.2"], "both.test": ["127.0.0.2", "::1"], "mixed.test": ["127.0.0.2", "127.0.0.1", "::1"]}
REDIRECTED = ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
#: The canary, and what became of each URL.
Visited = tuple[Canary, dict[str, dict[str, Any]]]


def forbidden_urls(canary: Canary, server: HostileServer) -> list[str]:
    """What to visit; the server is told to lead to the canary in all the ways that it has."""
    urls = [f"http://{host}:{canary.port}/" for host in [*SPELLINGS, *NAMES]]
    urls += [f"http://{host}:{canary.wildcard_port}/" for host in ("0.0.0.0", "0", "[::]")]
    urls.append(f"https://127.0.0.2:{canary.port}/")
    for number, status in enumerate(REDIRECTED):
        for spelling in ("127.0.0.2", "2130706434", "pinned.test"):
            path = f"/redirect-{number}-{spelling}"
            server.answers[path] = redirect(status, f"http://{spelling}:{canary.port}/")
            urls.append(server.url + path)
    server.answers["/refresh"] = whole(
        f'<meta http-equiv="refresh" content="0;url=http://0x7f.2:{canary.port}/">'.encode()
    )
    return urls


def crawl(job: dict[str, Any]) -> dict[str, Any]:
    return COMMANDS.fetch(job, http_proxy="http://127.0.0.2:1/")


@pytest.fixture(scope="module", params=["as-written", "as-identity"])
def visited(request: pytest.FixtureRequest) -> Iterator[Visited]:
    """Everything forbidden was visited once."""
    with Canary() as canary, HostileServer() as server:
        forbidden = forbidden_urls(canary, server)
        job: dict[str, Any] = {
            "resolve_first": request.param == "as-identity",
            "dns": DNS,
            "fetch": {"private_networks": ["127.0.0.1/32"], "resolve": RESOLVE, "timeout_seconds": 5},
        }
        found = crawl(job | {"urls": [*forbidden, server.url + "/refresh"], "robots": {"obey": False}})["visits"]
        visits = {visit["wanted"]: visit for visit in found}
        assert set(forbidden) <= set(visits)
        yield canary, visits


def test_forbidden_address_when_visited_in_every_way_then_listener_sees_nothing(visited: Visited) -> None:
    canary, _ = visited

    assert canary.seen == []


def test_forbidden_address_when_visited_then_no_page_comes_of_it(visited: Visited) -> None:
    _, visits = visited

    allowed = {url for url, visit in visits.items() if visit["code"] == 200}

    assert {url.rpartition("/")[2] for url in allowed} == {"refresh"}


def test_forbidden_address_when_spelled_plainly_or_led_to_then_code_is_907(visited: Visited) -> None:
    canary, visits = visited
    led = [url for url in visits if "redirect-1-" in url or "redirect-3-" in url]

    codes = {visits[url]["code"] for url in [*led, f"http://127.0.0.2:{canary.port}/"]}

    assert len(led) == 6
    assert codes == {907}


def test_forbidden_address_when_robots_leads_there_then_listener_sees_nothing() -> None:
    with Canary() as canary, HostileServer() as server:
        server.answers["/robots.txt"] = redirect("302 Found", f"http://127.2:{canary.port}/robots.txt")
        job = {
            "urls": [server.url + "/ok", f"http://127.0.0.2:{canary.port}/"],
            "fetch": {"private_networks": ["127.0.0.1/32"], "timeout_seconds": 5},
        }

        visits = crawl(job)["visits"]

        assert [visit["code"] for visit in visits] == [907, 907]
        assert canary.seen == []


def test_listed_address_when_visited_then_is_reached() -> None:
    with HostileServer() as server:
        job = {
            "urls": [f"{server.url}/ok", f"http://named.test:{server.port}/ok", f"http://0x7f.1:{server.port}/ok"],
            "resolve_first": True,
            "dns": {"named.test": ["127.0.0.2", "127.0.0.1"]},
            "fetch": {"private_networks": ["127.0.0.1/32"], "timeout_seconds": 5},
        }

        visits = crawl(job)["visits"]

    assert [visit["code"] for visit in visits] == [200, 200, 200]


def test_canary_when_its_network_is_listed_then_sees_the_connection() -> None:
    """The test above can fail: the same visit reaches the listener once it is allowed."""
    with Canary() as canary:
        job = {
            "urls": [f"http://127.0.0.2:{canary.port}/"],
            "robots": {"obey": False},
            "fetch": {"private_networks": ["127.0.0.0/8"], "timeout_seconds": 5},
        }

        crawl(job)

        assert canary.seen != []
