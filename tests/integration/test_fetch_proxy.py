"""Everything through the proxy of the source, and nothing past it (C10, X-N3)."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import write_certificate
from tests.crawl_forks import COMMANDS
from tests.hostile_server import HostileServer, closed_port, redirect
from tests.proxy_server import ProxyServer

NAMES = {"site.test": "127.0.0.1", "listed.test": "127.0.0.1"}
AUTHORIZATION = "Basic " + base64.b64encode(b"me:c4n4ry pass").decode()


def crawl(proxy: str, urls: list[str], *, scope: dict[str, Any] | None = None, **fetch: Any) -> dict[str, Any]:
    """What came of a visit of each URL; DNS knows no host."""
    job = {
        "scope": scope or {"allow_all": True},
        "urls": urls,
        "resolve_first": True,
        "settings": {"DOWNLOAD_VERIFY_CERTIFICATES": "ca_file" in fetch or fetch.get("verify_certificates", True)},
        "fetch": {"proxy": proxy, "timeout_seconds": 5, **fetch},
    }
    answer = COMMANDS.fetch(job, http_proxy="http://127.0.0.2:1/", https_proxy="http://127.0.0.2:1/")
    codes = {visit["wanted"]: visit["code"] for visit in answer["visits"]}
    return answer | {"codes": [codes[url] for url in urls]}


@pytest.fixture
def proxy() -> Iterator[ProxyServer]:
    with ProxyServer(NAMES, authorization=AUTHORIZATION) as proxy:
        yield proxy


def with_password(proxy: ProxyServer, password: str = "c4n4ry%20pass") -> str:
    return proxy.url.replace("://", f"://me:{password}@")


def test_c10_proxy_when_set_then_pages_and_robots_go_through_it_and_its_password_no_further(proxy: ProxyServer) -> None:
    with HostileServer() as server:
        answer = crawl(with_password(proxy), [f"http://site.test:{server.port}/ok"], dns_per_second=1)

    assert answer["codes"] == [200]
    # The proxy looks the host up, nobody else.
    assert answer["lookups"] == {}
    assert [line.rsplit(" ", 1)[0] for line in proxy.asked] == [
        f"GET http://site.test:{server.port}/robots.txt",
        f"GET http://site.test:{server.port}/ok",
    ]
    assert len(server.requests) == 2
    assert not any("authorization" in request.lower() for request in server.requests)
    assert "resolves names" in answer["log"]
    assert "c4n4ry" not in answer["log"]


def test_c10_proxy_when_the_site_speaks_tls_then_a_tunnel_is_asked_for(proxy: ProxyServer, tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    with HostileServer(tls=context) as server:
        url = f"https://site.test:{server.port}/ok"
        answer = crawl(with_password(proxy), [url], ca_file=str(certificate))
        distrusted = crawl(with_password(proxy), [url])

    assert (answer["codes"], distrusted["codes"]) == ([200], [962])
    assert {line.rsplit(" ", 1)[0] for line in proxy.asked} == {f"CONNECT site.test:{server.port}"}
    assert any(request.startswith("GET /ok ") for request in server.requests)
    assert not any("authorization" in request.lower() for request in server.requests)


def test_l7_proxy_when_an_address_is_forbidden_then_it_is_not_asked_for_it(proxy: ProxyServer) -> None:
    with HostileServer() as server:
        urls = [
            f"http://127.0.0.2:{server.port}/",
            f"http://0x7f.2:{server.port}/",
            f"http://[::1]:{server.port}/",
            f"http://listed.test:{server.port}/ok",
            f"http://below.wild.test:{server.port}/ok",
        ]
        resolve = {"listed.test": "10.0.0.1", "*.wild.test": "127.0.0.1"}

        answer = crawl(with_password(proxy), urls, resolve=resolve)

    assert answer["codes"] == [907] * 5
    assert proxy.asked == []


def test_l7_proxy_when_a_redirect_leads_outside_then_an_odd_port_of_a_private_address_is_not_asked_for(
    proxy: ProxyServer,
) -> None:
    with HostileServer() as server:
        server.answers["/away"] = redirect("302 Found", f"http://listed.test:{server.port}/ok")
        job = {"private_networks": ["10.0.0.0/8", "127.0.0.0/8"], "resolve": {"listed.test": "10.0.0.1"}}

        answer = crawl(
            with_password(proxy),
            [f"http://site.test:{server.port}/away"],
            scope={"include_hosts": ["site.test"]},
            **job,
        )

    assert answer["codes"] == [907]
    assert [line.split(" ")[1].rpartition("/")[2] for line in proxy.asked] == ["robots.txt", "away"]


def test_c10_proxy_when_it_refuses_us_then_the_row_says_so_without_the_password(proxy: ProxyServer) -> None:
    urls = ["http://site.test:1/", "https://site.test:1/"]

    answer = crawl(with_password(proxy, "c4n4ry-wrong"), urls)

    errors = [visit["error"] for visit in answer["visits"]]
    assert answer["codes"] == [905, 905]
    assert all("the proxy" in error and "407" in error for error in errors)
    assert "c4n4ry" not in json.dumps(answer)


def test_c10_proxy_when_it_is_away_then_the_code_is_that_of_its_connection() -> None:
    with closed_port() as port:
        answer = crawl(f"http://127.0.0.1:{port}", ["http://site.test/"])

    assert answer["codes"] == [906]
