"""D2, L5: when pages are visited again: those that change more often, sooner by a date; bodies that nothing reads at growing gaps."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.acceptance.support_project import CrawlProject, new_project
from tests.acceptance.support_stories import Run, page, pages, run, source
from tests.crawl_forks import CLOCK
from tests.site.client import LogEntry, SiteProcess
from tests.stored_rows import query_columns
from tests.threaded_site import QuietHandler, ThreadedSite

HOST: Final = "week.acme.test"
#: A run each day, some seconds earlier than the day before.
STEP_SECONDS: Final = 86_400 - 20
DATED_DAY: Final = 2
KEYS: Final = {"recrawl_every_hours": 24, "recrawl_min_hours": 12, "recrawl_max_hours": 48}


def sitemap(site: SiteProcess, date: datetime) -> None:
    entry = f"<url><loc>{site.url(HOST, '/dated.html')}</loc><lastmod>{date:%Y-%m-%dT%H:%M:%SZ}</lastmod></url>"
    site.set_page(HOST, "/sitemap.xml", f"<urlset>{entry}</urlset>", content_type="application/xml")


def test_pages_when_crawled_each_day_then_those_that_change_are_visited_each_time_and_all_others_less_often(
    tmp_path: Path,
) -> None:
    with SiteProcess() as site:
        pages(site, HOST, busy=page("busy"), still=page("still"), dated=page("dated"))
        sitemap(site, datetime(2001, 1, 1, tzinfo=UTC))
        project = new_project(tmp_path, site, **source(site, HOST), lifecycle=KEYS)
        visits = []
        for day in range(6):
            site.set_page(HOST, "/busy.html", page("busy", text=f"news of day {day}"))
            if day == DATED_DAY:
                sitemap(site, datetime.now(UTC) + timedelta(seconds=day * STEP_SECONDS - 3600))
            visits.append(run(project, **{CLOCK: str(day * STEP_SECONDS)}))
        urls = [site.url(HOST, f"/{name}.html") for name in ("still", "busy", "dated")]
        still, busy, dated = (project.step("visit", url, **{CLOCK: str(5 * STEP_SECONDS)}) for url in urls)

    names = [{url.rpartition("/")[2].removesuffix(".html") for url in each.requested} for each in visits]
    everything = {"", "busy", "still", "dated"}
    # From the second visit on unchanged pages wait for a day and a half, then for two days, which is the most.
    assert names == [
        everything,
        everything,
        {"busy", "dated"},
        {"busy", "", "still"},
        {"busy", "dated"},
        {"busy", "", "still"},
    ]
    assert "its interval is 48 hours" in still
    assert "recrawl_min_hours = 12 and recrawl_max_hours = 48" in still
    assert "its interval is 12 hours" in busy
    assert "sooner if its sitemap, if its dates proved true, gives one after" in dated
    # The date of 2001 was right twice, the later one wrong: the page was as before.
    asked = "SELECT said_changed, changed_as_said, said_same, changed_unsaid FROM sitemaps"
    assert [tuple(row.values()) for row in query_columns(project.folder, asked)] == [(1, 0, 2, 0)]
    for each in visits:
        counts = each.counts
        classes = ("to_fetch", "fetched", "fetch_failures", "rejected")
        assert counts["discovered"] == sum(counts[name] for name in classes) == len(each.requested)


def test_pages_when_their_interval_is_made_shorter_then_they_are_visited_as_if_it_had_always_been(
    tmp_path: Path,
) -> None:
    with SiteProcess() as site:
        pages(site, HOST, one=page("one"), two=page("two"))
        project = new_project(tmp_path, site, **source(site, HOST), lifecycle={"recrawl_every_hours": 168})
        first, waiting = run(project), run(project)
        each_run = run(project, "--set", "lifecycle.recrawl_every_hours=0")
        hourly = ("--set", "lifecycle.recrawl_every_hours=1")
        again = run(project)
        late = run(project, *hourly, **{CLOCK: str(2 * 3600)})
        soon = run(project, *hourly, **{CLOCK: str(2 * 3600 + 600)})

    asked = [len(each.requested) for each in (first, waiting, each_run, again, late, soon)]
    # A run that asks for all pages leaves them due in the next one, whatever its file says.
    assert asked == [3, 0, 3, 3, 3, 0]


UNREAD: Final = "unread.acme.test"
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
    site.set_page(UNREAD, "/", page("start", *(f"/{name}" for name in FILES)))
    for name, size in (("tagged", 500), ("bare", 600), ("large", LARGE), ("changing", 700)):
        bare = {"etag": None, "last_modified": None} if name in {"bare", "changing"} else {}
        site.set_page(UNREAD, f"/{name}.png", picture(size), content_type="image/png", **bare)
    site.set_page(UNREAD, "/style.css", "p {}", content_type="text/css")
    return new_project(folder, site, **source(site, UNREAD), **tables)


def asked(each: Run) -> dict[str, LogEntry]:
    """The requests for files of a run, by name."""
    return {entry["path"][1:]: entry for entry in each.log if entry["path"][1:] in FILES}


def test_bodies_when_nothing_reads_them_then_they_are_asked_for_with_conditions_at_growing_gaps(tmp_path: Path) -> None:
    days = (0, 0.01, 0.02, 1.1, 2.1, 3.2, 7.3)
    with SiteProcess() as site:
        project = build(site, tmp_path)
        runs = []
        for number, day in enumerate(days):
            site.set_page(UNREAD, "/changing.png", picture(700 + number), content_type="image/png")
            runs.append(run(project, **{CLOCK: str(round(day * DAY))}))
        said = project.ask("explain", site.url(UNREAD, "/tagged.png"), **{CLOCK: str(8 * DAY)})

    requests = [asked(each) for each in runs]
    # After a second visit that found the same: for one day, two, four.
    assert ["tagged.png" in each for each in requests] == [True, True, False, True, False, True, True]
    assert all({f"{UNREAD}/{name}": 908 for name in FILES}.items() <= each.codes.items() for each in runs)
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
        site.set_page(UNREAD, "/", page("start", f"http://{UNREAD}:{films.port}/film.mp4"))
        seen = run(new_project(tmp_path, site, **source(site, UNREAD)))

    assert seen.ended.counts["fetch_failures"] == 1
    assert 908 in seen.codes.values()
    # What the buffers of both ends take is not ours.
    assert [taken < FILM // 2 for taken in Film.taken] == [True]


def test_body_when_a_rule_asks_for_its_size_then_it_is_fetched_whole(tmp_path: Path) -> None:
    with SiteProcess() as site:
        seen = run(build(site, tmp_path, keep={"max_bytes": LARGE - 10}))

    assert seen.codes[f"{UNREAD}/large.png"] == 952
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
    assert edited.codes[f"{UNREAD}/tagged.png"] == 952


def test_url_when_its_picture_becomes_a_page_then_the_next_visit_reads_it(tmp_path: Path) -> None:
    with SiteProcess() as site:
        project = build(site, tmp_path)
        run(project)
        site.set_page(UNREAD, "/tagged.png", page("turned"), content_type="text/html")
        turned = run(project)
        site.set_page(UNREAD, "/tagged.png", picture(), content_type="image/png")
        back = [run(project) for _ in range(4)]

    assert turned.codes[f"{UNREAD}/tagged.png"] == 200
    assert f"{UNREAD}/tagged.png" in turned.in_index
    # Its document stays, and it is asked for in each run.
    assert [asked(each)["tagged.png"]["status"] for each in back] == [200, 304, 304, 304]
    assert [each.codes[f"{UNREAD}/tagged.png"] for each in back] == [908] * 4
    assert all(f"{UNREAD}/tagged.png" in each.in_index for each in back)


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
    assert {name: read.codes[f"{UNREAD}/{name}"] for name in FILES} == {
        name: 908 if name.endswith(".css") else 200 for name in FILES
    }
    assert f"{UNREAD}/large.png" in read.in_index
