"""Links that are known already are discarded (F1): the site is asked once, and the store not at all."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, run, source
from tests.site.client import SiteProcess

HOST = "links.acme.test"


def test_link_when_three_pages_have_it_then_one_request_and_one_row(tmp_path: Path) -> None:
    with SiteProcess() as site:
        project = new_project(tmp_path, site, **source(site, HOST))
        # Three times on the start page, in as many spellings, and once more on each of two others.
        spellings = ("/known.html", f"http://{HOST.upper()}:{site.port}/./known.html#part", "x/../known.html")
        site.set_page(HOST, "/", page("start", *spellings, "/a.html", "/b.html"))
        site.set_page(HOST, "/a.html", page("alpha", "/known.html", "/b.html", "/"))
        site.set_page(HOST, "/b.html", page("beta", "known.html", "a.html", "/"))
        site.set_page(HOST, "/known.html", page("known", "/known.html"))

        first, second = run(project), run(project)

    for found in (first, second):
        assert [entry["path"] for entry in found.log].count("/known.html") == 1
        assert sorted(found.codes) == [f"{HOST}/", f"{HOST}/a.html", f"{HOST}/b.html", f"{HOST}/known.html"]
    assert first.counts["fetched"] == 4
    assert first.versions.keys() == set(first.codes)
