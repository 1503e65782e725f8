"""What spiders written in Python get of the download handler: the guard, whole bodies, guessed types, proxies."""

from __future__ import annotations

import asyncio
import base64
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import CannotResolveHostError, DownloadCancelledError
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings

from searchcrawl.http.address_guard import AddressGuard
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.http.python_spider_handler import PythonSpiderHandler
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.redirects import OwnOrigins
from searchcrawl.sources.fetch_tables import TlsFiles
from tests.hostile_server import HostileServer, whole
from tests.proxy_server import ProxyServer

AUTHORIZATION = "Basic " + base64.b64encode(b"me:c4n4ry pass").decode()


def fetched(request: Request, *networks: str) -> Response:
    """The answer to a request; ``networks`` may be reached besides public addresses."""
    crawler: Any = SimpleNamespace(settings=Settings(), spider=None)
    request.meta["download_slot"] = ""

    async def fetch_once() -> Response:
        handler = PythonSpiderHandler.from_crawler(crawler)
        if networks:
            guard = AddressGuard(private_networks=networks, resolve={})
            handler = PythonSpiderHandler(
                crawler,
                guard=guard,
                public_guard=guard,
                rate_limiter=RateLimiter(),
                timeout_seconds=5,
                max_bytes=1_000_000,
                verify=True,
                tls_files=TlsFiles(),
                own_origins=OwnOrigins(()),
                lookups=NameLookups(),
            )
        try:
            return await handler.download_request(request)
        finally:
            await handler.close()

    return asyncio.run(fetch_once())


def test_l7_python_spider_when_the_address_is_private_then_scrapys_error_says_so() -> None:
    with HostileServer() as server:
        with pytest.raises(
            CannotResolveHostError, match=r"refused by the address guard of searchcrawl: SEARCHCRAWL_GUARD"
        ) as raised:
            fetched(Request(server.url + "/ok"))

        assert type(raised.value) is CannotResolveHostError
        assert server.requests == []


def test_python_spider_when_the_answer_is_an_error_then_its_body_is_whole_and_its_type_guessed() -> None:
    body = b"<!DOCTYPE html><html><body>" + b"x" * 200_000
    with HostileServer() as server:
        server.answers["/missing"] = whole(body, "404 Not Found")

        response = fetched(Request(server.url + "/missing"), "127.0.0.1/32")

    assert (response.status, response.body) == (404, body)
    assert isinstance(response, HtmlResponse)


def test_python_spider_when_its_request_names_a_proxy_then_goes_through_it_and_its_password_no_further() -> None:
    headers = {"Proxy-Authorization": AUTHORIZATION}
    with ProxyServer({"site.test": "127.0.0.1"}, authorization=AUTHORIZATION) as proxy, HostileServer() as server:
        url = f"http://site.test:{server.port}/ok"

        response = fetched(Request(url, headers=headers, meta={"proxy": proxy.url}), "127.0.0.1/32")

    assert response.status == 200
    assert [line.rsplit(" ", 1)[0] for line in proxy.asked] == [f"GET {url}"]
    assert not any("authorization" in request.lower() for request in server.requests)


def test_python_spider_when_a_request_names_a_size_limit_then_it_is_kept() -> None:
    with HostileServer() as server:
        server.answers["/large"] = whole(b"x" * 5_000)

        with pytest.raises(DownloadCancelledError):
            fetched(Request(server.url + "/large", meta={"download_maxsize": 1_000}), "127.0.0.1/32")
