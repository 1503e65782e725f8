"""The documentation and the code agree: ids, keys, commands, codes, and documents that are cited."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Final

import pytest

from docs import reference_pages as pages
from searchcrawl.codes import Code, CodeClass
from searchcrawl.counters import COUNTS
from searchcrawl.delivery.closing import AFTER_LAST_BATCH, BEFORE_LAST_BATCH
from searchcrawl.exceptions import Exit
from searchcrawl.index_fields import FIELDS, FieldKind
from searchcrawl.store.states import BatchState, DocumentState, EndReason, FetchState
from searchcrawl.store.urls.url_state import UrlState
from tests.test_layout import ROOT, package_files, parsed, shown, tracked_files

DOCS: Final = ROOT / "docs"

#: One id, or the first and the last of a range: L8, X-S4, B1–B5, X-I1–I8.
_ID: Final = re.compile(r"(X-)?([A-Z])([0-9]{1,2})(?:[–-](?:X-)?([A-Z])?([0-9]{1,2}))?")
_IN_BRACKETS: Final = re.compile(r"\(([^()]*)\)")
_FINDING: Final = re.compile(r"\bX-[A-Z][0-9]{1,2}\b")
_ROW: Final = re.compile(r"^\| ((?:X-)?[A-Z][0-9]+) \| (.+) \|$", re.MULTILINE)
#: Documents by name, wherever they are cited, and decisions by a number.
_DOCUMENT: Final = re.compile(r"(?<![\w/*.-])[\w./-]*\w\.md\b")
_NUMBERED: Final = re.compile(r"\barchitectur[e],? (?:decision )?[0-9]|\bdecision[s]? [0-9]|\bfinding[s]? §")
#: A file or folder of the repository in backticks.
_PATH: Final = re.compile(r"`((?:searchcrawl|tests|solr|deploy)/[\w./-]*)`")
_PAGE: Final = re.compile(r"\bdocs: ([a-z0-9-]+/[a-z0-9/-]*[a-z0-9])")


def texts() -> Iterator[tuple[Path, str]]:
    """The text files of the repository, but for generated and foreign ones."""
    for path in tracked_files():
        if path.parts[-2:-1] == ("requirements",) or path.name == "LICENSE":
            continue
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def prose(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """The lines of a file in which ids are cited: of Python files the comments and strings."""
    if path.suffix != ".py":
        if path.suffix in {".md", ".toml", ".xml", ".service", ".conf", ""}:
            yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in {tokenize.COMMENT, tokenize.STRING}:
            yield from enumerate(token.string.splitlines(), token.start[0])


def cited_ids(line: str) -> Iterator[str]:
    """The ids that a line cites in brackets, those of a range one by one, and findings anywhere."""
    for inside in _IN_BRACKETS.findall(line):
        for part in re.split(r"[,;] *", inside):
            found = _ID.fullmatch(part.strip())
            if found is not None:
                prefix, letter, first, _, last = found.groups()
                yield from (f"{prefix or ''}{letter}{number}" for number in range(int(first), int(last or first) + 1))
    yield from _FINDING.findall(line)


def test_ids_when_listed_then_each_stands_for_one_thing() -> None:
    rows = _ROW.findall((DOCS / "explanation/requirements.md").read_text(encoding="utf-8"))

    assert [name for name, count in Counter(name for name, _ in rows).items() if count > 1] == []
    assert len(rows) > 100


def test_ids_when_cited_then_resolve() -> None:
    known = {name for name, _ in _ROW.findall((DOCS / "explanation/requirements.md").read_text(encoding="utf-8"))}

    strays = [
        f"{shown(path)}:{number}: {name}"
        for path, text in texts()
        for number, line in prose(path, text)
        for name in cited_ids(line)
        if name not in known
    ]

    assert strays == []


def test_ids_when_cited_by_commits_since_the_list_then_resolve() -> None:
    listed = "docs/explanation/requirements.md"
    known = {name for name, _ in _ROW.findall((ROOT / listed).read_text(encoding="utf-8"))}
    first = git("log", "--diff-filter=A", "--format=%H", "--", listed).split()

    messages = git("log", "--format=%B", f"{first[-1]}..HEAD") if first else ""

    assert sorted({name for line in messages.splitlines() for name in cited_ids(line)} - known) == []


def git(*arguments: str) -> str:
    """The output of git; empty where there is no repository."""
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True).stdout


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        ("# why (L8, X-S4)", ["L8", "X-S4", "X-S4"]),
        ("boundary (B1–B3; code 955)", ["B1", "B2", "B3"]),
        ("(X-I1–I3)", ["X-I1", "X-I2", "X-I3", "X-I1"]),
        ("(W3C datetime, RFC 9309 §2.2) and f(x)", []),
    ],
)
def test_ids_when_in_a_line_then_are_found(line: str, ids: list[str]) -> None:
    assert list(cited_ids(line)) == ids


def test_documents_when_cited_then_are_in_the_repository() -> None:
    strays = [
        f"{shown(path)}:{number}: {line.strip()[:100]}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if _NUMBERED.search(line)
        or any(not is_document(name, path.parent) for name in _DOCUMENT.findall(line))
        or any(not is_document(f"explanation/{page}.md", DOCS) for page in _PAGE.findall(line))
    ]

    assert strays == []


def is_document(name: str, folder: Path) -> bool:
    """Whether a document is found from the folder that cites it, from docs/, the top, or benchmarks/."""
    return any((start / name.lstrip("/")).is_file() for start in (folder, DOCS, ROOT, ROOT / "benchmarks"))


def test_paths_when_named_in_the_docs_then_exist() -> None:
    pages_of_docs = [path for path, _ in texts() if path.suffix == ".md" and path.name != "CHANGELOG.md"]
    strays = [
        f"{shown(path)}: {name}"
        for path in pages_of_docs
        for name in _PATH.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    ]

    assert strays == []


def test_packages_when_listed_then_each_is_in_the_architecture() -> None:
    text = (DOCS / "explanation/architecture.md").read_text(encoding="utf-8")
    packages = {path.relative_to(ROOT).parts[1] for path, _ in texts() if path.match("searchcrawl/*/__init__.py")}

    assert sorted(name for name in packages if f"`{name}`" not in text) == []


def test_steps_of_a_closing_when_listed_then_the_architecture_has_them_in_their_order() -> None:
    text = (DOCS / "explanation/architecture.md").read_text(encoding="utf-8")
    table = text.partition("## The closing of a run\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in table.splitlines() if line.startswith("| ")][1:]

    steps = (*BEFORE_LAST_BATCH, *AFTER_LAST_BATCH)
    assert [row for row in rows if row[0]] == [[step.name, step.where.value] for step in steps]


def test_keys_when_listed_then_each_has_a_meaning_and_numbers_a_unit() -> None:
    keys = [key for table in (*pages.source_tables(), *pages.project_tables()) for key in table.keys]
    tables = [table for table in (*pages.source_tables(), *pages.project_tables()) if table.heading]

    assert [table.heading for table in tables if not table.meaning.endswith(".")] == []
    assert [key.name for key in keys if not key.meaning.endswith(".")] == []
    assert [key.name for key in keys if key.type in {"number", "whole number"} and not key.unit] == []
    assert {"depth", "threshold_mb", "contact", "from"} <= {key.name for key in keys}


def test_commands_when_listed_then_each_and_each_option_has_a_meaning() -> None:
    commands = pages.shipped_commands()
    options = [(command.name, action) for command in commands for action in pages.options_of(command)]

    assert [command.name for command in commands if not command.short_desc() or not command.example] == []
    assert [f"{name} {action.dest}" for name, action in options if not action.help] == []
    assert {"crawl", "explain", "verify"} <= {command.name for command in commands}


def test_codes_fields_and_counters_when_listed_then_each_has_a_meaning() -> None:
    assert [code.name for code in Code if not code.facts.title or not code.facts.meaning.endswith(".")] == []
    assert [field.name for field in FIELDS if not field.meaning] == []
    assert [name for name, meaning in COUNTS.items() if not meaning.endswith(".")] == []


@pytest.mark.parametrize("kind", [FetchState, DocumentState, BatchState])
def test_states_when_listed_then_each_has_a_meaning(kind: type[FetchState | DocumentState | BatchState]) -> None:
    assert [state.name for state in kind if not state.facts.meaning.endswith(".")] == []


@pytest.mark.parametrize("kind", [Exit, CodeClass, EndReason, FieldKind, UrlState])
def test_members_when_listed_then_each_has_a_meaning(kind: type[Enum]) -> None:
    meanings = pages.member_meanings(kind)

    assert [member.name for member in kind if member.name not in meanings] == []


def test_pages_when_made_then_none_is_empty() -> None:
    assert [name for name, make in pages.PAGES.items() if not make().strip()] == []


def test_changelog_when_read_by_a_user_then_nothing_in_it_is_about_our_own_tests() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")

    assert re.findall(r"`make |benchmarks[./]|\btests/", text) == []


#: Of Python, of shells that complete a command, and what is only set for a library.
_NOT_OURS: Final = {"_ARGCOMPLETE", "COMP_LINE", "PYDANTIC_DISABLE_PLUGINS"}


def test_settings_and_variables_when_the_code_has_them_then_each_is_on_their_page() -> None:
    page = pages.setting_page() + pages.variable_page()

    found = {name for path in package_files() for name in names_of_environment(parsed(path))} - _NOT_OURS
    assert {name for name in found if f"`{name}`" not in page} == set()
    assert {"SEARCHCRAWL_MIN_FREE_MB", "SEARCHCRAWL_INDEX_PATIENCE_SECONDS", "SEARCHCRAWL_PROJECT", "TZ"} <= found
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert [row for row in rows if not row.rstrip("| ").rpartition("|")[2].strip()] == []


def names_of_environment(tree: ast.Module) -> Iterator[str]:
    """Our own names in a module, and the variables that it asks the environment for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"SEARCHCRAWL_[A-Z_]+", node.value):
                yield node.value
        elif isinstance(node, ast.Name) and re.fullmatch(r"SEARCHCRAWL_[A-Z_]+", node.id):
            yield node.id
        asked = ast.unparse(node) if isinstance(node, ast.Call | ast.Subscript) else ""
        if named := re.match(r"os\.(?:environ(?:\.\w+\(|\[)|getenv\()'(\w+)'", asked):
            yield named[1]
