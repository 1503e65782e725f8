"""The test site itself: what tests and the demo rely on."""

from __future__ import annotations

import gzip
import http.client
import socket
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdfium2
import pytest

from tests.site import expected, hostile
from tests.site.client import ADDRESS, SiteProcess, source_toml, write_project

WWW = "www.acme.test"


@pytest.fixture(scope="module")
def running() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        yield site


@pytest.fixture
def site(running: SiteProcess) -> SiteProcess:
    running.reset()
    running.clear_log()
    return running


class Answer:
    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


def get(site: SiteProcess, path: str = "/", host: str = WWW, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection(ADDRESS, site.port, timeout=10)
    try:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers={"Host": f"{host}:{site.port}", **names})
        response = connection.getresponse()
        return Answer(response.status, dict(response.headers), response.read())
    finally:
        connection.close()


def listed(site: SiteProcess) -> dict[str, dict[str, Any]]:
    return {page["host"] + page["path"]: page for page in site.pages()}


def test_page_when_its_etag_is_sent_back_then_304_without_body(site: SiteProcess) -> None:
    first = get(site)

    second = get(site, If_None_Match=f'"other", {first.headers["ETag"]}')

    assert (first.status, second.status, second.body) == (200, 304, b"")
    assert second.headers["ETag"] == first.headers["ETag"]


def test_page_when_its_date_is_sent_back_then_304(site: SiteProcess) -> None:
    first = get(site)

    assert get(site, If_Modified_Since=first.headers["Last-Modified"]).status == 304
    assert get(site, If_Modified_Since="Mon, 01 Jan 2001 00:00:00 GMT").status == 200


def test_page_when_both_validators_disagree_then_the_etag_decides(site: SiteProcess) -> None:
    first = get(site)

    answer = get(site, If_None_Match='"old"', If_Modified_Since=first.headers["Last-Modified"])

    assert answer.status == 200


def test_validators_when_switched_off_then_none_are_sent_and_304_never(site: SiteProcess) -> None:
    tag = get(site).headers["ETag"]
    site.set_page(WWW, "/", etag=None, last_modified=None)

    answer = get(site, If_None_Match=tag)

    assert answer.status == 200
    assert {"ETag", "Last-Modified"}.isdisjoint(answer.headers)


def test_page_when_set_again_then_body_and_both_validators_differ(site: SiteProcess) -> None:
    site.set_page(WWW, "/new.html", "<p>one</p>")
    one = get(site, "/new.html")
    site.set_page(WWW, "/new.html", "<p>two</p>")

    two = get(site, "/new.html", If_None_Match=one.headers["ETag"])

    assert (one.body, two.body) == (b"<p>one</p>", b"<p>two</p>")
    assert one.headers["ETag"] != two.headers["ETag"]
    assert one.headers["Last-Modified"] < two.headers["Last-Modified"]


def test_page_when_deleted_and_set_again_then_it_is_served(site: SiteProcess) -> None:
    site.delete_page(WWW, "/about/")
    gone = get(site, "/about/").status
    site.set_page(WWW, "/about/", "<p>back</p>")

    assert (gone, get(site, "/about/").status) == (404, 200)


def test_head_when_asked_then_headers_only(site: SiteProcess) -> None:
    answer = get(site, method="HEAD")

    assert int(answer.headers["Content-Length"]) == len(get(site).body)
    assert answer.body == b""


def test_stage_changed_when_applied_then_pages_go_come_and_change(site: SiteProcess) -> None:
    before = listed(site)
    site.stage("changed")

    after = listed(site)

    differing = {url for url in after if after[url] != before.get(url)}
    assert differing == {
        "www.acme.test/handbook/glossary.html",
        "www.acme.test/products/",
        "www.acme.test/products/anemometer.html",
        "www.acme.test/products/evaporimeter.html",
        "www.acme.test/products/hygrometer.html",
        "www.acme.test/products/prices.html",
    }
    assert after["www.acme.test/products/anemometer.html"]["status"] == 404
    assert after["www.acme.test/products/hygrometer.html"]["status"] == 410
    assert b"evaporimeter.html" in get(site, "/products/").body


def test_stage_when_unknown_then_refused(site: SiteProcess) -> None:
    with pytest.raises(ValueError, match="elsewhen"):
        site.stage("elsewhen")


def test_restart_when_pages_were_changed_then_same_port_and_pages(tmp_path: Path) -> None:
    with SiteProcess(tmp_path) as site:
        port = site.port
        site.stage("changed")
        site.set_page(WWW, "/about/", "<p>other</p>")
        site.stop()

        site.start()

        assert site.port == port
        assert get(site, "/products/hygrometer.html").status == 410
        assert get(site, "/about/").body == b"<p>other</p>"


def test_log_when_a_page_is_asked_for_then_it_says_what_and_how(site: SiteProcess) -> None:
    tag = get(site, "/about/?from=home", User_Agent="probe/1").headers["ETag"]
    get(site, "/about/", If_None_Match=tag, User_Agent="probe/2")

    first, second = site.log()

    assert (first["host"], first["path"], first["query"], first["status"]) == (WWW, "/about/", "from=home", 200)
    assert first["headers"]["user-agent"] == "probe/1"
    assert (second["headers"]["if-none-match"], second["status"]) == (tag, 304)
    assert first["bytes"] > second["bytes"] > 0
    assert site.requested() == [f"{WWW}/about/?from=home", f"{WWW}/about/"]


def test_down_when_set_then_connections_are_refused_until_up(site: SiteProcess) -> None:
    site.down()
    with pytest.raises(ConnectionRefusedError):
        get(site)
    site.up()

    assert get(site).status == 200


def test_behaviour_of_a_path_when_set_then_that_path_alone_answers_so(site: SiteProcess) -> None:
    site.set_behaviour(WWW, "/robots.txt", status=500)

    assert get(site, "/robots.txt").status == 500
    assert get(site).status == 200
    assert get(site, "/robots.txt", host="docs.acme.test").status == 404


def test_behaviour_of_all_when_set_then_every_page_but_robots(site: SiteProcess) -> None:
    site.set_behaviour(status=503, headers={"Retry-After": "7"})

    answer = get(site, "/handbook/")

    assert (answer.status, answer.headers["Retry-After"]) == (503, "7")
    assert get(site, "/robots.txt").status == 200


def test_behaviour_when_limited_then_it_ends(site: SiteProcess) -> None:
    site.set_behaviour(WWW, "/", status=503, times=2)

    assert [get(site).status for _ in range(3)] == [503, 503, 200]


def test_behaviour_when_a_reset_then_no_answer_but_a_log_entry(site: SiteProcess) -> None:
    site.set_behaviour(WWW, prefix="/news/", mode="reset")

    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        get(site, "/news/")
    assert [(entry["path"], entry["status"], entry["bytes"]) for entry in site.log()] == [("/news/", None, 0)]


def test_duplicates_when_fetched_then_same_bytes_on_two_hosts(site: SiteProcess) -> None:
    original = get(site, "/downloads/terms.html").body

    assert get(site, "/downloads/terms-copy.html").body == original
    assert get(site, "/terms.html", host="mirror.acme.test").body == original
    safety = get(site, "/handbook/safety.html")
    assert get(site, "/handbook/safety.html", host="mirror.acme.test").body == safety.body


def test_pdf_when_read_then_its_text_is_there_and_its_link_inside(site: SiteProcess) -> None:
    body = get(site, "/manuals/barometer.pdf", host="docs.acme.test").body

    document = pypdfium2.PdfDocument(body)
    try:
        text = document[0].get_textpage().get_text_range()
    finally:
        document.close()
    assert "meant to outlive you" in text
    assert b"/only-in-pdf.html" in body


@pytest.mark.parametrize(
    ("path", "charset", "declared"),
    [("/", "utf-8", True), ("/history.html", "euc_jp", True), ("/products.html", "shift_jis", False)],
)
def test_japanese_page_when_fetched_then_in_its_charset(
    site: SiteProcess, path: str, charset: str, declared: bool
) -> None:
    body = get(site, path, host="jp.acme.test").body

    text = body.decode(charset)
    assert "気圧計" in text or "雨量計" in text
    assert ("charset" in text) is declared


def test_large_page_when_fetched_then_over_1200000_bytes(site: SiteProcess) -> None:
    body = get(site, "/downloads/full-catalogue.html").body

    assert len(body) >= 1_200_000
    assert b"after-catalogue.html" in body[-300:]


def test_packed_page_when_fetched_then_gzip_of_html(site: SiteProcess) -> None:
    answer = get(site, "/downloads/parts-packed.html")

    assert answer.headers["Content-Encoding"] == "gzip"
    assert b"Short list of parts" in gzip.decompress(answer.body)


def test_generated_site_when_followed_then_has_exactly_its_pages(site: SiteProcess) -> None:
    todo, seen = ["./"], {"./"}
    while todo:
        body = get(site, f"/n/30/{todo.pop().removeprefix('./')}", host="gen.acme.test").body.decode()
        found = {part.split('"', 1)[0] for part in body.split('<a href="')[1:]} - seen
        seen |= found
        todo += found

    assert seen == {"./", *(f"{number}.html" for number in range(1, 30))}
    assert get(site, "/n/30/30.html", host="gen.acme.test").status == 404


def test_generated_page_when_asked_twice_then_the_same(site: SiteProcess) -> None:
    first = get(site, "/n/9,kb=4,links=3/2.html", host="gen.acme.test").body

    assert get(site, "/n/9,kb=4,links=3/2.html", host="gen.acme.test").body == first
    assert get(site, "/n/9,kb=4,links=3/2.html", host="gen2.acme.test").body != first


def test_fault_cut_when_read_then_the_body_is_short(site: SiteProcess) -> None:
    with pytest.raises(http.client.IncompleteRead):
        get(site, "/cut.html", host=hostile.HOST)


@pytest.mark.parametrize("name", ["gzip-truncated", "gzip-crc", "gzip-garbage"])
def test_fault_gzip_when_unpacked_then_error(site: SiteProcess, name: str) -> None:
    body = get(site, f"/{name}.html", host=hostile.HOST).body

    with pytest.raises((EOFError, gzip.BadGzipFile)):
        gzip.decompress(body)


def test_fault_huge_when_read_then_30_megabytes(site: SiteProcess) -> None:
    assert len(get(site, "/huge.html", host=hostile.HOST).body) > 30 * 1024 * 1024


@pytest.mark.parametrize(("name", "part", "times"), [("links", b"<a href=", 100_000), ("nested", b"<div>", 200_000)])
def test_fault_of_many_when_read_then_all_are_there(site: SiteProcess, name: str, part: bytes, times: int) -> None:
    assert get(site, f"/{name}.html", host=hostile.HOST).body.count(part) == times


@pytest.mark.parametrize("name", hostile.ENDLESS)
def test_fault_endless_when_the_client_leaves_then_the_site_serves_on(site: SiteProcess, name: str) -> None:
    with socket.create_connection((ADDRESS, site.port), timeout=5) as connection:
        connection.sendall(f"GET /{name}.html HTTP/1.1\r\nHost: {hostile.HOST}\r\n\r\n".encode())
        if name != "hang":
            assert connection.recv(64)

    assert get(site).status == 200
    assert [entry["path"] for entry in site.log()] == [f"/{name}.html", "/"]


@pytest.mark.parametrize("changed", [False, True])
def test_expected_codes_when_of_http_then_the_site_answers_them(site: SiteProcess, changed: bool) -> None:
    if changed:
        site.stage("changed")
    served = {url: page["status"] for url, page in listed(site).items()}

    wanted = {url: code for url, code in expected.codes(changed=changed).items() if "/redirects/" not in url}

    missing = {url for url in wanted if url not in served}
    assert missing == {url for url in wanted if wanted[url] == 404 and url not in served} | {
        "www.acme.test/%74mp/scratch2.html"
    }
    assert all(served[url] == code for url, code in wanted.items() if code < 600 and url in served)


def test_source_toml_when_overridden_then_tables_are_merged() -> None:
    source = tomllib.loads(source_toml(4711, title="T", scope={"depth": 2}, fetch={"resolve": None}))

    assert source["title"] == "T"
    assert source["start"] == {"urls": ["http://www.acme.test:4711/"]}
    assert source["scope"] == {"include_hosts": ["acme.test"], "depth": 2}
    assert source["fetch"] == {"delay_seconds": 0, "private_networks": ["127.0.0.1/32"]}


def test_project_when_written_then_its_files_are_complete(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "p", 4711, "acme", project={"cache": {"threshold_mb": 1}})

    project = tomllib.loads((folder / "searchcrawl.toml").read_text("utf-8"))
    assert project == {"contact": "webmaster@acme.test", "cache": {"threshold_mb": 1}}
    assert (folder / "sources" / "acme.toml").exists()
    assert "searchcrawl.settings" in (folder / "scrapy.cfg").read_text("utf-8")


def test_demo_source_when_read_then_it_is_the_fixed_port_of_make_site() -> None:
    demo = tomllib.loads((Path(__file__).parents[2] / "sources" / "demo.toml").read_text("utf-8"))

    assert demo["start"]["urls"] == ["http://www.acme.test:8765/"]
