"""The commands that answer questions, on the project of one real crawl.

Crawls are processes; questions are asked in this one, which saves a second each.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from searchcrawl import clock
from searchcrawl.cli.dispatch import main
from tests import backends
from tests.crawl_forks import COMMANDS
from tests.site.client import ADDRESS, SiteProcess, source_toml, write_project
from tests.site.expected import CANONICAL, COPIES, OPEN, OUTSIDE, codes, short
from tests.stored_rows import execute


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
def crawled(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project after its first run; read by the tests, changed by none."""
    folder = write_project(tmp_path_factory.mktemp("crawled"), site, fetch={"retries": 0})
    ended = run(folder, "crawl", "demo")
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that was never crawled, with one broken source."""
    folder = write_project(tmp_path_factory.mktemp("empty"), 1)
    (folder / "sources" / "broken.toml").write_text("depth = -1\n")
    return folder


def test_urls_when_the_site_was_crawled_then_each_row_has_the_code_that_the_site_asks_for(crawled: Path) -> None:
    found = {short(row["url"]): row for row in lines(crawled, "urls", "demo")}

    shown = {
        url: 200 if row["code"] == 909 else row["code"]
        for url, row in found.items()
        if url not in OUTSIDE | OPEN and not url.startswith("bad.")
    }
    wanted = codes()
    assert {url: code for url, code in shown.items() if wanted.get(url) != code} == {}
    assert wanted.keys() - shown.keys() == set()
    assert OUTSIDE.isdisjoint(found)
    for group in COPIES:
        assert sorted(found[url]["state"] for url in group) == ["duplicate"] * (len(group) - 1) + ["indexed"]


def test_urls_when_rows_are_shown_then_states_follow_from_the_codes(crawled: Path) -> None:
    rows = lines(crawled, "urls", "demo")

    assert {row["state"] for row in rows if row["code"] == 200} == {"indexed"}
    assert all(row["in_index"] == (row["state"] == "indexed") for row in rows)
    assert all(row["rule"] for row in rows if row["state"] == "rejected")
    assert {row["state"] for row in rows if row["code"] in {911, 952, 953, 954}} == {"excluded"}
    assert {row["state"] for row in rows if 400 <= row["code"] < 600} == {"failed"}


def test_urls_when_filtered_then_a_line_each_for_people_too(crawled: Path) -> None:
    shown = ask(crawled, "urls", "demo", "--code", "404")
    forbidden = lines(crawled, "urls", "demo", "--rule", "Disallow: /tmp/", "--state", "rejected")
    everything = lines(crawled, "urls", "demo")
    of_host = lines(crawled, "urls", "demo", "--host", "docs.acme.test", "--since", "2020-01-31")

    assert len(shown.stdout.splitlines()) == len(lines(crawled, "urls", "demo", "--code", "404")) > 2
    assert all(line.startswith("failed     404  http://") for line in shown.stdout.splitlines())
    assert {short(row["url"]) for row in forbidden} >= {"www.acme.test/tmp/scratch.html"}
    assert of_host == [row for row in everything if row["host"].startswith("docs.acme.test:")] != []
    assert lines(crawled, "urls", "demo", "--since", "2100-01-01T00:00+02:00") == []


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
    ],
)
def test_commands_when_used_wrongly_then_exit_2_with_a_reason_and_no_answer(
    crawled: Path, arguments: tuple[str, ...]
) -> None:
    ended = ask(crawled, *arguments)

    assert ended.returncode == 2
    assert ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("urls", "demo", "--code", "4xx"), "argument --code: must be one code, such as 404 or 952 (got '4xx')"),
        (("search", "word", "--rows", "ten"), "argument --rows: must be a whole number (got 'ten')"),
    ],
)
def test_commands_when_an_option_is_no_number_then_they_say_what_is_wanted(
    crawled: Path, arguments: tuple[str, ...], reason: str
) -> None:
    ended = ask(crawled, *arguments)

    assert (ended.returncode, reason in ended.stderr) == (2, True)


@pytest.mark.parametrize(
    "command", ["search", "status", "urls", "explain", "test", "verify", "quarantine", "cache", "quick"]
)
def test_commands_when_asked_for_help_then_it_has_an_example(crawled: Path, command: str) -> None:
    ended = ask(crawled, command, "--help")

    assert ended.returncode == 0
    assert f"Example: searchcrawl {command} " in " ".join(ended.stdout.split())
    assert "--json" in ended.stdout


def test_search_when_words_are_there_then_hits_with_plain_snippets_and_facets(crawled: Path) -> None:
    found = only(crawled, "search", '"reference barometer"', "--facet", "host", "--facet", "mimetype")

    assert found["total"] == len(found["hits"]) > 1
    for hit in found["hits"]:
        assert set(hit) == {
            "url", "title", "snippet", "source", "score", "last_modified", "description", "duplicates", "attributes",
        }  # fmt: skip
        assert hit["snippet"].isprintable()
    assert sum(found["facets"]["host"].values()) == sum(found["facets"]["mimetype"].values()) == found["total"]


def test_search_when_limited_then_rows_filter_sort_and_minus_hold(crawled: Path) -> None:
    everything = only(crawled, "search", "*", "--rows", "1000", "--facet", "mimetype")
    documents = only(crawled, "search", "*", "--filter", "mimetype:application/pdf")
    newest = only(crawled, "search", "*", "--rows", "3", "--sort=-last_modified", "--source", "demo")
    without = only(crawled, "search", "barometer", "-reference")
    first_without = only(crawled, "search", "--", "-reference", "barometer")

    assert everything["total"] == len(everything["hits"]) == only(crawled, "status", "demo")["documents"]
    assert documents["total"] == everything["facets"]["mimetype"]["application/pdf"] > 0
    dates = [hit["last_modified"] for hit in newest["hits"]]
    assert dates == sorted(dates, reverse=True)
    assert 0 < without["total"] < only(crawled, "search", "barometer")["total"]
    assert first_without["total"] == without["total"]


def test_search_when_copies_are_known_then_the_hit_lists_them(crawled: Path) -> None:
    hits = only(crawled, "search", "*", "--rows", "1000")["hits"]

    with_copies = {frozenset(map(short, [hit["url"], *hit["duplicates"]])) for hit in hits if hit["duplicates"]}
    assert with_copies == {*COPIES, CANONICAL}


def test_search_when_shown_to_people_then_hits_are_numbered(crawled: Path) -> None:
    shown = ask(crawled, "search", "barometer", "--rows", "2").stdout

    total = only(crawled, "search", "barometer", "--rows", "0")["total"]
    assert shown.startswith(f"{total} hits, the first 2\n\n1. ")
    assert "\n2. " in shown
    assert "\x1b" not in shown
    assert "\ue000" not in shown


def test_status_when_the_site_was_crawled_then_state_run_and_counts(crawled: Path) -> None:
    found = only(crawled, "status", "demo")

    assert (found["state"], found["run"]["kind"], found["run"]["end_reason"]) == ("finished", "initial", "finished")
    counts = found["counts"]
    assert counts["discovered"] == sum(counts[name] for name in ("to_fetch", "fetched", "fetch_failures", "rejected"))
    assert found["documents"] == counts["indexed"]
    assert (found["waiting"], found["quarantined"], found["force_recrawl"], found["warnings"]) == (0, 0, None, [])
    assert only(crawled, "status") == {"sources": [found]}
    assert "documents in the index" in ask(crawled, "status", "demo").stdout


def test_verify_when_nothing_happened_since_then_ok(crawled: Path) -> None:
    found = only(crawled, "verify", "demo")

    assert found == {"ok": True, "missing": [], "extra": [], "stale": [], "foreign": [], "repaired": 0}


def test_cache_count_when_pages_were_cached_then_records_and_bytes(crawled: Path) -> None:
    [found] = lines(crawled, "cache", "count")

    copies = sum(len(group) - 1 for group in (*COPIES, CANONICAL))
    assert found["records"] == only(crawled, "status", "demo")["documents"] + copies
    assert (found["source"], found["segments"]) == ("demo", 1)
    assert found["bytes"] == sum(path.stat().st_size for path in (crawled / "var/cache/demo").iterdir())


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


def test_verify_when_the_index_was_lost_then_every_document_is_missing_with_exit_1(
    crawled: Path, tmp_path: Path
) -> None:
    folder = backends.current.copy(crawled, tmp_path / "project")
    backends.current.lose_index(folder)

    ended = run(folder, "verify", "--json")
    shown = ask(folder, "verify", "demo")

    found = json.loads(ended.stdout)
    assert (ended.returncode, shown.returncode, found["ok"]) == (1, 1, False)
    assert len(found["missing"]) == only(folder, "status", "demo")["documents"]
    assert shown.stdout.endswith(f"missing {len(found['missing'])}, extra 0, stale 0, foreign 0\n")


def test_quarantine_when_limits_hold_deletions_back_then_list_approve_and_reject(
    site: SiteProcess, crawled: Path, tmp_path: Path
) -> None:
    folder = backends.current.copy(crawled, tmp_path / "project")
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


def test_quarantine_when_another_process_holds_the_source_then_exit_5(crawled: Path, tmp_path: Path) -> None:
    folder = backends.current.copy(crawled, tmp_path / "project")
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
