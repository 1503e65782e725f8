"""D2: a body whose type nothing reads (908) is not fetched whole, and asked for with conditions, at growing gaps."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import Run, page, run, source
from tests.crawl_forks import CLOCK
from tests.site.client import LogEntry, SiteProcess
from tests.threaded_site import QuietHandler, ThreadedSite

HOST: Final = "unread.acme.test"
DAY: Final = 86_400
LARGE: Final = 300_000
#: Less than ``fetch.max_bytes``.
FILM: Final = 30_000_000
PICTURES: Final = """
from searchcrawl.plugins import Converted

class Pictures:
    def convert(self, body, *, url, mimetype):
        return Converted(text=f"a picture of {len(body)} bytes", title=url)
"""
FILES: Final = ("tagged.png", "bare.png", "large.png", "style.css", "changing.png")


def picture(size: int = 500) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + bytes(size)


def build(site: SiteProcess, folder: Path, **tables: Any) -> CrawlProject:
    site.set_page(HOST, "/", page("start", *(f"/{name}" for name in FILES)))
    for name, size in (("tagged", 500), ("bare", 600), ("large", LARGE), ("changing", 700)):
        bare = {"etag": None, "last_modified": None} if name in {"bare", "changing"} else {}
        site.set_page(HOST, f"/{name}.png", picture(size), content_type="image/png", **bare)
    site.set_page(HOST, "/style.css", "p {}", content_type="text/css")
    return new_project(folder, site, **source(site, HOST), **tables)


def asked(each: Run) -> dict[str, LogEntry]:
    """The requests for files of a run, by name."""
    return {entry["path"][1:]: entry for entry in each.log if entry["path"][1:] in FILES}


def test_bodies_when_nothing_reads_them_then_they_are_asked_for_with_conditions_at_growing_gaps(tmp_path: Path) -> None:
    days = (0, 0.01, 0.02, 1.1, 2.1, 3.2, 7.3)
    with SiteProcess() as site:
        project = build(site, tmp_path)
        runs = []
        for number, day in enumerate(days):
            site.set_page(HOST, "/changing.png", picture(700 + number), content_type="image/png")
            runs.append(run(project, **{CLOCK: str(round(day * DAY))}))
        said = project.ask("explain", site.url(HOST, "/tagged.png"), **{CLOCK: str(8 * DAY)})

    requests = [asked(each) for each in runs]
    # After a second visit that found the same: for one day, two, four.
    assert ["tagged.png" in each for each in requests] == [True, True, False, True, False, True, True]
    assert all({f"{HOST}/{name}": 908 for name in FILES}.items() <= each.codes.items() for each in runs)
    assert {name: requests[1][name]["status"] for name in FILES} == {
        "tagged.png": 304,
        "bare.png": 200,
        "large.png": 304,
        "style.css": 304,
        "changing.png": 200,
    }
    assert all("changing.png" in each for each in requests)
    assert all("bare.png" in each for each in (requests[0], requests[1], requests[3]))
    assert "bare.png" not in requests[2]
    assert said["verdict"] == "not in the index: 908, nothing reads files of its type"
    visit = next(step["detail"] for step in said["steps"] if step["step"] == "visit")
    assert "nothing reads its type: asked with its validators, found the same 5 times" in visit
    answer = next(step["detail"] for step in said["steps"] if step["step"] == "answer")
    assert "no converter for image/png" in answer


class Film(QuietHandler):
    """Sends a film, and notes how much of it was taken."""

    taken: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        if not self.path.endswith(".mp4"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "video/mp4")
        self.send_header("Content-Length", str(FILM))
        self.end_headers()
        self.taken.append(0)
        with contextlib.suppress(ConnectionError):
            while self.taken[-1] < FILM:
                self.wfile.write(b"\0\0\0\x20ftypisom" * 10_000)
                self.taken[-1] += 120_000


def test_body_when_nothing_reads_it_then_no_more_than_its_beginning_is_fetched(tmp_path: Path) -> None:
    with SiteProcess() as site, ThreadedSite(Film) as films:
        site.set_page(HOST, "/", page("start", f"http://{HOST}:{films.port}/film.mp4"))
        seen = run(new_project(tmp_path, site, **source(site, HOST)))

    assert seen.ended.counts["fetch_failures"] == 1
    assert 908 in seen.codes.values()
    # What the buffers of both ends take is not ours.
    assert [taken < FILM // 2 for taken in Film.taken] == [True]


def test_body_when_a_rule_asks_for_its_size_then_it_is_fetched_whole(tmp_path: Path) -> None:
    with SiteProcess() as site:
        seen = run(build(site, tmp_path, keep={"max_bytes": LARGE - 10}))

    assert seen.codes[f"{HOST}/large.png"] == 952
    assert asked(seen)["large.png"]["bytes"] > LARGE


def test_bodies_when_the_rules_are_edited_then_they_are_asked_for_at_once_and_whole(tmp_path: Path) -> None:
    with SiteProcess() as site:
        project = build(site, tmp_path)
        for _ in range(3):
            waiting = run(project)
        edited = run(project, "--set", "keep.exclude_mime_types=['image/*']")

    assert not asked(waiting)
    assert set(asked(edited)) == set(FILES)
    assert asked(edited)["tagged.png"]["status"] == 200
    assert edited.codes[f"{HOST}/tagged.png"] == 952


def test_url_when_its_picture_becomes_a_page_then_the_next_visit_reads_it(tmp_path: Path) -> None:
    with SiteProcess() as site:
        project = build(site, tmp_path)
        run(project)
        site.set_page(HOST, "/tagged.png", page("turned"), content_type="text/html")
        turned = run(project)
        site.set_page(HOST, "/tagged.png", picture(), content_type="image/png")
        back = [run(project) for _ in range(4)]

    assert turned.codes[f"{HOST}/tagged.png"] == 200
    assert f"{HOST}/tagged.png" in turned.in_index
    # Its document stays, and it is asked for in each run.
    assert [asked(each)["tagged.png"]["status"] for each in back] == [200, 304, 304, 304]
    assert [each.codes[f"{HOST}/tagged.png"] for each in back] == [908] * 4
    assert all(f"{HOST}/tagged.png" in each.in_index for each in back)


def test_bodies_when_a_converter_for_their_type_is_added_then_they_are_read_at_once(tmp_path: Path) -> None:
    with SiteProcess() as site:
        project = build(site, tmp_path)
        for _ in range(3):
            waiting = run(project)
        (tmp_path / "pictures_of_site.py").write_text(PICTURES, "utf-8")
        config = tmp_path / "searchcrawl.toml"
        added = '[converters]\n"image/png" = "pictures_of_site:Pictures"\n'
        config.write_text(f"{config.read_text('utf-8')}\n{added}", "utf-8")
        read = run(project)

    assert not asked(waiting)
    assert {name: read.codes[f"{HOST}/{name}"] for name in FILES} == {
        name: 908 if name.endswith(".css") else 200 for name in FILES
    }
    assert f"{HOST}/large.png" in read.in_index
