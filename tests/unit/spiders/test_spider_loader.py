"""Sources as spiders, beside spiders written in Python."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from searchcrawl.exceptions import ConfigurationError, InvalidFile
from searchcrawl.sources.config import Scope, Source
from searchcrawl.sources.project import Project
from searchcrawl.spiders import spider_loader
from searchcrawl.spiders.spider_loader import SourceSpiderLoader, find_spider_class
from searchcrawl.spiders.web_spider import WebSpider

GOOD = '[start]\nurls = ["https://example.org/"]\n[scope]\ninclude_hosts = ["example.org"]\n'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "searchcrawl.toml").write_text('contact = "crawler@example.org"\n')
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "good-one.toml").write_text(GOOD)
    (tmp_path / "sources" / "broken.toml").write_text("type = 1\n" + GOOD)
    monkeypatch.setenv("SEARCHCRAWL_PROJECT", str(tmp_path))
    monkeypatch.setattr(spider_loader, "find_spider_class", lambda project, source: Spider)
    return tmp_path


def loader(**settings: object) -> SourceSpiderLoader:
    return SourceSpiderLoader.from_settings(Settings(settings))


def test_list_when_a_source_is_broken_then_the_good_ones_and_its_error(root: Path) -> None:
    sources = loader()

    assert sources.list() == ["good-one"]
    assert [str(error) for error in sources.errors] == ["sources/broken.toml: type: must be a string (got 1)"]
    assert sources.project_error is None


def test_load_when_the_source_is_good_then_a_spider_class_with_source_and_project(root: Path) -> None:
    sources = loader()

    spider = sources.load("good-one")

    assert spider.name == "good-one"
    assert spider.source.scope.include_hosts == ("example.org",)  # type: ignore[attr-defined]
    assert spider.project.root == root  # type: ignore[attr-defined]
    assert sources.load("good-one") is spider


def test_load_when_the_source_is_broken_then_its_error(root: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"sources/broken.toml: type: "):
        loader().load("broken")


@pytest.mark.parametrize("name", ["unknown", "../sources/good-one", ""])
def test_load_when_there_is_no_such_source_then_key_error(root: Path, name: str) -> None:
    with pytest.raises(KeyError, match="Spider not found"):
        loader().load(name)


def test_load_when_a_spider_is_written_in_python_then_it_is_found_beside_the_sources(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "our_spiders_under_test.py").write_text("import scrapy\nclass Own(scrapy.Spider):\n    name = 'own'\n")
    monkeypatch.syspath_prepend(root)
    sources = loader(SPIDER_MODULES=["our_spiders_under_test"])

    own = sources.load("own")

    assert sources.list() == ["good-one", "own"]
    assert own is sys.modules["our_spiders_under_test"].Own


def test_loader_when_the_project_is_broken_then_made_and_every_load_refused(root: Path) -> None:
    (root / "searchcrawl.toml").write_text("contact = 1\nfoo = 2\n")
    sources = loader()

    with pytest.raises(InvalidFile):
        sources.load("good-one")

    assert sources.list() == []
    assert {error.key for error in sources.errors} == {"contact", "foo"}
    assert sources.project_error is not None


def user_spider(root: Path, name: str, module: str) -> SourceSpiderLoader:
    (root / f"{module}.py").write_text(f"import scrapy\nclass Own(scrapy.Spider):\n    name = '{name}'\n")
    return loader(SPIDER_MODULES=[module])


def test_load_when_a_python_spider_has_the_name_of_a_source_then_neither_runs_and_both_are_named(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(root)
    sources = user_spider(root, "good-one", "twice_under_test")

    with pytest.raises(ConfigurationError) as refused:
        sources.load("good-one")

    said = "sources/good-one.toml: name: a spider in Python has it too: twice_under_test.Own"
    assert str(refused.value) == said
    assert sources.list() == []
    assert said in map(str, sources.errors)


def test_load_when_the_project_is_broken_then_python_spiders_run_all_the_same(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(root)
    (root / "searchcrawl.toml").unlink()
    sources = user_spider(root, "own", "alone_under_test")

    assert sources.load("own").name == "own"
    assert sources.list() == ["own"]
    with pytest.raises(ConfigurationError, match=r"searchcrawl.toml: cannot be read"):
        sources.load("good-one")


def test_load_when_a_spider_is_in_python_then_its_files_keep_the_mode_of_scrapy(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(root)
    before = os.umask(0o022)
    try:
        user_spider(root, "own", "modes_under_test").load("own")
        in_python = os.umask(0o022)
        loader().load("good-one")
        of_source = os.umask(0o022)
    finally:
        os.umask(before)

    assert (in_python, of_source) == (0o022, 0o077)


def test_spider_when_the_type_of_a_source_is_known_then_it_is_found_by_its_name(tmp_path: Path) -> None:
    source = Source(name="x", path="sources/x.toml", scope=Scope(allow_all=True))

    assert find_spider_class(Project(root=tmp_path, contact="a@example.org"), source) is WebSpider
