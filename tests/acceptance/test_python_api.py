"""The Python API: the examples of its docstrings, its values, its errors; and a source in a CrawlerProcess of one's own."""

from __future__ import annotations

import ast
import doctest
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

import pytest

import searchcrawl
from searchcrawl import exceptions
from searchcrawl.api import project as api
from tests.acceptance.support_project import CrawlProject, environment, new_project
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess
from tests.test_layout import ROOT

HOST = "api.acme.test"
#: In the order of a reader: a question is asked after the crawl.
EXAMPLES = (
    api.open_project, api.Project.crawl, api.Project.search, api.Project.explain, api.Project.plan, api.Project.verify,
    api.Project.status,
)  # fmt: skip
#: A process of its own: the reactor runs once.
_CRAWLER_PROCESS = """
import json, sys
from scrapy.crawler import {kind}
from scrapy.utils.project import get_project_settings
process = {kind}(get_project_settings())
crawler = process.create_crawler("demo")
process.crawl(crawler, limit="2")
process.start()
run = crawler.spider.run
print(json.dumps([int(run.exit_code), run.copy_counts()["fetched"]]))
"""


@pytest.fixture(scope="module")
def site() -> Iterator[SiteProcess]:
    with SiteProcess() as site:
        pages(site, HOST, kettle=page("kettle"), lamp=page("lamp"))
        yield site


@pytest.fixture(scope="module")
def project(site: SiteProcess, tmp_path_factory: pytest.TempPathFactory) -> CrawlProject:
    return new_project(tmp_path_factory.mktemp("api") / "p", site, **source(site, HOST))


def test_examples_when_they_are_run_in_order_then_they_say_what_is_so(
    project: CrawlProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.folder)
    shared: dict[str, object] = {}
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()

    for example in EXAMPLES:
        for test in finder.find(example, example.__qualname__, globs=shared):
            # A doctest has names of its own: what an example names is there for the next.
            test.globs = shared
            runner.run(test, clear_globs=False)
    written = {
        node.name
        for node in ast.walk(ast.parse(Path(api.__file__).read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and ">>>" in (ast.get_docstring(node) or "")
    }

    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries >= len(EXAMPLES)
    assert written == {example.__name__ for example in EXAMPLES}


def test_answers_when_a_source_was_crawled_then_they_are_typed_values(project: CrawlProject) -> None:
    opened = searchcrawl.open_project(project.folder)
    crawl = opened.crawl("demo", limit=1, settings={"SEARCHCRAWL_STALL_SECONDS": 0})
    [known] = opened.sources()
    found = opened.search("*", rows=1, offset=1, sort="title", filters={"host": HOST})

    assert (crawl.exit_code, crawl.status.run and crawl.status.run.end_reason) == (3, "limit")
    assert crawl.status.run is not None
    assert crawl.status.run.started.tzinfo is not None
    assert crawl.status.run.started.utcoffset() == UTC.utcoffset(None)
    assert (known.name, known.file, known.start_urls) == ("demo", "sources/demo.toml", (project.site.url(HOST, "/"),))
    assert (found.total, len(found.hits), type(found.hits[0])) == (3, 1, searchcrawl.Hit)
    assert opened.status("demo").state in {"stopped", "finished"}
    assert opened.explain(project.site.url(HOST, "/")).in_index
    with pytest.raises(AttributeError):
        found.total = 4  # type: ignore[misc]


def test_errors_when_something_is_wrong_then_they_are_those_of_the_command(
    project: CrawlProject, tmp_path: Path
) -> None:
    opened = searchcrawl.open_project(project.folder)

    with pytest.raises(exceptions.ConfigurationError, match=r"searchcrawl\.toml"):
        searchcrawl.open_project(tmp_path)
    for ask in (opened.crawl, opened.plan, opened.verify, opened.status):
        with pytest.raises(exceptions.UnknownSource, match="nothing"):
            ask("nothing")
    with pytest.raises(exceptions.ConfigurationError, match=r"^--set: scope\.dept: unknown key"):
        opened.crawl("demo", overrides=["scope.dept=1"])
    with pytest.raises(ValueError, match="limit"):
        opened.crawl("demo", limit=-1)
    with pytest.raises(exceptions.StoreError, match=r"^searchcrawl: .*No such file.*/nothing/log'$"):
        opened.crawl("demo", settings={"LOG_FILE": "/nothing/log"})
    with pytest.raises(exceptions.UnknownAttribute, match="nothing"):
        opened.search("kettle", sort="nothing")
    with pytest.raises(ValueError, match="rows: must be 0 to 1000"):
        opened.search("kettle", rows=1001)
    with pytest.raises(exceptions.InvalidUrl):
        opened.explain("ftp://a.test/")
    (project.folder / "sources" / "broken.toml").write_text("scope.depth = -1\n")
    assert [error.key for error in opened.errors()] == ["scope.depth", "start.urls"]
    (project.folder / "sources" / "broken.toml").unlink()
    assert opened.errors() == []


@pytest.mark.parametrize("kind", ["CrawlerProcess", "AsyncCrawlerProcess"])
def test_crawler_process_when_it_is_given_the_name_of_a_source_then_crawls_it(
    site: SiteProcess, tmp_path: Path, kind: str
) -> None:
    fresh = new_project(tmp_path / "p", site, **source(site, HOST))
    (fresh.folder / "mine.py").write_text(_CRAWLER_PROCESS.replace("{kind}", kind))

    ended = subprocess.run(
        [sys.executable, "mine.py"], cwd=fresh.folder, env=environment(), capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == [3, 2]
    assert searchcrawl.open_project(fresh.folder).search("*").total == 2


def test_package_when_it_is_imported_then_nothing_else_of_it_is_loaded() -> None:
    code = "import searchcrawl, sys; print(*(n for n in sys.modules if n.startswith(('searchcrawl.', 'scrapy', 'pydantic'))))"
    asked = code + "; print(searchcrawl.__all__ == searchcrawl.__dir__()[-len(searchcrawl.__all__):])"

    ended = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True)

    assert ended.stdout.splitlines() == ["", "True"]


def test_public_names_when_a_type_checker_reads_the_stub_then_it_has_all_of_them() -> None:
    stub = ast.parse((ROOT / "searchcrawl" / "__init__.pyi").read_text("utf-8"))
    imported = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}

    assert imported | {"__version__"} == set(searchcrawl.__all__)
    for name in searchcrawl.__all__:
        assert getattr(searchcrawl, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = searchcrawl.nothing  # type: ignore[attr-defined]
