"""A page that comes back from quarantine has in the index what was found of it meanwhile (B7, L3)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, run, source
from tests.site.client import SiteProcess

HOST: Final = "away.acme.test"
#: More than may be removed without a question.
NAMES: Final = tuple(f"/p{number:02}.html" for number in range(14))


def depths(project: CrawlProject) -> dict[str, int]:
    """The depth that the index has of each page of ours."""
    found = {hit.fields["url"].rpartition("/")[2]: hit.fields["depth"] for hit in project.hits("*")}
    return {name: found[name[1:]] for name in NAMES}


def test_depth_when_it_becomes_smaller_in_quarantine_then_the_index_has_it_once_the_page_is_back(
    tmp_path: Path,
) -> None:
    nearer = NAMES[0]
    with SiteProcess() as site:
        site.set_page(HOST, "/", page("start", "/hub.html"))
        site.set_page(HOST, "/hub.html", page("hub", *NAMES))
        for name in NAMES:
            site.set_page(HOST, name, page(f"text of {name}"))
        project = new_project(tmp_path, site, **source(site, HOST))
        first = run(project)
        for name in NAMES:
            site.delete_page(HOST, name)
        run(project)
        site.set_page(HOST, "/", page("start", "/hub.html", nearer))
        held = run(project)
        for name in NAMES:
            site.set_page(HOST, name, page(f"text of {name}"))
        back = run(project)
        found = depths(project)

    assert held.ended.exit_code == 9
    assert found == {name: 1 if name == nearer else 2 for name in NAMES}
    # Of these only what differs is sent.
    assert {name for name in NAMES if first.versions[HOST + name] != back.versions[HOST + name]} == {nearer}
