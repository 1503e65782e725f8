"""Pages whose bytes stay the same while headers change that say how to read them (D2, C9)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import page, run, source
from tests.site.client import SiteProcess

HOST: Final = "told.acme.test"
BYTES: Final = "<html><title>Menu</title><body><p>café moules frites, {}</p></body></html>"


def seen(project: CrawlProject) -> dict[str, tuple[bool, object, object]]:
    """By page: whether its text is found as it is, its language and its type."""
    found = set(project.found("café"))
    return {
        url.rpartition("/")[2]: (url in found, hit.fields.get("language"), hit.fields["mimetype"])
        for hit in project.hits("moules")
        for url in [f"{HOST}/{hit.fields['url'].rpartition('/')[2]}"]
    }


def test_pages_when_only_headers_that_say_how_to_read_them_change_then_they_are_read_again_once(tmp_path: Path) -> None:
    with SiteProcess() as site:
        names = ("charset", "language", "type")
        site.set_page(HOST, "/", page("start", *(f"/{name}" for name in names)))
        for name in names:
            # UTF-8 would be read as what it is, whatever the header says.
            encoding, said = ("latin-1", "windows-1251") if name == "charset" else ("utf-8", "utf-8")
            kind, body = f"text/html; charset={said}", BYTES.format(name).encode(encoding)
            site.set_page(HOST, f"/{name}", body, content_type=kind, etag=None, last_modified=None)
        project = new_project(tmp_path, site, **source(site, HOST))
        run(project)
        before = seen(project)
        site.set_page(HOST, "/charset", content_type="text/html; charset=iso-8859-1")
        site.set_page(HOST, "/language", headers={"Content-Language": "ca"})
        site.set_page(HOST, "/type", content_type="text/plain; charset=utf-8")
        second = run(project)
        after = seen(project)
        third = run(project)

    assert [before[name][0] for name in names] == [False, True, True]
    assert [after[name][0] for name in names] == [True, True, True]
    assert (before["language"][1] != "ca", after["language"][1]) == (True, "ca")
    assert (before["type"][2], after["type"][2]) == ("text/html", "text/plain")
    assert (second.counts["changed"], third.counts["changed"]) == (3, 0)
