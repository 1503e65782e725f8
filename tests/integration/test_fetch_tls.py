"""Certificates that are not to be trusted: 962, unless the source says otherwise (X-N6)."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadFailedError
from scrapy.http import Response
from scrapy.settings import Settings

from searchcrawl.http.address_guard import build_guard, build_public_guard
from searchcrawl.http.download_handler import GuardedHandler
from searchcrawl.http.given_up_hosts import GivenUpHosts
from searchcrawl.http.name_lookups import NameLookups
from searchcrawl.http.visit_end import CertificateRefused
from searchcrawl.politeness.rate_limiter import RateLimiter
from searchcrawl.rules.redirects import OwnOrigins
from searchcrawl.run import Run
from searchcrawl.sources.fetch_tables import Fetch
from searchcrawl.sources.project import Project
from searchcrawl.stages import Stages
from tests.certificates import DAY, write_certificate
from tests.hostile_server import PAGE, HostileServer


def server_with(certificate: Path) -> HostileServer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return HostileServer(tls=context)


def fetched(url: str, *, start: str | None = None, **fetch: Any) -> Response:
    """The answer to ``url``, of a source with the start URL ``start`` (default: ``url``)."""
    settings = {"private_networks": ["127.0.0.1/32"], "resolve": {"site.test": "127.0.0.1"}, "timeout_seconds": 5}
    spider = Spider("tls")
    values = Fetch(**settings | fetch)
    project = Project(root=Path("/nowhere"), contact="crawl@example.test")
    spider.stages = stages = Stages()  # type: ignore[attr-defined]
    stages.add(SimpleNamespace(source=SimpleNamespace(fetch=values), project=project), Run)
    stages.add(OwnOrigins([start or url], values.headers_to))
    stages.add(build_guard(values))
    stages.add(build_public_guard(values))
    stages.add(NameLookups())
    stages.add(GivenUpHosts())
    stages.add(RateLimiter())
    crawler: Any = SimpleNamespace(settings=Settings(), spider=spider)

    async def fetch_once() -> Response:
        handler = GuardedHandler.from_crawler(crawler)
        try:
            return await handler.download_request(Request(url, meta={"download_slot": "site.test"}))
        finally:
            await handler.close()

    return asyncio.run(fetch_once())


def test_certificate_when_self_signed_then_is_refused_unless_its_authority_is_named_or_nothing_is_verified(
    tmp_path: Path,
) -> None:
    certificate = write_certificate(tmp_path)
    with server_with(certificate) as server:
        url = f"https://site.test:{server.port}/ok"
        named = fetched(url, ca_file=str(certificate))
        unverified = fetched(url, verify_certificates=False)
        with pytest.raises(CertificateRefused, match="self-signed"):
            fetched(url)

    assert (named.status, named.body, unverified.status) == (200, PAGE, 200)


@pytest.mark.parametrize(
    ("values", "words"),
    [({"host": "other.test"}, "site.test"), ({"age": 30 * DAY}, "expired"), ({"age": -30 * DAY}, "not yet valid")],
    ids=["other-host", "expired", "not-yet"],
)
def test_certificate_when_wrong_then_is_refused_and_says_why(
    tmp_path: Path, values: dict[str, Any], words: str
) -> None:
    certificate = write_certificate(tmp_path, **values)

    with server_with(certificate) as server, pytest.raises(CertificateRefused, match=words):
        fetched(f"https://site.test:{server.port}/ok", ca_file=str(certificate))


def test_server_when_it_speaks_no_tls_then_is_no_matter_of_certificates() -> None:
    with HostileServer() as server, pytest.raises(DownloadFailedError) as caught:
        fetched(f"https://site.test:{server.port}/ok")

    assert not isinstance(caught.value, CertificateRefused)


def test_c10_client_certificate_when_the_server_wants_one_then_own_origins_alone_are_shown_it(tmp_path: Path) -> None:
    certificate = write_certificate(tmp_path)
    ours = write_certificate(tmp_path, host="crawler.test")
    chain, _, key = ours.read_text("ascii").partition("-----BEGIN PRIVATE KEY")
    (tmp_path / "own.pem").write_text(chain)
    (tmp_path / "own.key").write_text(f"-----BEGIN PRIVATE KEY{key}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.load_verify_locations(cafile=ours)
    context.verify_mode = ssl.CERT_REQUIRED

    with HostileServer(tls=context) as server:
        url, files = f"https://site.test:{server.port}/ok", {"ca_file": str(certificate)}
        in_one = fetched(url, **files, client_certificate=str(ours))
        in_two = fetched(
            url, **files, client_certificate=str(tmp_path / "own.pem"), client_key=str(tmp_path / "own.key")
        )
        files |= {"client_certificate": str(ours)}
        named = fetched(url, **files, start="https://other.test/", headers_to=[f"https://SITE.test:{server.port}/"])
        with pytest.raises(DownloadFailedError):
            fetched(url, **files, start="https://other.test/")
        with pytest.raises(DownloadFailedError):
            fetched(url, **files, start=f"http://site.test:{server.port}/")

    assert (in_one.status, in_two.status, in_two.body, named.status) == (200, 200, PAGE, 200)
