"""D2: a page that changes is visited more often than one that does not, over a week of runs; L5: a date brings it sooner."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from tests.acceptance.support_project import new_project
from tests.acceptance.support_stories import page, pages, run, source
from tests.crawl_forks import CLOCK
from tests.site.client import SiteProcess
from tests.stored_rows import query_columns

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
