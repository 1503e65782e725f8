"""The Python API: the examples of its docstrings, its values, its errors; and a source in a CrawlerProcess of one's own."""

from __future__ import annotations

import ast
import doctest
import json
import sys
from datetime import UTC
from pathlib import Path

import pytest

import searchcrawl
from searchcrawl import exceptions
from searchcrawl.api import project as api
from tests.acceptance.support_project import CrawlProject, new_project, run_apart
from tests.acceptance.support_stories import page, pages, source
from tests.site.client import SiteProcess
from tests.test_layout import ROOT

HOST = "api.acme.test"
#: In the order of a reader: a question is asked after the crawl.
EXAMPLES = (
    api.open_project, api.Project.crawl, api.Project.search, api.Project.explain, api.Project.plan, api.Project.verify,
    api.Project.status, api.Project.urls, api.Project.runs, api.Project.documents, api.Project.submit, api.Project.quarantine,
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
def site(site: SiteProcess) -> SiteProcess:
    pages(site, HOST, kettle=page("kettle"), lamp=page("lamp"))
    return site


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
    with pytest.raises(exceptions.ConfigurationError) as key:
        opened.crawl("demo", overrides=["scope.depth=-1"])
    # Errors of another process have all that they had there.
    assert (key.value.file, key.value.key, key.value.exit_code) == ("--set", "scope.depth", 4)
    assert key.value.message.startswith("must")
    with pytest.raises(exceptions.UnknownRun) as run:
        opened.undelete(99)
    with pytest.raises(exceptions.UnknownSource) as unknown:
        list(opened.documents("nothing"))
    assert (run.value.exit_code, unknown.value.exit_code) == (2, 2)
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


def test_orders_and_lists_when_a_program_uses_them_then_they_do_what_the_commands_do(
    site: SiteProcess, tmp_path: Path
) -> None:
    fresh = new_project(tmp_path / "p", site, **source(site, HOST))
    opened = searchcrawl.open_project(fresh.folder)
    kettle = site.url(HOST, "/kettle.html")
    opened.crawl("demo")

    tried = opened.test(kettle, source="demo")
    documents = {document.url: document for document in opened.documents("demo")}
    rows = {row.url: row for row in opened.urls("demo")}
    [run] = opened.runs()

    assert (tried.code, tried.fields["title"], tried.text) == (200, "kettle", documents[kettle].content)
    assert len(documents) == 3
    assert documents[kettle].fields["source"] == "demo"
    assert documents[kettle].id == rows[kettle].document_id
    assert (rows[kettle].state, rows[kettle].in_index, rows[kettle].code) == ("indexed", True, 200)
    assert [row.url for row in opened.urls("demo", state="indexed", host=HOST)] == sorted(
        documents, key=list(rows).index
    )
    assert (run.source, run.exit_code, run.counts["new"]) == ("demo", 0, 3)
    assert list(opened.runs("demo")) == [run]
    assert opened.submit(kettle, source="demo").result == "duplicate"
    assert opened.submit("http://elsewhere.test/", source="demo").rule is not None
    assert opened.recrawl("demo", url=kettle).to_fetch == 1
    assert opened.status("demo").force_recrawl is not None
    assert opened.resend("demo") == searchcrawl.Done(source="demo", documents=3)
    assert opened.flush("demo").documents == 0
    assert opened.stop("demo") == "idle"
    assert opened.suspend("demo") == "idle"
    with pytest.raises(exceptions.SourceSuspended) as refused:
        opened.crawl("demo")
    assert refused.value.exit_code == 3
    assert (opened.resume("demo"), opened.resume("demo")) == (True, False)
    assert [done.removed for done in opened.forget(kettle)] == [1]
    assert kettle not in {document.url for document in opened.documents("demo")}
    assert opened.verify("demo").ok


def test_removals_that_are_held_when_a_program_decides_then_it_is_as_with_the_commands(
    site: SiteProcess, tmp_path: Path
) -> None:
    host = "held.acme.test"
    pages(site, host, **{f"p{number}": page(f"page {number}") for number in range(14)})
    fresh = new_project(tmp_path / "p", site, **source(site, host))
    opened = searchcrawl.open_project(fresh.folder)
    opened.crawl("demo")
    for number in range(12):
        site.delete_page(host, f"/p{number}.html")

    held = opened.crawl("demo")
    waiting = list(opened.quarantine("demo"))

    assert (held.exit_code, len(waiting), waiting[0].run) == (9, 12, held.status.run and held.status.run.id)
    assert opened.reject("demo").documents == 12
    assert (list(opened.quarantine("demo")), len(list(opened.quarantine("demo", rejected=True)))) == ([], 12)
    assert opened.delete("demo").removed == 15
    assert list(opened.documents("demo")) == []


def test_plan_when_a_program_applies_it_then_only_what_differs_is_done(site: SiteProcess, tmp_path: Path) -> None:
    fresh = new_project(tmp_path / "p", site, **source(site, HOST))
    opened = searchcrawl.open_project(fresh.folder)
    opened.crawl("demo")
    file = fresh.folder / "sources" / "demo.toml"
    file.write_text(file.read_text("utf-8").replace("[scope]", '[scope]\nexclude_urls = ["*/lamp.html"]', 1), "utf-8")
    site.clear_log()

    plan = opened.plan("demo")
    done = opened.apply(plan.plan)

    assert (plan.leave, done.removed, site.log()) == (1, 1, [])
    with pytest.raises(exceptions.PlanRefused) as refused:
        opened.apply("demo-99")
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("kind", ["CrawlerProcess", "AsyncCrawlerProcess"])
def test_crawler_process_when_it_is_given_the_name_of_a_source_then_crawls_it(
    site: SiteProcess, tmp_path: Path, kind: str
) -> None:
    fresh = new_project(tmp_path / "p", site, **source(site, HOST))
    (fresh.folder / "mine.py").write_text(_CRAWLER_PROCESS.replace("{kind}", kind))

    ended = run_apart(fresh.folder, sys.executable, "mine.py")

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == [3, 2]
    assert searchcrawl.open_project(fresh.folder).search("*").total == 2


@pytest.mark.parametrize(
    ("argument", "said"),
    [('foo="20"', "unknown spider argument: foo (there is limit)"), ('limit="x"', "limit: must be a whole number")],
)
def test_crawler_process_when_an_argument_is_wrong_then_it_is_refused_and_nothing_is_requested(
    site: SiteProcess, tmp_path: Path, argument: str, said: str
) -> None:
    fresh = new_project(tmp_path / "p", site, **source(site, HOST))
    text = _CRAWLER_PROCESS.replace("{kind}", "AsyncCrawlerProcess").replace('limit="2"', argument)
    (fresh.folder / "mine.py").write_text(text)
    site.clear_log()

    ended = run_apart(fresh.folder, sys.executable, "mine.py")

    assert argument in text
    assert said in ended.stderr
    assert site.log() == []


def test_package_when_it_is_imported_then_nothing_else_of_it_is_loaded() -> None:
    code = "import searchcrawl, sys; print(*(n for n in sys.modules if n.startswith(('searchcrawl.', 'scrapy', 'pydantic'))))"
    asked = code + "; print(searchcrawl.__all__ == searchcrawl.__dir__()[-len(searchcrawl.__all__):])"

    ended = run_apart(ROOT, sys.executable, "-c", asked)

    assert ended.stdout.splitlines() == ["", "True"]


def test_public_names_when_a_type_checker_reads_the_stub_then_it_has_all_of_them() -> None:
    stub = ast.parse((ROOT / "searchcrawl" / "__init__.pyi").read_text("utf-8"))
    imported = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}

    assert imported | {"__version__"} == set(searchcrawl.__all__)
    # Without it, `from searchcrawl import *` has no version for a type checker.
    [listed] = [node.value for node in stub.body if isinstance(node, ast.Assign)]
    assert set(ast.literal_eval(listed)) == set(searchcrawl.__all__)
    for name in searchcrawl.__all__:
        assert getattr(searchcrawl, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = searchcrawl.nothing  # type: ignore[attr-defined]
