"""Hostile pages, servers that are not there, broken configuration: a code or an exit code each, and no more (X-R1-R16, L6)."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.acceptance.support_project import CrawlProject, Ended, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.hostile_answers import ROWS
from tests.hostile_server import HostileServer
from tests.live_pages import document, phrase
from tests.site import hostile
from tests.site.client import ADDRESS, SiteProcess
from tests.unit.html.test_pieces import COMPARED, NESTED, REOPENED

WORDS: Final = "The barometer fell and the needle kept its line."
_MB: Final = 1024 * 1024


class Crawled(NamedTuple):
    """A project after its run, and what the probe measured."""

    project: CrawlProject
    ended: Ended
    probe: dict[str, Any]

    def codes(self, host: str) -> dict[str, int]:
        """The code of each page of a host, by its name."""
        codes = self.project.codes()
        return {url.removeprefix(f"{host}/").removesuffix(".html"): code for url, code in codes.items()}


def crawl_host(site: SiteProcess, folder: Path, host: str, **fetch: Any) -> Crawled:
    project = new_project(folder, site, **source(site, host, **fetch))
    return Crawled(project, *project.crawl_measured())


def set_pages(site: SiteProcess, host: str, bodies: dict[str, bytes], **fields: Any) -> None:
    """Pages as /NAME.html, of any bytes, and a start page that links to them."""
    site.set_page(host, "/", page("start", *(f"/{name}.html" for name in bodies)))
    for name, body in bodies.items():
        site.set_page(host, f"/{name}.html", body, **fields)


# R9


def refresh(target: str) -> str:
    return page("moved", head=f'<meta http-equiv="refresh" content="0;url={target}">')


def test_r9_refresh_when_pages_lead_to_each_other_then_the_loop_ends_with_963(
    site: SiteProcess, tmp_path: Path
) -> None:
    chain = {f"chain{number}": refresh(f"/chain{number + 1}.html") for number in range(30)}
    own = {"self": refresh("/self.html"), "a": refresh("/b.html"), "b": refresh("/a.html"), "script": refresh("data:x")}
    pages(site, "refresh.acme.test", **own)
    for name, body in chain.items():
        site.set_page("refresh.acme.test", f"/{name}.html", body)
    site.set_page(
        "refresh.acme.test", "/", page("start", *(f"/{name}.html" for name in ("self", "a", "script", "chain0")))
    )

    run = crawl_host(site, tmp_path, "refresh.acme.test", max_redirects=5)

    codes = run.codes("refresh.acme.test")
    assert run.ended.exit_code == 0
    # Both have the same text.
    assert {codes["self"], codes["script"]} == {200, 909}
    assert (codes["a"], codes["b"]) == (953, 963)
    assert [code for name, code in codes.items() if name.startswith("chain")].count(963) == 1
    assert len(codes) < 15


# R11

CHARSETS: Final = {
    **{
        f"label{number}": label
        for number, label in enumerate(["x-klingon", "rot13", "idna", "unicode_escape", "utf-7"])
    },
    **{
        f"codec{number}": label
        for number, label in enumerate(["hex", "base64", "punycode", "undefined", "mbcs", "zip"])
    },
    "long": "x" * 10_000,
    "blank": '" "',
    "steering": "\x1b[31m",
}


def test_r11_charset_when_it_is_none_then_the_page_is_read_all_the_same(site: SiteProcess, tmp_path: Path) -> None:
    host = "charset.acme.test"
    set_pages(site, host, dict.fromkeys((*CHARSETS, "two", "meta", "lie"), b""))
    for name, label in CHARSETS.items():
        site.set_page(host, f"/{name}.html", page(f"{name} {WORDS}"), content_type=f"text/html; charset={label}")
    two = {"content_type": "text/html; charset=latin-9", "headers": {"Content-Type": "text/html; charset=utf-8"}}
    site.set_page(host, "/two.html", page(f"two {WORDS} é"), **two)
    site.set_page(host, "/meta.html", page(f"meta {WORDS}", head='<meta charset="rot13"><meta charset="utf-16">'))
    site.set_page(
        host,
        "/lie.html",
        page(f"lie {WORDS}").encode() + b"\xff\xfe\xed\xa0\x80",
        content_type="text/html; charset=utf-8",
    )

    run = crawl_host(site, tmp_path, host)

    found = set(run.project.found("barometer needle"))
    assert set(run.codes(host).values()) == {200}
    assert found == {f"{host}/{name}.html" for name in (*CHARSETS, "two", "meta", "lie")}


# R13

SWOLLEN: Final = {
    "nested200k": b"<div>" * 200_000 + b"barometer",
    "nested5k": b"<div>" * 5_000 + b"barometer",
    "fonts": b"".join(b"<font color=%d><p>x" % number for number in range(9_000)) + b" barometer",
    "options": b"<select>" + b"<option>x</option>" * 9_500 + b"</select>barometer",
    "metas": b"<meta name=robots content='" + b"a:" * 400_000 + b"'>barometer",
    "attribute": b"<a title='" + b"x" * (30 * _MB) + b"' href='/out.html'>barometer</a>",
    "malformed": b'<p a="<b>\'">barometer ' + b"</x><table><i>x" * (8 * _MB // 15),
    "too-large": b"<p>barometer" + b"x" * (33 * _MB),
}


def crawled_swollen(site: SiteProcess, folder: Path, host: str, bodies: dict[str, bytes]) -> Crawled:
    set_pages(site, host, bodies)
    return crawl_host(site, folder, host, scope={"depth": 1})


@pytest.fixture(scope="module")
def swollen(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return crawled_swollen(site, tmp_path_factory.mktemp("swollen"), "swollen.acme.test", SWOLLEN)


def test_r13_pages_when_swollen_then_each_is_read_or_has_a_code(swollen: Crawled) -> None:
    codes = swollen.codes("swollen.acme.test")

    # Some have the same text as another.
    read = {name for name in SWOLLEN if codes[name] in {200, 909}}
    indexed = {name for name in read if codes[name] == 200}
    # On a slow machine the time for one page is over first.
    assert {"malformed": 904, "too-large": 960}.items() >= {name: codes[name] for name in SWOLLEN.keys() - read}.items()
    assert "too-large" not in read
    assert indexed
    assert indexed <= {url.split("/")[1].removesuffix(".html") for url in swollen.project.found("barometer")}


def test_r13_reactor_when_pages_are_swollen_then_never_stands_still_and_memory_is_bounded(swollen: Crawled) -> None:
    assert swollen.probe["longest_stall_seconds"] < 1
    assert swollen.probe["peak_megabytes"] < 500


@pytest.mark.soak
def test_r13_links_when_too_many_then_the_first_are_taken_and_the_log_says_so(
    site: SiteProcess, tmp_path: Path
) -> None:
    links = b"".join(b"<a href=/many/%d.html>x</a>" % number for number in range(300_010))

    run = crawled_swollen(site, tmp_path, "links.acme.test", {"links": links})

    assert len([url for url in run.project.codes() if "/many/" in url]) == 300_000
    assert "no more than its first 300000 links are followed" in run.project.log()
    assert run.probe["longest_stall_seconds"] < 1
    assert run.probe["peak_megabytes"] < 600


# R14: sitemaps and feeds have tests of their own


def test_r14_xml_when_it_is_a_page_then_no_entity_is_expanded_or_fetched(site: SiteProcess, tmp_path: Path) -> None:
    host = "xml.acme.test"
    with socket.create_server(("127.0.0.1", 0)) as canary:
        canary.setblocking(False)
        entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
        bomb = f'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY e0 "lol">{entities}<!ENTITY x SYSTEM "http://127.0.0.1:{canary.getsockname()[1]}/x"><!ENTITY f SYSTEM "file:///etc/hostname">]><html xmlns="http://www.w3.org/1999/xhtml"><head><title>barometer</title></head><body><p>barometer &e9; &x; &f;</p></body></html>'
        set_pages(site, host, dict.fromkeys(["xhtml", "xml", "text", "plain", "untyped", "svg"], bomb.encode()))
        types = {
            "xhtml": "application/xhtml+xml",
            "xml": "application/xml",
            "text": "text/xml",
            "plain": "text/plain",
            "svg": "image/svg+xml",
            "untyped": None,
        }
        for name, kind in types.items():
            site.set_page(host, f"/{name}.html", bomb + f"<!-- {name} -->", content_type=kind)

        run = crawl_host(site, tmp_path, host)

        with pytest.raises(BlockingIOError):
            canary.accept()
    codes = run.codes(host)
    assert codes["svg"] == 908
    assert {codes[name] for name in ("xhtml", "xml", "text")} <= {200, 909}
    texts = [str(hit.fields.get("content", "")) for hit in run.project.hits("barometer")]
    assert all("lollol" not in text and len(text) < 5_000 for text in texts)
    assert Path("/etc/hostname").read_text("utf-8").strip() not in " ".join(texts)


GOOD: Final = "good.acme.test"
HOSTILE: Final = "hostile.acme.test"
#: What takes long once the page is read.
TEXTS: Final[dict[str, Callable[[int], str]]] = {
    "marks": lambda n: "<p>a" + "\u0301\u0323" * n,
    "words": lambda n: "<p>" + "a" * n,
    "blanks": lambda n: "<p>a" + "\u3000" * n + "b",
}
FAMILIES: Final[dict[str, Callable[[int], str]]] = TEXTS | REOPENED | NESTED | COMPARED
#: Bodies that are parsed in the reactor, the largest of these, and one for a worker.
SIZES: Final = (20_000, 195_000, 1_000_000)
#: No turn of the reactor takes longer, and the process takes no more memory.
MOST_SECONDS: Final = 2
MOST_MEGABYTES: Final = 500


def grow(build: Callable[[int], str], size: int) -> bytes:
    """The largest page of a family with about so many bytes."""
    count = 250
    while len(build(2 * count)) < size:
        count *= 2
    low, high = count, 2 * count
    while high - low > count // 20:
        middle = (low + high) // 2
        low, high = (middle, high) if len(build(middle)) <= size else (low, middle)
    return build(low).encode()


def swollen_pages() -> dict[str, bytes]:
    """Pages that are made to take long, by name."""
    grown = {
        f"{name.replace(' ', '-')}-{size}": grow(build, size) for name, build in FAMILIES.items() for size in SIZES
    }
    return grown | SWOLLEN


def wrong_answers() -> dict[str, bytes]:
    """Answers that are no good HTTP, by path."""
    return {path: answer for row in ROWS.values() for path, (answer, _) in row.items()}


def crawl(site: SiteProcess, server: HostileServer, folder: Path, good: int, pages: dict[str, bytes]) -> CrawlProject:
    """Crawls so many good pages, with the hostile ones among them; ends well."""
    paths = [f"/d/{number:04}.html" for number in range(good)]
    for number, path in enumerate(paths):
        site.set_page(GOOD, path, document(number))
    for name, body in pages.items():
        site.set_page(GOOD, f"/h/{name}.html", body)
    bad = [f"/h/{name}.html" for name in pages]
    bad += [f"http://{HOSTILE}:{server.port}{path}" for path in server.answers]
    # A hostile one comes after some good ones.
    every = -(-good // len(bad))
    mixed = [url for at, each in enumerate(bad) for url in (*paths[at * every : (at + 1) * every], each)]
    site.set_page(GOOD, "/", page("start", *mixed))
    scope = {"include_hosts": [GOOD, HOSTILE], "include_ports": [site.port, server.port], "depth": 1}
    tables = source(site, GOOD, scope=scope, timeout_seconds=10)
    tables["start"]["sitemaps"] = "off"
    return new_project(folder, site, **tables)


def check(project: CrawlProject, good: int, bad: int) -> None:
    """All good pages are found, each by its phrase; each hostile one has a code; the reactor turned all the time."""
    ended, measured = project.crawl_measured()

    codes = project.codes()
    found = [number for number in range(good) if project.found(f'"{phrase(number)}"') == [f"{GOOD}/d/{number:04}.html"]]
    assert ended.exit_code == 0
    assert found == [*range(good)]
    assert len([url for url in codes if "/h/" in url or url.startswith(HOSTILE)]) >= bad
    assert 0 not in codes.values()
    assert measured["longest_stall_seconds"] < MOST_SECONDS, measured
    assert measured["peak_megabytes"] < MOST_MEGABYTES, measured


@pytest.mark.soak
def test_site_when_hostile_pages_are_among_500_good_ones_then_all_of_these_are_indexed_in_one_run(
    site: SiteProcess, tmp_path: Path
) -> None:
    pages = swollen_pages()
    with HostileServer() as server:
        server.answers = wrong_answers()
        bad = len(pages) + len(server.answers)
        assert bad >= 200

        check(crawl(site, server, tmp_path, 500, pages), 500, bad)


MANY_LINKS: Final = 100_000
#: The code of each hostile page (C7); the same text under two charsets that don't exist is a copy.
CODES: Final = {
    "good": 200,
    "gzip-truncated": 958,
    "gzip-crc": 958,
    "gzip-garbage": 958,
    "gzip-bomb": 960,
    "charset-unknown": 909,
    "charset-rot13": 200,
    "charset-lie": 200,
    "nested": 200,
    "huge": 200,
    "lines": 200,
    "links": 200,
    "binary": 1009,
    "nul": 200,
    "redirect-blank": 1003,
    "redirect-nowhere": 1003,
    "redirect-bad": 1003,
    "redirect-file": 1003,
    "not-modified": 304,
    "odd-status": 799,
    "cut": 958,
    "cut-chunked": 958,
    "cut-by-reset": 958,
    "reset": 905,
    "hang": 902,
    "drip": 902,
    "slow-headers": 902,
    "endless-headers": 1006,
    "endless-body": 960,
    "two-lengths": 1006,
    "not-http": 1006,
}


@pytest.fixture(scope="module")
def crawled(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    _warm_up(site)
    folder = tmp_path_factory.mktemp("bad")
    starts = [
        site.url(hostile.HOST),
        site.url(hostile.HOST, "/redirect-private.html"),
        site.url("docs.acme.test", "/chain/1.html"),
        "http://refused.acme.test:1/",
        "http://no-such-name.invalid/",
        f"http://127.0.0.2:{site.port}/",
    ]
    project = new_project(
        folder,
        site,
        start={"urls": starts},
        scope={"include_hosts": ["acme.test", "no-such-name.invalid", "127.0.0.2"], "depth": 1},
        fetch={"retries": 0, "timeout_seconds": 10, "host_concurrency": 8},
    )
    return Crawled(project, *project.crawl_measured())


def _warm_up(site: SiteProcess) -> None:
    """Has the site make its biggest pages before anybody waits for them."""
    connection = http.client.HTTPConnection(ADDRESS, site.port, timeout=60)
    connection.request("GET", "/good.html", headers={"Host": hostile.HOST})
    connection.getresponse().read()
    connection.close()


def test_codes_when_compared_with_the_site_then_each_hostile_page_has_one() -> None:
    assert CODES.keys() == set(hostile.ALL)


def test_hostile_pages_when_crawled_then_each_has_the_code_of_its_fault(crawled: Crawled) -> None:
    codes = crawled.project.codes()

    assert {name: codes[f"{hostile.HOST}/{name}.html"] for name in CODES} == CODES


def test_hosts_when_they_cannot_be_reached_then_each_row_says_why(crawled: Crawled) -> None:
    rows = crawled.project.rows()

    codes = {"no-such-name.invalid/": 907, "refused.acme.test/": 906, "127.0.0.2/": 907}
    assert {url: rows[url]["code"] for url in codes} == codes
    assert rows[f"{hostile.HOST}/redirect-private.html"]["code"] == 907
    assert "fetch.private_networks" in rows["127.0.0.2/"]["error"]


def test_failures_when_written_down_then_each_is_one_line_that_ends_in_the_url(crawled: Crawled) -> None:
    failed = [row for row in crawled.project.rows().values() if row["error"]]

    assert len(failed) >= 20
    assert [row["url"] for row in failed if len(row["error"].splitlines()) != 1] == []
    named = [row for row in failed if "redirect-private" not in row["url"]]
    assert [row["error"] for row in named if not row["error"].endswith(row["url"])] == []


def test_run_when_pages_are_hostile_then_it_finishes_and_other_documents_are_unaffected(crawled: Crawled) -> None:
    status, indexed = crawled.ended.status, set(crawled.project.indexed())

    assert (crawled.ended.exit_code, status["run"]["end_reason"]) == (0, "finished")
    good = {f"{hostile.HOST}/{name}.html" for name, code in CODES.items() if code == 200}
    assert good | {f"{hostile.HOST}/", "docs.acme.test/chain/1.html", "docs.acme.test/chain/2.html"} == indexed
    assert {row["fetch_state"] for row in crawled.project.rows().values()} == {2}


def test_nested_page_when_two_hundred_thousand_deep_then_its_text_is_there(crawled: Crawled) -> None:
    assert f"{hostile.HOST}/nested.html" in crawled.project.found("deepout")


def test_links_when_a_page_has_a_hundred_thousand_then_all_are_admitted(crawled: Crawled) -> None:
    many = [row for url, row in crawled.project.rows().items() if "/many/" in url]

    assert len(many) == MANY_LINKS
    assert {(row["code"], row["rule"]) for row in many} == {(955, "scope.depth: depth = 1")}


def test_reactor_when_pages_are_hostile_then_it_never_stands_still_for_a_second(crawled: Crawled) -> None:
    assert crawled.probe["longest_stall_seconds"] < 1


def test_memory_when_pages_are_hostile_then_it_is_bounded(crawled: Crawled) -> None:
    assert crawled.probe["peak_megabytes"] < 700


@pytest.mark.parametrize(
    ("overrides", "line"),
    [
        ({"scope": {"depth": -1}}, "sources/demo.toml: scope.depth: must not be negative (got -1)"),
        ({"scope": {"depht": 1}}, "sources/demo.toml: scope.depht: unknown key (did you mean depth?)"),
        (
            {"scope": {"include_hosts": None}},
            "sources/demo.toml: scope.include_hosts: nothing is included: name hosts or URLs, or set scope.allow_all = true",
        ),
        ({"start": {"urls": 7}}, "sources/demo.toml: start.urls: must be a list (got 7)"),
        ({"agent": {"url": "x"}}, "sources/demo.toml: agent: not available yet"),
        (
            {"login": {"type": "basic", "username": "me"}},
            'sources/demo.toml: login.password: is required with type = "basic"',
        ),
        (
            {"project": {"index": {"type": "sorl"}}},
            'searchcrawl.toml: index.type: must be "local" or "solr" (got "sorl")',
        ),
        ({"project": {"contact": None}}, "searchcrawl.toml: contact: is required"),
        ({"start": {"urls": None}}, "sources/demo.toml: start.urls: is required, or start.files"),
        (
            {"project": {"defaults": {"fetch": {"headers": {"X-Key": {"env": "NOT_SET_ANYWHERE"}}}}}},
            "searchcrawl.toml: defaults.fetch.headers.X-Key: the environment variable NOT_SET_ANYWHERE is not set",
        ),
        (
            {"project": {"parameters": {"shared": {}}}, "parameters": "sharde"},
            'sources/demo.toml: parameters: no such set in searchcrawl.toml (did you mean shared?) (got "sharde")',
        ),
        (
            {"attributes": {"drop": ["Title"]}},
            'sources/demo.toml: attributes.drop: title is an attribute of every document and cannot be removed (got ["Title"])',
        ),
        (
            {"rewrite": [{"plugin": "nothing:Here"}]},
            "sources/demo.toml: rewrite[0].plugin: cannot be imported: ModuleNotFoundError: No module named 'nothing' (got \"nothing:Here\")",
        ),
    ],
)
def test_crawl_when_configuration_is_wrong_then_exit_4_one_line_and_no_request(
    site: SiteProcess, tmp_path: Path, overrides: dict[str, Any], line: str
) -> None:
    project = new_project(tmp_path, site, **overrides)
    before = len(site.log())

    ended = project.crawl()

    assert (ended.exit_code, ended.status) == (4, {})
    assert ended.errors == line + "\n"
    assert len(site.log()) == before
    assert not (tmp_path / "var" / "searchcrawl.db").exists()


def test_crawl_when_the_source_is_unknown_then_exit_2_and_no_request(site: SiteProcess, tmp_path: Path) -> None:
    project = new_project(tmp_path, site, name="other")
    before = len(site.log())

    ended = project.command("crawl", "demo")

    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.splitlines()[-1] == "searchcrawl: unknown source: demo"
    assert len(site.log()) == before
