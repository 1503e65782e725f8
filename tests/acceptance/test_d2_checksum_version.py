"""A release that makes checksums in another way: documents that are as before are not sent again (D2)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, pages, run, source
from tests.site.client import SiteProcess

HOST: Final = "checksums.acme.test"
#: Stands for the code of the later release, which every process of it has from its beginning.
LATER: Final = """
import hashlib, os
from searchcrawl.documents import digests

if "LATER_RELEASE" in os.environ:
    digests._WAYS[2] = lambda page: hashlib.sha256(" ".join(page.text.split()).lower().encode()).digest()

class Pipeline:
    def process_item(self, item):
        return item
"""


def test_pages_when_checksums_are_made_in_a_new_way_then_only_what_changed_is_sent(tmp_path: Path) -> None:
    with SiteProcess() as site:
        pages(site, HOST, a=page("alpha"), b=page("beta"), c=page("gamma"))
        parts = source(site, HOST)
        project = new_project(tmp_path, site, **parts, settings={"ITEM_PIPELINES": {"mine.Pipeline": 150}})
        (tmp_path / "mine.py").write_text(LATER, "utf-8")
        first = run(project)
        site.set_page(HOST, "/b.html", page("beta", text="other words"))
        assert project.command("recrawl", "demo", "--all").returncode == 0
        second = run(project, LATER_RELEASE="1")
        # In the new way this is no change; in the old one it was.
        site.set_page(HOST, "/b.html", page("beta", text="OTHER words"), last_modified=None)
        site.set_page(HOST, "/c.html", page("gamma", text="GAMMA"), last_modified=None)
        third = run(project, LATER_RELEASE="1")
        verified = project.command("verify", "demo")

    assert second.bodies == 4
    assert {url for url in first.versions if first.versions[url] != second.versions[url]} == {f"{HOST}/b.html"}
    assert (second.counts["changed"], second.counts["unchanged"]) == (1, 3)
    assert {url for url in first.versions if second.versions[url] != third.versions[url]} == {f"{HOST}/c.html"}
    assert verified.returncode == 0, verified.stdout + verified.stderr
