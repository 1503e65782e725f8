"""X-N7: the headers of a source go to the origins that they are for, and never from https down to http."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import list_in_sitemap, page
from tests.certificates import write_certificate
from tests.hostile_server import HostileServer, redirect
from tests.site.client import LogEntry, SiteProcess
from tests.site.expected import short

IN: Final = "in.acme.test"
API: Final = "api.acme.test"
DEEP: Final = "deep.acme.test"
TLS: Final = "tls.acme.test"
OWN: Final = {"Authorization": "Bearer of-ours"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """What a crawl left: its codes by short URL, the requests for the hosts of the site, and those over TLS."""

    codes: dict[str, int]
    log: list[LogEntry]
    secure: list[str]

    def sent(self, host: str) -> dict[str, bool]:
        """Whether each request to a host had the headers of the source, by path."""
        entries = [entry for entry in self.log if entry["host"] == host]
        return {entry["path"]: "authorization" in entry["headers"] for entry in entries}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    folder = tmp_path_factory.mktemp("headers")
    certificate = write_certificate(folder, host=TLS)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with SiteProcess() as site, HostileServer(tls=context) as secure:
        # So many pages with next to no text that their hosts are asked for a page that they do not have.
        small = [(host, f"/{name}.html") for host, names in ((API, "abcd"), (DEEP, "defg")) for name in names]
        site.set_page(IN, "/", page("start", *(site.url(host, path) for host, path in small)))
        for host, path in (*small, (DEEP, "/listed.html"), (IN, "/after.html")):
            site.set_page(host, path, page(f"{host}{path}"))
        for name, status in (("/down", "302 Found"), ("/moved", "301 Moved")):
            secure.answers[name] = redirect(status, site.url(IN, f"{name}-after.html"))
            site.set_page(IN, f"{name}-after.html", page(f"after {name}"))
        list_in_sitemap(site, DEEP, "/listed.html")
        project = new_project(
            folder,
            site,
            start={
                "urls": [site.url(IN, "/"), *(f"https://{TLS}:{secure.port}{path}" for path in ("/down", "/moved"))],
                "sitemaps": [site.url(DEEP, "/sitemap.xml")],
            },
            scope={"include_hosts": ["acme.test"]},
            fetch={"retries": 0, "headers": OWN, "headers_to": [site.url(API, "/")], "ca_file": str(certificate)},
        )
        assert project.crawl().exit_code == 0
        yield Crawled(
            codes={short(url): code for url, code in project.codes().items()},
            log=site.log(),
            secure=list(secure.requests),
        )


def test_n7_headers_when_an_origin_is_that_of_a_start_url_or_named_then_it_alone_gets_them(crawled: Crawled) -> None:
    assert crawled.sent(IN) | {"/": True, "/robots.txt": True} == crawled.sent(IN)
    # Its last request is for a page that it does not have.
    assert crawled.sent(API).keys() > {"/robots.txt", "/a.html", "/b.html", "/c.html", "/d.html"}
    assert all(crawled.sent(API).values())
    # In scope, by links, in a sitemap, and asked for what it does not have.
    deep = crawled.sent(DEEP)
    assert {"/robots.txt", "/d.html", "/e.html", "/f.html", "/g.html", "/listed.html", "/sitemap.xml"} < set(deep)
    assert not any(deep.values())
    assert len(crawled.secure) == 3
    assert all("of-ours" in text for text in crawled.secure)


def test_n7_headers_when_https_leads_down_to_http_then_they_stay_behind(crawled: Crawled) -> None:
    sent = crawled.sent(IN)

    assert sent["/down-after.html"] is False
    # One that moved for good is a URL of its own, asked for by itself at an origin of a start URL.
    assert sent["/moved-after.html"] is True
    assert set(crawled.codes.values()) == {200, 954}
