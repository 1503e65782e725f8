"""One crawl of the test site, by a process, into the embedded index: rows, documents, requests (B, C, F, G); what commands answer
of it. These are asked in this process, which saves a second each.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter, deque
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from searchcrawl import clock
from searchcrawl.cli.dispatch import main
from searchcrawl.sources.loading import load_project
from searchcrawl.store.engine.database import Database
from searchcrawl.store.urls import link_table
from tests import backends
from tests.acceptance.support_project import CrawlProject, Ended, new_project
from tests.crawl_forks import COMMANDS
from tests.site import expected
from tests.site.client import ADDRESS, SiteProcess, source_toml, write_project
from tests.site.expected import short
from tests.stored_rows import execute


class Crawled(NamedTuple):
    """A project after its first run, and what the site saw."""

    project: CrawlProject
    ended: Ended
    requested: list[str]
    #: How often each host was asked for its robots.txt.
    robots: Counter[str]


@pytest.fixture(scope="module")
def crawled(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    project = new_project(tmp_path_factory.mktemp("crawl"), site, fetch={"retries": 0})
    ended = project.crawl()
    robots = Counter(entry["host"] for entry in site.log() if entry["path"] == "/robots.txt")
    return Crawled(project, ended, site.requested(), robots)


@pytest.mark.matrix
def test_crawl_when_the_site_is_new_then_finished_and_counted(crawled: Crawled) -> None:
    status, rows = crawled.ended.status, crawled.project.rows().values()

    assert (crawled.ended.exit_code, crawled.ended.errors) == (0, "")
    assert (status["state"], status["run"]["kind"], status["run"]["end_reason"]) == ("finished", "initial", "finished")
    assert status["documents"] == crawled.ended.counts["indexed"] == len(crawled.project.indexed())
    assert (status["waiting"], status["quarantined"], status["force_recrawl"]) == (0, 0, None)
    refused = [row for row in rows if row["code"] in (951, 955)]
    # One leads to a page that robots.txt forbids: it was requested itself.
    assert crawled.ended.counts["rejected"] == len(refused) - 1 == sum(not row["redirects"] for row in refused)
    assert crawled.ended.counts["duplicates"] == sum(row["code"] in (909, 964) for row in rows)
    assert {row["fetch_state"] for row in rows} == {2}


@pytest.mark.matrix
def test_crawl_when_ended_then_each_row_has_the_code_that_the_site_calls_for(crawled: Crawled) -> None:
    codes = crawled.project.codes()

    copies = {url for group in expected.COPIES for url in group}
    known = {
        url: 200 if url in copies and code == 909 else code
        for url, code in codes.items()
        if url not in expected.OUTSIDE | expected.OPEN
    }
    assert known == expected.codes()
    assert expected.OUTSIDE.isdisjoint(codes)
    # Nothing but redirects leads to elsewhere.test.
    hosts = {url.partition("/")[0] for url in expected.OUTSIDE} - {"elsewhere.test"}
    assert crawled.ended.refused_links.keys() >= hosts
    assert all(codes[url] in (200, 911) for url in expected.OPEN)


@pytest.mark.matrix
def test_crawl_when_ended_then_nothing_was_requested_that_may_not_be(crawled: Crawled) -> None:
    asked = set(crawled.requested)

    assert asked.isdisjoint(expected.NEVER_REQUESTED)
    assert expected.UNLINKED.isdisjoint(crawled.project.rows())


@pytest.mark.matrix
def test_crawl_when_ended_then_no_url_was_asked_for_twice_for_itself(crawled: Crawled) -> None:
    asked = Counter(crawled.requested)
    rows = crawled.project.rows()

    # The target of a followed redirect is asked for again where it has a row of its own.
    targets = {"www.acme.test/nowhere.html", "www.acme.test/redirects/loop-b"}
    assert {url for url, times in asked.items() if times > 1 and url in rows} <= targets


@pytest.mark.matrix
def test_index_when_the_crawl_ended_then_it_has_each_good_page_exactly_once(crawled: Crawled) -> None:
    good = sorted(url for url, code in crawled.project.codes().items() if code == 200)

    assert crawled.project.indexed() == good


@pytest.mark.matrix
def test_copies_when_the_crawl_ended_then_each_is_listed_by_one_survivor(crawled: Crawled) -> None:
    duplicates = {
        short(hit.fields["url"]): sorted(short(url) for url in hit.fields["duplicates"])
        for hit in crawled.project.hits("*")
        if hit.fields.get("duplicates")
    }

    groups = {frozenset({survivor, *copies}) for survivor, copies in duplicates.items()}
    assert groups == {*expected.COPIES, expected.CANONICAL}
    assert len(duplicates) == len(groups)


@pytest.mark.matrix
def test_depth_when_the_crawl_ended_then_it_is_that_of_the_shortest_way(crawled: Crawled) -> None:
    rows = {row["url"]: row for row in crawled.project.rows().values()}
    outlinks = _outlinks(crawled.project)

    start = crawled.project.site.url()
    # What a sitemap lists is as far away as what the start page links to.
    depths = {start: 0, crawled.project.site.url(path="/about/car-park.html"): 1}
    waiting = deque(depths)
    while waiting:
        page = waiting.popleft()
        # The target of a permanent redirect is as far away as the redirect.
        step = 0 if rows[page]["code"] in (953, 954) else 1
        for target in outlinks.get(page, ()):
            if depths[page] + step < depths.get(target, 1000):
                depths[target] = depths[page] + step
                waiting.append(target)
    assert {url: row["depth"] for url, row in rows.items()} == depths
    assert rows[crawled.project.site.url("docs.acme.test", "/chain/5.html")]["depth"] == 6


def _outlinks(project: CrawlProject) -> dict[str, list[str]]:
    database = Database(load_project(project.folder).database_url, project.folder)
    with database.read_once() as transaction:
        urls = {row.id: row.url for row in transaction.exec_driver_sql("SELECT id, url FROM urls")}
        found = link_table.load(transaction, list(urls))
    database.close()
    return {urls[page]: [urls[target] for target in targets] for page, targets in found.items()}


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("words", "pages"),
    [
        ('"oracle on demand"', {"www.acme.test/phrases/1.html"}),
        ('"oracle demand"', {"www.acme.test/phrases/2.html"}),
        ("quicksilver capsule", {"docs.acme.test/manuals/barometer.pdf"}),
        ("梨の木の箱", {"jp.acme.test/history.html"}),
        ("霜の警報装置", {"jp.acme.test/news.html"}),
        ("蜘蛛", {"jp.acme.test/products.html"}),
        ("untypedword", {"www.acme.test/tests/untyped"}),
        ("upside harbour -herring", {"www.acme.test/products/prices.html"}),
        ("herring soup", set()),
    ],
)
def test_search_when_words_are_known_then_exactly_their_pages_are_found(
    crawled: Crawled, words: str, pages: set[str]
) -> None:
    found = crawled.project.found(words)

    assert set(found) == pages


@pytest.mark.matrix
def test_robots_when_a_rule_forbids_then_951_with_its_line_and_no_request(crawled: Crawled) -> None:
    rows = crawled.project.rows()

    assert {
        url: row["rule"] for url, row in rows.items() if url.startswith("www.acme.test/") and row["code"] == 951
    } == {
        "www.acme.test/cyberworld/map/": "Disallow: /cyberworld/map/",
        "www.acme.test/cyberworld/map/north.html": "Disallow: /cyberworld/map/",
        "www.acme.test/tmp/scratch.html": "Disallow: /tmp/",
        "www.acme.test/%74mp/scratch2.html": "Disallow: /tmp/",
        "www.acme.test/foo.html": "Disallow: /foo.html",
        "www.acme.test/redirects/to-forbidden": "Disallow: /tmp/",
    }
    assert "www.acme.test/cyberworld/open.html" in crawled.requested


@pytest.mark.matrix
def test_robots_when_the_crawl_ended_then_each_host_was_asked_for_it_once(crawled: Crawled) -> None:
    assert crawled.robots == {
        f"{name}.test": 1 for name in ("www.acme", "docs.acme", "jp.acme", "mirror.acme", "partner")
    }


@pytest.mark.matrix
def test_redirects_when_followed_then_the_row_keeps_the_way_and_its_own_address(crawled: Crawled) -> None:
    project = crawled.project
    way = json.loads(project.rows()["www.acme.test/redirects/chain-1"]["redirects"])
    moved = json.loads(project.rows()["www.acme.test/redirects/301-outside"]["redirects"])

    steps = [f"www.acme.test/redirects/chain-{number}" for number in (1, 2, 3)]
    assert [(short(hop["url"]), hop["code"]) for hop in way] == list(zip(steps, (302, 307, 303), strict=True))
    assert [(short(hop["url"]), hop["code"]) for hop in moved] == [("www.acme.test/redirects/301-outside", 301)]
    assert "www.acme.test/redirects/302-outside" in project.indexed()
    assert "partner.test/landing.html" in crawled.requested
    assert "www.acme.test/redirected/301.html" in project.indexed()


@pytest.mark.matrix
def test_noindex_when_a_page_says_it_then_its_links_are_followed_and_it_is_not_found(crawled: Crawled) -> None:
    codes = crawled.project.codes()

    pages = ["www.acme.test/handbook/archive.html", "www.acme.test/handbook/canteen.html"]
    assert [codes[page] for page in pages] == [952, 952]
    assert codes["www.acme.test/handbook/archive/1998.html"] == 200
    assert not {*pages} & {*crawled.project.indexed()}


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """One command in ``folder``, in a process of its own."""
    return COMMANDS.run(folder, *arguments, **variables)


def ask(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """One command in the project of ``folder``, run by this process."""
    output, errors = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
        patch.setenv("SEARCHCRAWL_PROJECT", str(folder))
        patch.setenv("SCRAPY_SETTINGS_MODULE", "searchcrawl.settings")
        with pytest.raises(SystemExit) as ended:
            main(["searchcrawl", *arguments])
    exit_code = ended.value.code
    assert isinstance(exit_code, int)
    return subprocess.CompletedProcess(arguments, exit_code, output.getvalue(), errors.getvalue())


def lines(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """The objects that a command prints; it must end well, and say nothing else."""
    ended = ask(folder, arguments[0], "--json", *arguments[1:])
    assert (ended.returncode, ended.stderr) == (0, "")
    return [json.loads(line) for line in ended.stdout.splitlines()]


def only(folder: Path, *arguments: str) -> dict[str, Any]:
    [answer] = lines(folder, *arguments)
    return answer


@pytest.fixture(scope="module")
def demo(crawled: Crawled) -> Path:
    """The folder of the project after its first run; read by the tests, changed by none."""
    return crawled.project.folder


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that was never crawled, with one broken source."""
    folder = write_project(tmp_path_factory.mktemp("empty"), 1)
    (folder / "sources" / "broken.toml").write_text("depth = -1\n")
    return folder


def test_urls_when_rows_are_shown_then_states_follow_from_the_codes(crawled: Crawled, demo: Path) -> None:
    rows = lines(demo, "urls", "demo")

    states = {short(row["url"]): row["state"] for row in rows}
    assert {short(row["url"]): row["code"] for row in rows} == crawled.project.codes()
    for group in expected.COPIES:
        assert sorted(states[url] for url in group) == ["duplicate"] * (len(group) - 1) + ["indexed"]
    assert {row["state"] for row in rows if row["code"] == 200} == {"indexed"}
    assert all(row["in_index"] == (row["state"] == "indexed") for row in rows)
    assert all(row["rule"] for row in rows if row["state"] == "rejected")
    assert {row["state"] for row in rows if row["code"] in {911, 952, 953, 954}} == {"excluded"}
    assert {row["state"] for row in rows if 400 <= row["code"] < 600} == {"failed"}


def test_urls_when_filtered_then_a_line_each_for_people_too(demo: Path) -> None:
    shown = ask(demo, "urls", "demo", "--code", "404")
    forbidden = lines(demo, "urls", "demo", "--rule", "Disallow: /tmp/", "--state", "rejected")
    everything = lines(demo, "urls", "demo")
    of_host = lines(demo, "urls", "demo", "--host", "docs.acme.test", "--since", "2020-01-31")

    assert len(shown.stdout.splitlines()) == len(lines(demo, "urls", "demo", "--code", "404")) > 2
    assert all(line.startswith("failed     404  http://") for line in shown.stdout.splitlines())
    assert {short(row["url"]) for row in forbidden} >= {"www.acme.test/tmp/scratch.html"}
    assert of_host == [row for row in everything if row["host"].startswith("docs.acme.test:")] != []
    assert lines(demo, "urls", "demo", "--since", "2100-01-01T00:00+02:00") == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("urls", "demo", "--since", "yesterday"),
        ("urls", "demo", "--state", "lost"),
        ("urls", "nope"),
        ("urls",),
        ("search", "word", "--rows", "1001"),
        ("search", "word", "--filter", "host"),
        ("search", "word", "--source", "nope"),
        ("search", "word", "--offset", "-1"),
        ("search", "word", "--colour", "red"),
        ("search", "word", "-London"),
        ("search",),
        ("verify", "nope"),
        ("verify", "demo", "--all-sources"),
        ("verify", "demo", "--yes"),
        ("status", "nope"),
        ("quarantine", "list"),
        ("quarantine", "drop", "demo"),
        ("cache", "compact"),
        ("cache", "count", "nope"),
        ("quick", "ftp://example.org/"),
        ("quick", "http://example.org/", "--pages", "0"),
        ("quick", "http://example.org/", "--allow-private", "everything"),
        ("explain", "javascript:1"),
        ("forget", "nowhere"),
        ("forget", "--pattern", "/private/*"),
    ],
)
def test_commands_when_used_wrongly_then_exit_2_with_a_reason_and_no_answer(
    demo: Path, arguments: tuple[str, ...]
) -> None:
    ended = ask(demo, *arguments)

    assert ended.returncode == 2
    assert ended.stderr
    assert "Traceback" not in ended.stderr
    assert (ended.stdout, (demo / "forgotten.txt").exists()) == ("", False)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ("urls", "demo", "--code", "4xx"),
            "searchcrawl urls: error: argument --code: must be one code, such as 404 or 952 (got '4xx')",
        ),
        (
            ("search", "word", "--rows", "ten"),
            "searchcrawl search: error: argument --rows: must be a whole number (got 'ten')",
        ),
        (("optimize", "demo"), "searchcrawl optimize: not available yet"),
        *(((command, "nowhere"), "searchcrawl: unknown source: nowhere") for command in ("flush", "resend")),
        *(
            (("delete", name, "--yes"), f"searchcrawl: unknown source: {name}")
            for name in ("nowhere", "../demo", "Demo")
        ),
        (("sources", "show"), "searchcrawl sources: error: missing argument: searchcrawl sources show NAME"),
        (("sources", "show", "other"), "searchcrawl: unknown source: other"),
        (("lst",), 'searchcrawl: unknown command, did you mean list? (got "lst")'),
        (("--foo",), 'searchcrawl: unknown option (got "--foo")'),
        (("list", "--foo"), "searchcrawl list: error: unrecognized option: --foo"),
        (("list", "foo"), "searchcrawl list: error: unrecognized argument: foo"),
        (("sources",), "searchcrawl sources: error: missing argument: searchcrawl sources check | show NAME"),
    ],
)
def test_commands_when_used_wrongly_then_the_last_line_says_why(
    demo: Path, arguments: tuple[str, ...], line: str
) -> None:
    ended = ask(demo, *arguments)

    assert (ended.returncode, ended.stdout, ended.stderr.splitlines()[-1]) == (2, "", line)


@pytest.mark.parametrize(
    "command",
    [
        "search",
        "status",
        "urls",
        "explain",
        "test",
        "verify",
        "quarantine",
        "cache",
        "quick",
        "list",
        "flush",
        "resend",
    ],
)
def test_commands_when_asked_for_help_then_it_has_an_example(demo: Path, command: str) -> None:
    ended = ask(demo, command, "--help")

    assert ended.returncode == 0
    assert ended.stdout.startswith(f"usage: searchcrawl {command} [options]")
    assert f"Example: searchcrawl {command}" in " ".join(ended.stdout.split())
    assert "--json" in ended.stdout


def test_search_when_words_are_there_then_hits_with_plain_snippets_and_facets(demo: Path) -> None:
    found = only(demo, "search", '"reference barometer"', "--facet", "host", "--facet", "mimetype")

    assert found["total"] == len(found["hits"]) > 1
    for hit in found["hits"]:
        assert set(hit) == {
            "url", "title", "snippet", "source", "score", "last_modified", "description", "duplicates", "attributes",
        }  # fmt: skip
        assert hit["snippet"].isprintable()
    assert sum(found["facets"]["host"].values()) == sum(found["facets"]["mimetype"].values()) == found["total"]


def test_search_when_limited_then_rows_filter_sort_and_minus_hold(demo: Path) -> None:
    everything = only(demo, "search", "*", "--rows", "1000", "--facet", "mimetype")
    documents = only(demo, "search", "*", "--filter", "mimetype:application/pdf")
    newest = only(demo, "search", "*", "--rows", "3", "--sort=-last_modified", "--source", "demo")
    without = only(demo, "search", "barometer", "-reference")
    first_without = only(demo, "search", "--", "-reference", "barometer")

    assert everything["total"] == len(everything["hits"]) == only(demo, "status", "demo")["documents"]
    assert documents["total"] == everything["facets"]["mimetype"]["application/pdf"] > 0
    dates = [hit["last_modified"] for hit in newest["hits"]]
    assert dates == sorted(dates, reverse=True)
    assert 0 < without["total"] < only(demo, "search", "barometer")["total"]
    assert first_without["total"] == without["total"]


def test_search_when_shown_to_people_then_hits_are_numbered(demo: Path) -> None:
    shown = ask(demo, "search", "barometer", "--rows", "2").stdout

    total = only(demo, "search", "barometer", "--rows", "0")["total"]
    assert shown.startswith(f"{total} hits, the first 2\n\n1. ")
    assert "\n2. " in shown
    assert "\x1b" not in shown
    assert "\ue000" not in shown


def test_status_when_the_site_was_crawled_then_state_run_and_counts(demo: Path) -> None:
    found = only(demo, "status", "demo")

    assert (found["state"], found["run"]["kind"], found["run"]["end_reason"]) == ("finished", "initial", "finished")
    counts = found["counts"]
    assert counts["discovered"] == sum(counts[name] for name in ("to_fetch", "fetched", "fetch_failures", "rejected"))
    assert found["documents"] == counts["indexed"]
    assert (found["waiting"], found["quarantined"], found["force_recrawl"], found["warnings"]) == (0, 0, None, [])
    assert only(demo, "status") == {"sources": [found]}
    assert "documents in the index" in ask(demo, "status", "demo").stdout


def test_verify_when_nothing_happened_since_then_ok(demo: Path) -> None:
    found = only(demo, "verify", "demo")

    assert found == {"ok": True, "missing": [], "extra": [], "stale": [], "foreign": [], "repaired": 0}


def test_cache_count_when_pages_were_cached_then_records_and_bytes(demo: Path) -> None:
    [found] = lines(demo, "cache", "count")

    copies = sum(len(group) - 1 for group in (*expected.COPIES, expected.CANONICAL))
    assert found["records"] == only(demo, "status", "demo")["documents"] + copies
    assert (found["source"], found["segments"]) == ("demo", 1)
    assert found["bytes"] == sum(path.stat().st_size for path in (demo / "var/cache/demo").iterdir())


def test_commands_when_nothing_was_crawled_then_empty_answers(empty: Path) -> None:
    assert only(empty, "search", "word") == {
        "total": 0, "hits": [], "facets": {}, "facet_names": {}, "suggestion": None, "notes": ["the index has no documents"],
    }  # fmt: skip
    assert lines(empty, "urls", "demo") == []
    assert lines(empty, "quarantine", "list", "demo") == []
    assert only(empty, "verify")["ok"]
    assert [row["records"] for row in lines(empty, "cache", "count")] == [0, 0]


def test_status_when_a_source_is_broken_then_it_has_failed_and_the_others_are_shown(empty: Path) -> None:
    shown = run(empty, "status", "--json")
    broken = ask(empty, "status", "broken")

    assert shown.returncode == 0
    states = {source["source"]: source for source in json.loads(shown.stdout)["sources"]}
    assert (list(states), states["broken"]["state"], shown.stderr) == (["demo", "broken"], "failed", "")
    assert states["broken"]["warnings"][0]["message"].startswith("sources/broken.toml: ")
    assert (broken.returncode, broken.stdout) == (4, "")


def test_verify_when_the_index_was_lost_then_every_document_is_missing_with_exit_1(demo: Path, tmp_path: Path) -> None:
    folder = backends.current.copy(demo, tmp_path / "project")
    backends.current.lose_index(folder)

    ended = run(folder, "verify", "--json")
    shown = ask(folder, "verify", "demo")

    found = json.loads(ended.stdout)
    assert (ended.returncode, shown.returncode, found["ok"]) == (1, 1, False)
    assert len(found["missing"]) == only(folder, "status", "demo")["documents"]
    assert shown.stdout.endswith(f"missing {len(found['missing'])}, extra 0, stale 0, foreign 0\n")


def test_quarantine_when_limits_hold_deletions_back_then_list_approve_and_reject(
    site: SiteProcess, demo: Path, tmp_path: Path
) -> None:
    folder = backends.current.copy(demo, tmp_path / "project")
    rules = source_toml(site, fetch={"retries": 0}, lifecycle={"max_delete_documents": 0})
    (folder / "sources/demo.toml").write_text(rules)
    before = only(folder, "status", "demo")["documents"]
    site.stage("changed")
    try:
        second = run(folder, "crawl", "demo", "--json")
    finally:
        site.reset()
    rejecting = backends.current.copy(folder, tmp_path / "rejecting")

    waiting = lines(folder, "quarantine", "list", "demo")
    held = only(folder, "status", "demo")
    approved = only(folder, "quarantine", "approve", "demo")
    rejected = only(rejecting, "quarantine", "reject", "demo")

    assert (second.returncode, held["quarantined"]) == (9, len(waiting))
    assert [warning["code"] for warning in held["warnings"]] == ["quarantine"]
    assert {(row["run"], row["reason"]) for row in waiting} >= {(2, "404"), (2, "410")}
    assert approved == {"source": "demo", "documents": len(waiting), "removed": len(waiting), "failed": 0, "waiting": 0}
    assert lines(folder, "quarantine", "list", "demo") == []
    assert only(folder, "verify")["ok"]
    gone = {row["url"] for row in lines(folder, "urls", "demo", "--state", "gone")}
    assert gone == {row["url"] for row in waiting}
    assert only(folder, "status", "demo")["documents"] == held["documents"] - len(waiting)
    assert rejected == {"source": "demo", "documents": len(waiting), "removed": 0, "failed": 0, "waiting": 0}
    assert only(rejecting, "status", "demo")["documents"] == held["documents"] >= before
    assert only(rejecting, "verify")["ok"]


def test_quarantine_when_another_process_holds_the_source_then_exit_5(demo: Path, tmp_path: Path) -> None:
    folder = backends.current.copy(demo, tmp_path / "project")
    # Another machine: whether its process lives cannot be seen, so that its beat counts.
    holder, beat = "elsewhere boot x process 1 started 1", clock.now_ms() + 20_000
    execute(folder, f"UPDATE leases SET holder = '{holder}', renewed_ms = {beat}")

    approving, rejecting = run(folder, "quarantine", "approve", "demo"), ask(folder, "quarantine", "reject", "demo")

    assert (approving.returncode, rejecting.returncode) == (5, 5)
    assert "another process is running it" in approving.stderr


def test_quick_when_a_private_site_is_allowed_then_crawled_and_searchable_from_anywhere(
    site: SiteProcess, tmp_path: Path
) -> None:
    for name in ("/", "/two.html", "/three.html"):
        link = '<a href="two.html">2</a> <a href="three.html">3</a>'
        site.set_page(ADDRESS, name, f"<title>Page {name}</title><p>quickly {name}</p>{link}", content_type="text/html")
    url = f"http://{ADDRESS}:{site.port}/"

    shown = run(tmp_path, "quick", url, "--allow-private", f"{ADDRESS}/32", TMPDIR=str(tmp_path))
    limited = run(
        tmp_path, "quick", url, "--pages", "1", "--allow-private", "127.0.0.0/8", "--json", TMPDIR=str(tmp_path)
    )

    [project] = [path for path in tmp_path.glob("searchcrawl-quick-*") if str(path) in shown.stdout]
    assert shown.returncode == 0
    assert f"cd {project} && searchcrawl search WORDS" in shown.stdout
    found = run(tmp_path, "search", "quickly", "--json", SEARCHCRAWL_PROJECT=str(project))
    assert json.loads(found.stdout)["total"] == 3
    status = json.loads(limited.stdout)
    assert (limited.returncode, status["run"]["end_reason"], status["counts"]["fetched"]) == (0, "limit", 1)
    assert Path(status["project"]).is_dir()


def test_quick_when_a_private_site_is_not_allowed_then_not_asked_and_exit_8(site: SiteProcess, tmp_path: Path) -> None:
    asked = len(site.log(host=ADDRESS))

    ended = run(tmp_path, "quick", f"http://{ADDRESS}:{site.port}/", TMPDIR=str(tmp_path))

    assert ended.returncode == 8
    assert "searchcrawl urls site" in ended.stdout
    assert f"start URL: failed     907  http://{ADDRESS}:{site.port}/" in ended.stderr
    assert ended.stderr.endswith(
        f"{ADDRESS} may not be reached (127.0.0.0/8 loopback; --allow-private CIDR allows a network of yours)\n"
    )
    assert len(site.log(host=ADDRESS)) == asked
