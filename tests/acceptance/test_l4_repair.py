"""``verify --repair`` mends what somebody changed in the index, also where it is killed on the way (L4).

Over 100,000 documents exactly what was changed, in bounded memory.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from benchmarks import scale_verify
from benchmarks.measured import PYTHON, ROOT
from searchcrawl import urls
from searchcrawl.sources.loading import load_project
from tests.acceptance.support_project import CrawlProject, absent_index, new_project
from tests.acceptance.support_quarantine import is_verified
from tests.acceptance.support_stories import page, pages, run, source
from tests.crawl_forks import COMMANDS
from tests.site.client import SiteProcess, configure
from tests.tampering import tamper

pytestmark = pytest.mark.extended

HOST: Final = "mend.acme.test"
NAMES: Final = tuple(f"page{number:02}" for number in range(12))
ADDED: Final = tuple(f"/added{number}.html" for number in range(6))
#: Each durable step of the command, in its order.
STEPS: Final = (
    *("repair.adopted", "batch.sealed", "batch.post.mid", "index.acked", "batch.marked", "commit.sent"),
    *("repair.sealed", "repair.removed"),
)


@pytest.fixture
def project(clean_site: SiteProcess, tmp_path: Path) -> CrawlProject:
    pages(clean_site, HOST, **{name: page(f"text of {name}") for name in NAMES})
    project = new_project(tmp_path, clean_site, **source(clean_site, HOST))
    run(project)
    return project


def id_of(project: CrawlProject, path: str) -> str:
    return urls.document_id("demo", project.site.url(HOST, path))


def spoil(project: CrawlProject) -> None:
    """Removes two documents, alters two, and adds six."""
    versions = project.versions()
    altered = {f"/{name}.html": {"crawl_version": versions[f"{HOST}/{name}.html"]} for name in NAMES[2:4]}
    altered["/page03.html"]["crawl_version"] = 1
    added = {path: {"crawl_version": max(versions.values()), "title": "odd"} for path in ADDED}
    put = {}
    for path, fields in {**altered, **added}.items():
        url = project.site.url(HOST, path)
        put[id_of(project, path)] = {"url": url, "access_url": url, "source": "demo", "checksum": "00", **fields}
    tamper(load_project(project.folder), removed=[id_of(project, f"/{name}.html") for name in NAMES[:2]], put=put)


def mend(project: CrawlProject, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = project.command("verify", *(arguments or ("demo",)), "--repair", "--json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def is_whole(project: CrawlProject) -> bool:
    """Whether index, table and site agree, and the next run has nothing to do about it."""
    expected = sorted([f"{HOST}/", *(f"{HOST}/{name}.html" for name in NAMES)])
    texts = all(project.found(f'"text of {name}"') == [f"{HOST}/{name}.html"] for name in NAMES)
    again = run(project)
    return (project.indexed(), texts, is_verified(project)) == (expected, True, True) and (
        again.counts["indexed"],
        again.counts["deleted"],
    ) == (0, 0)


@pytest.mark.matrix
def test_repair_when_the_index_was_changed_then_it_says_what_it_mended_and_the_index_is_as_before(
    project: CrawlProject,
) -> None:
    spoil(project)
    project.site.clear_log()

    seen = project.command("verify", "--json")
    ended, found = mend(project)
    requested = project.site.requested()
    told = project.command("verify", "demo", "--repair")

    listed = json.loads(seen.stdout)
    assert (seen.returncode, listed["ok"], listed["repaired"]) == (1, False, 0)
    assert {kind: len(listed[kind]) for kind in ("missing", "stale", "extra", "foreign")} == {
        "missing": 2,
        "stale": 2,
        "extra": 6,
        "foreign": 0,
    }
    assert all("searchcrawl verify demo --repair" in each["why"] for each in listed["missing"])
    assert (ended, found["ok"], found["repaired"]) == (0, True, 10)
    assert all(each["why"].endswith("; repaired") for kind in ("missing", "stale", "extra") for each in found[kind])
    assert (told.returncode, told.stdout.splitlines()) == (0, ["missing 0, extra 0, stale 0, foreign 0"])
    assert requested == []
    assert is_whole(project)


@pytest.mark.few(1)
@pytest.mark.parametrize("step", STEPS)
def test_repair_when_killed_then_a_crawl_agrees_with_the_index(project: CrawlProject, step: str) -> None:
    spoil(project)

    COMMANDS.run(project.folder, "verify", "demo", "--repair", SEARCHCRAWL_FAILPOINT=step)
    after = run(project)
    ended, _ = mend(project, "demo", "--yes")

    assert (after.ended.exit_code, after.counts["deleted"], ended) == (0, 0, 0)
    assert is_whole(project)


def test_repair_when_a_source_is_gone_then_all_sources_and_its_name_mean_it(project: CrawlProject) -> None:
    (project.folder / "sources" / "demo.toml").rename(project.folder / "demo.aside")
    (project.folder / "sources" / "other.toml").write_text((project.folder / "demo.aside").read_text("utf-8"), "utf-8")

    seen = project.command("verify", "demo")
    plain, _ = mend(project, "--yes")
    kept = len(project.indexed())
    held = project.command("verify", "demo", "--repair")
    still = len(project.indexed())
    ended, found = mend(project, "--all-sources", "--yes")

    assert (seen.returncode, seen.stdout.count("put sources/demo.toml back, or searchcrawl delete demo")) == (1, 13)
    assert (plain, kept, still) == (1, 13, 13)
    assert (held.returncode, "13 of 13 documents of demo" in held.stderr, "--yes" in held.stderr) == (1, True, True)
    assert (ended, found["repaired"], project.indexed()) == (0, 13, [])
    (project.folder / "demo.aside").rename(project.folder / "sources" / "demo.toml")
    (project.folder / "sources" / "other.toml").unlink()
    back = run(project)
    assert (back.ended.exit_code, len(project.indexed()), is_verified(project)) == (0, 13, True)


def test_repair_when_it_cannot_be_done_then_the_exit_code_says_why(project: CrawlProject) -> None:
    spoil(project)
    unknown = project.command("verify", "nowhere", "--repair")
    both = project.command("verify", "demo", "--all-sources")
    alone = project.command("verify", "demo", "--yes")
    project.edit(**source(project.site, HOST), test=True)
    refused = project.command("verify", "demo", "--repair")
    project.edit(**source(project.site, HOST))
    configure(project.folder, index=absent_index())

    away = project.command("verify", "demo", "--repair", "-s", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS=1")

    assert [each.returncode for each in (unknown, both, alone, away, refused)] == [2, 2, 2, 6, 4]
    assert "sources/demo.toml: test" in refused.stderr


DOCUMENTS: Final = 100_000
MOST_BYTES: Final = 200_000_000
#: With what sends and removes: Scrapy's settings, and the writer of the embedded index.
MOST_TO_REPAIR: Final = 250_000_000


@pytest.fixture(params=["local", pytest.param("solr", marks=pytest.mark.solr)])
def index(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    if request.param == "local":
        yield {"type": "local"}
        return
    yield {"type": "solr", "url": request.getfixturevalue("solr_core")}


def make(folder: Path, what: str) -> None:
    """In a process of its own, whose memory is not counted."""
    words = [PYTHON, "-m", "benchmarks.scale_verify", what, "sqlite:///urls.db", str(DOCUMENTS), str(folder)]
    subprocess.run(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=600)


@pytest.mark.soak
def test_verify_when_1000_of_100000_were_removed_altered_and_added_then_exactly_these_in_under_200_mb(
    tmp_path: Path, index: dict[str, Any]
) -> None:
    (tmp_path / scale_verify.INDEX_FILE).write_text(json.dumps(index), "utf-8")
    make(tmp_path, "fill")
    make(tmp_path, "spoil")
    expected = json.loads((tmp_path / scale_verify.EXPECTED_FILE).read_text("utf-8"))

    figures = scale_verify.measure(tmp_path, expected)

    assert {kind: len(ids) for kind, ids in expected.items()} == {
        "missing": 1000,
        "extra": 1000,
        "stale": 1000,
        "foreign": 0,
    }
    assert max(figures["verify_peak_rss_bytes"], figures["again_peak_rss_bytes"]) < MOST_BYTES, figures
    assert figures["repair_peak_rss_bytes"] < MOST_TO_REPAIR, figures
