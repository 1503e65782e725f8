"""What pages, servers and users write steers neither a terminal nor a log, and stays what it is (X-O4)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from searchcrawl.terminal import to_lines
from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess

HOST: Final = "steering.acme.test"
#: CSI in its C1 and C0 forms, the title of a window, a bell, an override and an isolate of direction, a tag.
STEERING: Final = "\x9b31m\x1b[2J\x9d0;title\x9c\x07\x7f\x85\u202egpj\u2066\u2028\ufeff\U000e0041"
PLAIN: Final = "می\u200cخواهم क्\u200dष שלום\u200f 👩\u200d👩\u200d👧 🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f 蜘蛛"
#: The characters that a terminal obeys, written apart from the code that escapes them.
OBEYED: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
URL: Final = f"http://{HOST}/"


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        head = "".join(
            f'<meta name="{name}" content="{name} {STEERING} {PLAIN}">' for name in ("description", "author", "mine")
        )
        body = page(f"barometer {STEERING} {PLAIN}", f"/gone{STEERING}.html", "/to.html", "/loud.html", head=head)
        pages(site, HOST, one=body.replace("<title>", f"<title>{STEERING} {PLAIN} "))
        site.set_page(HOST, "/to.html", b"", status=302, headers={"Location": "/away\x9b31m\x1b[2J"})
        site.set_page(HOST, "/loud.html", b"", status=599, headers={"ETag": '"\x9b"', "Content-Type": "x\x9b/\x1b[2J"})
        site.set_page(
            HOST, "/robots.txt", f"User-agent: *\nDisallow: /no{STEERING}\n".encode(), content_type="text/plain"
        )
        keys: dict[str, Any] = source(site, HOST, retries=0)
        attributes = {"meta:mine": "mine", "types": {"mine": "string"}}
        project = new_project(
            tmp_path_factory.mktemp("steering"),
            site,
            project={"logs": {"level": "DEBUG"}},
            title=f"title {STEERING[:-1]}",
            attributes=attributes,
            **keys,
        )
        ended = project.crawl("-L", "DEBUG", "--logfile", str(project.folder / "copy.log"))
        assert ended.exit_code == 0, ended.errors
        yield project


def assert_harmless(text: str) -> None:
    assert OBEYED.search(text) is None, repr(text)
    assert to_lines(text) == text


COMMANDS: Final = [
    ("search", "barometer", "--facet", "mine"),
    ("search", f"barometer{STEERING}"),
    ("search", "barometer", "--sort", f"a{STEERING}"),
    ("status", "demo"),
    ("status",),
    ("urls", "demo"),
    ("urls", f"demo{STEERING}"),
    ("verify", "demo"),
    ("explain", f"{URL}no{STEERING}"),
    ("explain", f"{STEERING}"),
    ("test", f"{URL}one.html", "--source", "demo"),
    ("sources", "show", "demo"),
    ("sources", "check"),
    ("sources", f"check{STEERING}"),
    ("crawl", f"demo{STEERING}"),
    ("status", f"--no{STEERING}"),
    (f"no{STEERING}",),
]


@pytest.mark.parametrize("option", [(), ("--json",)], ids=["text", "json"])
def test_command_when_texts_steer_then_neither_output_nor_errors_do(
    crawled: CrawlProject, option: tuple[str, ...]
) -> None:
    for command in COMMANDS:
        done = crawled.command(*command, *option)

        assert "Traceback" not in done.stderr, command
        assert done.stdout or done.stderr, command
        assert_harmless(done.stdout)
        assert_harmless(done.stderr)


def test_search_when_texts_are_legitimate_then_they_are_printed_as_they_are(crawled: CrawlProject) -> None:
    shown = crawled.command("search", "barometer").stdout
    (hit,) = json.loads(crawled.command("search", "barometer", "--json").stdout)["hits"]

    assert PLAIN in shown
    assert PLAIN in hit["title"]
    assert PLAIN in crawled.command("search", "barometer", "--json").stdout
    # JSON tells what the page says, to programs: not more than its form is changed.
    assert "\x9b31m" in hit["description"]


def test_log_when_texts_steer_then_it_does_not(crawled: CrawlProject) -> None:
    for text in (crawled.log(), (crawled.folder / "copy.log").read_text("utf-8")):
        assert text
        assert_harmless(text)
