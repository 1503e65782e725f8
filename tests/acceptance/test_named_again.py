"""An orphan that is named again in the run whose edit has it visited is back at the end of that run (D6, L3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, run, source
from tests.site.client import SiteProcess

HOST: Final = "named.acme.test"
LONG: Final = f"/{'kelp' * 15}.html"


def settings(site: SiteProcess, **scope: Any) -> dict[str, Any]:
    wanted = source(site, HOST)
    return {**wanted, "scope": {**wanted["scope"], **scope}, "lifecycle": {"orphans": "delete"}}


def test_orphan_when_named_while_an_edit_has_it_visited_then_it_is_back_at_the_end_of_the_run(
    site: SiteProcess, tmp_path: Path
) -> None:
    site.set_page(HOST, "/", page("start", "/hub.html", LONG))
    site.set_page(HOST, "/hub.html", page("hub", "/other.html"))
    site.set_page(HOST, "/other.html", page("other"))
    site.set_page(HOST, LONG, page("long"))
    project = new_project(tmp_path, site, **settings(site))
    run(project)
    # It is refused, and kept by an operator: then nothing names it any more.
    project.edit(**settings(site, max_url_length=60))
    refused = run(project)
    project.ask("undelete", project.last_run())
    site.set_page(HOST, "/", page("start", "/hub.html"))
    orphaned = run(project)
    site.set_page(HOST, "/", page("start", "/hub.html", LONG))
    project.edit(**settings(site))
    named = run(project)
    quiet = run(project)

    assert (refused.codes[HOST + LONG], HOST + LONG in refused.in_index) == (1004, False)
    assert HOST + LONG not in orphaned.in_index
    assert (named.codes[HOST + LONG], HOST + LONG in named.in_index) == (200, True)
    assert quiet.versions == named.versions
