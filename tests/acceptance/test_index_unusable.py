"""An index that is none any more, while nothing has to be sent to it: run and status say so all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess
from tests.solr_server import free_port

HOST: Final = "unusable.acme.test"


def damage(project: CrawlProject) -> str:
    next((project.folder / "var" / "index").glob("*.store")).unlink()
    return "index.path"


def name_no_index(project: CrawlProject) -> str:
    """Names an address at which a web site is, and no Solr."""
    url = f"http://127.0.0.1:{project.site.port}/solr/search"
    with (project.folder / "searchcrawl.toml").open("a") as file:
        file.write(f'\n[index]\ntype = "solr"\nurl = "{url}"\n')
    return "index.url"


def name_nothing(project: CrawlProject) -> str:
    """Names an address at which nothing answers: it may do so again soon."""
    with (project.folder / "searchcrawl.toml").open("a") as file:
        file.write(f'\n[index]\ntype = "solr"\nurl = "http://127.0.0.1:{free_port()}/solr/search"\n')
    return ""


def warned(status: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each["code"], each["message"]) for each in status["warnings"]]


@pytest.mark.parametrize("happens", [damage, name_no_index, name_nothing])
def test_run_when_it_has_nothing_to_send_and_the_index_is_none_then_it_and_status_warn(
    tmp_path: Path, happens: Callable[[CrawlProject], str]
) -> None:
    with SiteProcess() as site:
        pages(site, HOST, a=page("first"))
        project = new_project(tmp_path / "project", site, **source(site, HOST))
        before = project.crawl()

        key = happens(project)
        after = project.crawl()
        status = project.ask("status", project.name)

    assert warned(before.status) == []
    assert after.exit_code == 0
    assert warned(after.status) == warned(status)
    assert [code for code, _ in warned(status)] == ["index_unusable"] * bool(key)
    assert all(key in message for _, message in warned(status))
