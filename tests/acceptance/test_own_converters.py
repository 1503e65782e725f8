"""A converter of a user that could read no file is refused before anything is requested (exit 4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, source
from tests.site.client import SiteProcess

HOST: Final = "converters.acme.test"
UNABLE: Final = """
class Notes:
    def __init__(self):
        raise LookupError("no model")

    def convert(self, body, *, url, mimetype): ...
"""
REFUSED: Final = (
    'searchcrawl.toml: converters."application/x-note": cannot be made: LookupError: no model (got "unable:Notes")'
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrawlProject]:
    with SiteProcess() as site:
        site.set_page(HOST, "/", page("start"))
        made = new_project(tmp_path_factory.mktemp("converters"), site, **source(site, HOST))
        (made.folder / "unable.py").write_text(UNABLE, "utf-8")
        config = made.folder / "searchcrawl.toml"
        converters = '[converters]\n"application/x-note" = "unable:Notes"\n'
        config.write_text(f"{config.read_text('utf-8')}\n{converters}", "utf-8")
        yield made


def test_converter_when_it_cannot_be_made_then_a_crawl_requests_nothing(project: CrawlProject) -> None:
    crawled = project.crawl()

    assert crawled.exit_code == 4
    assert REFUSED in crawled.errors
    assert "Traceback" not in crawled.errors
    assert project.site.log() == []


def test_converter_when_it_cannot_be_made_then_the_check_says_so(project: CrawlProject) -> None:
    checked, as_json = project.command("sources", "check"), project.command("sources", "check", "--json")

    assert (checked.returncode, as_json.returncode) == (4, 4)
    assert REFUSED in checked.stderr
    assert [error["file"] for error in json.loads(as_json.stdout)["errors"]] == ["searchcrawl.toml"]
