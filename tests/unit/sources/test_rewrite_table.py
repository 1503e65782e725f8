from __future__ import annotations

import json
from pathlib import Path

import pytest

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.sources.config import Source
from searchcrawl.sources.fingerprint import compute_fingerprint, find_changed_keys
from searchcrawl.sources.loading import build_display_map, build_rewriting, load_project, load_source, load_sources

SITE = "http://site.test/"
PLUGIN = """
class Mine:
    def open(self, source): ...
    def rewrite(self, url, *, referrer): ...
    def close(self): ...


class Half:
    def rewrite(self, url, *, referrer): ...
"""


def load(root: Path, text: str, *, project: str = "") -> Source:
    (root / "sources").mkdir(exist_ok=True)
    (root / "searchcrawl.toml").write_text(f'contact = "a@b.test"\n{project}', "utf-8")
    (root / "plugin_of_test.py").write_text(PLUGIN, "utf-8")
    start = f'[start]\nurls = ["{SITE}"]\n[scope]\nallow_all = true\n'
    (root / "sources" / "demo.toml").write_text(start + text, "utf-8")
    return load_source(load_project(root), "demo")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('strip_parameters = [""]', 'scope.strip_parameters: must not be empty (got "")'),
        (
            'strip_parameters = ["a=b"]',
            'scope.strip_parameters: must be the name of a parameter, with * for any characters (got "a=b")',
        ),
        ("strip_parameters = [3]", "scope.strip_parameters: must be a string (got 3)"),
        ("[[rewrite]]", "rewrite[0].match: is required, or plugin"),
        (
            '[[rewrite]]\nmatch = "a"\nreplace = "b"\n[[rewrite]]\nplugin = "json:loads"',
            'rewrite[1].plugin: is no class (got "json:loads")',
        ),
        ('[[rewrite]]\nreplace = "x"', "rewrite[0].match: is required, or plugin"),
        ('[[rewrite]]\nmatch = "x"', "rewrite[0].replace: is required with match"),
        (
            '[[rewrite]]\nmatch = "x"\nreplace = "y"\nplugin = "a:B"',
            'rewrite[0].plugin: not together with match and replace (got "a:B")',
        ),
        (
            '[[rewrite]]\nmatch = "("\nreplace = "y"',
            'rewrite[0].match: not an RE2 expression: missing ): ( (got "(")',
        ),
        (
            "[[rewrite]]\nmatch = 'a(b)'\nreplace = '\\2'",
            r'rewrite[0].replace: no group \2 in match (got "\\2")',
        ),
        ("[[rewrite]]\nmatch = 'a'\nreplace = '\\x'", r'rewrite[0].replace: no such escape: \x (got "\\x")'),
        ('[[rewrite]]\nmatch = "a"\nreplace = "b"\nwith = "c"', "rewrite[0].with: unknown key"),
        ('[[rewrite]]\nplugin = "rewriters"', 'rewrite[0].plugin: must be "module:Class" (got "rewriters")'),
        (
            '[[rewrite]]\nplugin = "json:Missing"',
            "rewrite[0].plugin: cannot be imported: AttributeError: module 'json' has no attribute 'Missing' (got \"json:Missing\")",
        ),
        (
            '[[rewrite]]\nplugin = "plugin_of_test:Half"',
            'rewrite[0].plugin: has no method open, close (got "plugin_of_test:Half")',
        ),
        (
            '[[display]]\nfrom = "http://a.test/"\nto = "https://b.test/#x"',
            'display[0].to: must have no fragment: it is no part of a URL\'s identity (got "https://b.test/#x")',
        ),
        (
            '[[display]]\nfrom = "http://a.test/"\nto = "ftp://b.test/"',
            'display[0].to: not an http or https URL, or a file URL (got "ftp://b.test/")',
        ),
        (
            '[[display]]\nfrom = "http://a.test"\nto = "http://b.test/"\n[[display]]\nfrom = "http://A.test:80/"\nto = "http://c.test/"',
            "display[1].from: the same prefix twice: http://a.test/",
        ),
    ],
)
def test_source_when_a_rewrite_or_a_parameter_is_wrong_then_its_key_is_named(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text)

    assert str(caught.value) == f"sources/demo.toml: {message}"


def test_source_when_a_plugin_of_the_defaults_is_missing_then_that_file_and_key_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, "", project='[[defaults.rewrite]]\nplugin = "nothing_here:Mine"\n')

    assert str(caught.value).startswith("searchcrawl.toml: defaults.rewrite[0].plugin: cannot be imported: ModuleNot")


EXITS = "cannot be imported: SystemExit: 3"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ('spider = "exits_of_test:Mine"', f"sources/demo.toml: spider: {EXITS}"),
        ('document_service = "exits_of_test:Mine"', f"sources/demo.toml: document_service: {EXITS}"),
        ('settings.ITEM_PIPELINES."exits_of_test.Mine" = 50', f"sources/demo.toml: settings.ITEM_PIPELINES: {EXITS}"),
        ('[[rewrite]]\nplugin = "exits_of_test:Mine"', f"sources/demo.toml: rewrite[0].plugin: {EXITS}"),
    ],
)
def test_source_when_a_module_of_a_user_exits_as_it_is_loaded_then_file_and_key_are_named_and_others_go_on(
    tmp_path: Path, text: str, start: str
) -> None:
    (tmp_path / "exits_of_test.py").write_text("import sys\nsys.exit(3)\n", "utf-8")
    load(tmp_path, "")
    sources = tmp_path / "sources"
    (sources / "other.toml").write_text((sources / "demo.toml").read_text("utf-8"), "utf-8")
    (sources / "demo.toml").write_text(text + "\n" + (sources / "other.toml").read_text("utf-8"), "utf-8")
    if text.startswith("[["):
        (sources / "demo.toml").write_text((sources / "other.toml").read_text("utf-8") + text, "utf-8")

    found, errors = load_sources(load_project(tmp_path))

    assert [*found] == ["other"]
    assert [str(error)[: len(start)] for error in errors] == [start]


def test_project_when_the_module_of_a_converter_exits_as_it_is_loaded_then_file_and_key_are_named(
    tmp_path: Path,
) -> None:
    (tmp_path / "panics_of_test.py").write_text("raise BaseException('panic')\n", "utf-8")

    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, "", project='[converters]\n"text/x-a" = "panics_of_test:Mine"\n')

    assert "converters" in caught.value.key
    assert caught.value.message.startswith("cannot be imported: BaseException: panic")


def test_display_when_a_plugin_may_set_it_then_there_is_a_map(tmp_path: Path) -> None:
    plugin = load(tmp_path, '[[rewrite]]\nplugin = "plugin_of_test:Mine"')
    pattern = load(tmp_path, '[[rewrite]]\nmatch = "a"\nreplace = "b"')
    project = load_project(tmp_path)

    assert build_display_map(plugin) is not None
    assert build_display_map(pattern) is None
    assert (build_rewriting(project, plugin).displays, build_rewriting(project, pattern).displays) == (True, False)
    assert build_rewriting(project, pattern).normalise(f"{SITE}a?utm_x=1").url == f"{SITE}b"


def test_fingerprint_when_rewrites_change_places_then_it_differs(tmp_path: Path) -> None:
    blocks = ['[[rewrite]]\nmatch = "a"\nreplace = "b"\n', '[[rewrite]]\nmatch = "b"\nreplace = "a"\n']

    texts = ("", "".join(blocks), "".join(reversed(blocks)), 'strip_parameters = ["x"]')
    prints = [compute_fingerprint(load(tmp_path, text), versions={}) for text in texts]

    assert find_changed_keys(prints[0], prints[1]) == find_changed_keys(prints[1], prints[2]) == ["rewrite"]
    assert find_changed_keys(prints[0], prints[3]) == ["scope.strip_parameters"]
    # The default is no difference: a release that brings it processes nothing again.
    assert "scope.strip_parameters" not in json.loads(prints[0])
