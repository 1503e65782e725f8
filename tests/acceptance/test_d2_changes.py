"""D2, L5: when pages are visited again, and what counts as a change: those that change more often, sooner by a date; bodies that
nothing reads at growing gaps; each set of conditions, over pages that lie about their changes in each way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, combinations
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

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


LYING: Final = "changes.acme.test"
KINDS: Final = ("date", "checksum", "etag")
CONDITIONS: Final = list(chain.from_iterable(combinations(KINDS, size) for size in range(1, len(KINDS) + 1)))
OLD_DATE: Final = "Mon, 13 May 2024 08:00:00 GMT"
NEW_DATE: Final = "Tue, 14 May 2024 08:00:00 GMT"
NEWEST: Final = "Wed, 15 May 2024 08:00:00 GMT"
_AT_ONCE: Final = 3

Sent = Callable[[frozenset[str]], bool]


@dataclass(frozen=True)
class Lie:
    """What a page has before, what it has afterwards, and with which conditions that is sent.

    The server honours no conditions, unless ``honours`` says so: else pages with the same validators would be 304.
    """

    sent: Sent
    etag: tuple[str | None, str | None] = ('"1"', '"1"')
    date: tuple[str | None, str | None] = (OLD_DATE, OLD_DATE)
    #: what is in the text, and what is in a comment
    words: tuple[str, str] = ("old", "old")
    comment: tuple[str, str] = ("", "")
    honours: bool = False
    #: what it answers to everything afterwards
    status: int = 200


def never(condition: frozenset[str]) -> bool:
    """With no condition: nothing that is indexed differs, or the server says that nothing does."""
    return False


def always(condition: frozenset[str]) -> bool:
    return True


def with_any(*kinds: str) -> Sent:
    """With one of these conditions."""
    return lambda condition: bool(condition & set(kinds))


LIES: Final[Mapping[str, Lie]] = {
    "honest": Lie(never, honours=True),
    "always_a_new_etag": Lie(never, etag=('"1"', '"2"')),
    "never_a_date": Lie(never, date=(None, None)),
    "no_validators": Lie(never, etag=(None, None), date=(None, None)),
    "new_bytes_same_text": Lie(never, comment=("", "<!-- made at noon -->")),
    "new_bytes_same_text_new_etag": Lie(never, etag=('"1"', '"2"'), comment=("", "<!-- made at noon -->")),
    "304_to_everything": Lie(never, words=("old", "new"), status=304),
    "new_date_same_bytes": Lie(with_any("date"), date=(OLD_DATE, NEW_DATE)),
    "new_text_same_validators": Lie(with_any("checksum"), words=("old", "new")),
    "new_text_weak_etag": Lie(with_any("checksum"), etag=('"1"', 'W/"1"'), words=("old", "new")),
    "new_text_new_etag": Lie(with_any("checksum", "etag"), etag=('"1"', '"2"'), words=("old", "new")),
    "new_text_new_date": Lie(with_any("checksum", "date"), date=(OLD_DATE, NEW_DATE), words=("old", "new")),
    "new_text_no_validators": Lie(always, etag=(None, None), date=(None, None), words=("old", "new")),
    # What the server does not send falls back to the checksum.
    "new_text_same_etag_no_date": Lie(with_any("checksum", "date"), date=(None, None), words=("old", "new")),
    "new_text_same_date_no_etag": Lie(with_any("checksum", "etag"), etag=(None, None), words=("old", "new")),
    "new_text_date_vanished": Lie(with_any("checksum", "date"), date=(OLD_DATE, None), words=("old", "new")),
    "new_text_honest": Lie(always, etag=('"1"', '"2"'), date=(OLD_DATE, NEW_DATE), words=("old", "new"), honours=True),
}


def _url(name: str) -> str:
    return f"{LYING}/{name}.html"


def _write(site: SiteProcess, name: str, lie: Lie, when: int, **other: Any) -> None:
    text = f"the {lie.words[when]} text of {name}"
    fields: dict[str, Any] = {"etag": lie.etag[when], "last_modified": lie.date[when], **other}
    body = page(name, text=f"{fields.pop('text', text)}{lie.comment[when]}")
    site.set_page(LYING, f"/{name}.html", body, honours_conditions=lie.honours, **fields)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[tuple[str, ...], list[Run]]]:
    """For each set of conditions: a first run, one after the changes, one after no more, one after honest changes."""
    with SiteProcess() as site, ThreadPoolExecutor(_AT_ONCE) as threads:
        site.set_page(LYING, "/", page("start", *(f"/{name}.html" for name in LIES)))
        projects = []
        for condition in CONDITIONS:
            folder = tmp_path_factory.mktemp("-".join(condition))
            projects.append(new_project(folder, site, **source(site, LYING), change={"condition": list(condition)}))
        runs: dict[tuple[str, ...], list[Run]] = {condition: [] for condition in CONDITIONS}

        def all_run() -> None:
            for condition, ended in zip(CONDITIONS, threads.map(run, projects), strict=True):
                runs[condition].append(ended)

        for name, lie in LIES.items():
            _write(site, name, lie, 0)
        all_run()
        for name, lie in LIES.items():
            _write(site, name, lie, 1)
            if lie.status != 200:
                site.set_page(LYING, f"/{name}.html", "", status=lie.status)
        all_run()
        _write(site, "always_a_new_etag", LIES["always_a_new_etag"], 1, etag='"3"')
        all_run()
        for name, lie in LIES.items():
            _write(
                site, name, lie, 1, text=f"at last another text of {name}", etag='"9"', last_modified=NEWEST, status=200
            )
        all_run()
        yield runs


def _sent(before: Run, after: Run) -> set[str]:
    return {url for url, version in after.versions.items() if before.versions.get(url) != version}


@pytest.mark.extended
@pytest.mark.parametrize("condition", CONDITIONS, ids="-".join)
def test_pages_when_they_lie_then_what_the_condition_says_is_sent_and_nothing_else(
    told: Mapping[tuple[str, ...], list[Run]], condition: tuple[str, ...]
) -> None:
    first, second, third, fourth = told[condition]
    expected = {_url(name) for name, lie in LIES.items() if lie.sent(frozenset(condition))}

    assert [each.ended.exit_code for each in (first, second, third, fourth)] == [0, 0, 0, 0]
    assert set(first.versions) == {f"{LYING}/", *map(_url, LIES)}
    assert _sent(first, second) == expected
    assert (second.counts["changed"], second.counts["indexed"]) == (len(expected), len(expected))
    # A change that does not count is none later either.
    assert _sent(second, third) == set()
    # Nor is it lost: the next one that counts brings all of it.
    assert _sent(third, fourth) == {*map(_url, LIES)}
    assert [{code for code in each.codes.values() if code != 200} for each in (second, third, fourth)] == [set()] * 3
