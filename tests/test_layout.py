"""The rules of the house that no other tool checks: names, sizes, forbidden imports and words."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from searchcrawl.messages import list_messages

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "searchcrawl"
MAX_MODULE_LINES = 600
MAX_FUNCTION_LINES = 50

#: A file that Scrapy calls is named by its role; the others named here are where Twisted is met on purpose.
SCRAPY_FILES = (
    r"(.*/)?\w+_(middleware|handler|pipeline|extension|spider)\.py"
    r"|frontier/scheduler\.py|members/\w+_scheduler\.py|spiders/(spider_loader|running|stage_manager|member_process)\.py"
    r"|http/(visit_end|side_requests|large_response)\.py"
    r"|engine/\w+\.py|cli/(.*/)?\w+\.py|extensions/run_stats\.py|(addon|composition|stages)\.py"
)

#: Third-party package → the only files of searchcrawl/ that may import it.
ONLY_IN = {
    "scrapy": SCRAPY_FILES,
    "twisted": SCRAPY_FILES,
    "sqlalchemy": r"(store|kinds/table)/.*",
    "pysolr": r"index/solr/\w+\.py",
    "smbprotocol": r"kinds/file/remote/smb\w*\.py",
    "tantivy": r"index/(local/\w+|forms)\.py",
}

#: What can run code when it is read back.
UNSAFE_STORES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}

# Written so that the patterns do not find themselves.
FORBIDDEN_WORDS = re.compile(
    r"(?<![\w./)}])/(?:wor[k]|roo[t]|hom[e]/\w+|op[t]/wheels|wor[k]space)/"
    r"|\.pyen[v]|bash_job[s]"
    r"|--(?:extra-)?index-ur[l]|--find-link[s]|PIP_INDE[X]|UV_INDE[X]"
    r"|pypi\.or[g]|pythonhoste[d]|artifactor[y]|repo1?\.mave[n]|deb\.debia[n]|npmj[s]\.|registry\.npm|snapshot\.debia[n]",
    re.IGNORECASE,
)


@cache
def tracked_files() -> tuple[Path, ...]:
    """The files of the repository, or of the unpacked tree where there is no repository."""
    if (ROOT / ".git").exists():
        # A checkout may belong to another user than the one who runs the tests, as in a container.
        command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
        found = [ROOT / name for name in listed.split("\0") if name]
    else:
        made = re.compile(r"(.*/)?(\.|__pycache__/|var/|benchmarks/out/|solr/server/lib/)")
        found = [path for path in ROOT.rglob("*") if not made.match(shown(path))]
    return tuple(sorted(path for path in found if path.is_file()))


def python_files(*, under: Path = ROOT) -> list[Path]:
    return [path for path in tracked_files() if path.suffix == ".py" and path.is_relative_to(under)]


def package_files() -> list[Path]:
    return python_files(under=PACKAGE)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Each imported dotted name with its line; ``from a import b`` gives ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def test_repository_when_listed_then_has_the_package() -> None:
    names = {shown(path) for path in tracked_files()}

    assert {"searchcrawl/__init__.py", "pyproject.toml", "tests/test_layout.py"} <= names


def test_modules_when_measured_then_are_short() -> None:
    lengths = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in python_files()}

    assert {name: length for name, length in lengths.items() if length > MAX_MODULE_LINES} == {}


def test_functions_when_measured_then_are_short() -> None:
    long = [
        f"{shown(path)}:{node.lineno} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path in python_files()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]

    assert long == []


def test_packages_when_imported_then_the_project_names_each_as_a_dependency() -> None:
    # One that is there only because another one needs it may go with that one's next release.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = [
        project["optional-dependencies"][name]
        for name in ("postgresql", "mysql", "parquet", "playwright", "s3", "scrapyd", "sftp", "smb")
    ]
    listed = [*project["dependencies"], *(line for lines in optional for line in lines)]
    named = {re.split(r"[^\w.-]", line)[0].lower().replace("_", "-") for line in listed}
    # The metadata of these does not say what they install.
    known = {**packages_distributions(), "pydispatch": ["PyDispatcher"], "backports": ["backports-zstd"]}

    imported = {name.split(".")[0] for path in package_files() for name, _ in imported_names(parsed(path))}
    others = imported - sys.stdlib_module_names - {"searchcrawl", "compression"}
    missing = {
        name for name in others if named.isdisjoint(each.lower().replace("_", "-") for each in known.get(name, [name]))
    }

    assert missing == set()
    assert "w3lib" in others


@pytest.mark.parametrize("package", ONLY_IN)
def test_third_party_package_when_imported_then_only_where_it_belongs(package: str) -> None:
    allowed = re.compile(ONLY_IN[package])

    strays = [
        f"{shown(path)}:{line} imports {name}"
        for path in package_files()
        if not allowed.fullmatch(path.relative_to(PACKAGE).as_posix())
        for name, line in imported_names(parsed(path))
        if name.split(".")[0] == package
    ]

    assert strays == []


def test_output_when_written_then_by_the_one_mouth() -> None:
    # What goes round it may steer a terminal, or tell a secret.
    names = {
        "sys.stdout",
        "sys.stderr",
        "sys.__stdout__",
        "sys.__stderr__",
        "print",
        "rich.text.Text",
        "rich.console.Console",
    }
    found = {
        f"{path.relative_to(PACKAGE).as_posix()}: {ast.unparse(node)}"
        for path in package_files()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in names
    } | {
        f"{path.relative_to(PACKAGE).as_posix()}: {name}"
        for path in package_files()
        for name, _ in imported_names(parsed(path))
        if name in names
    }

    strays = {stray for stray in found if not stray.startswith(("terminal.py:", "cli/output.py:"))}
    assert strays == {
        # Whether it is a terminal, the handler of a log, and a console that `terminal` makes.
        "extensions/run_log.py: sys.stderr",
        "extensions/progress_extension.py: sys.stderr",
        # For types.
        "cli/commands/search.py: rich.text.Text",
    }


def test_reactor_when_imported_then_never_at_module_level() -> None:
    # Importing it installs it, before Scrapy could choose one.
    strays = [
        f"{shown(path)}:{line}"
        for path in python_files()
        for statement in parsed(path).body
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for name, line in imported_names(statement)
        if name == "twisted.internet.reactor" or name.startswith("twisted.internet.reactor.")
    ]

    assert strays == []


def test_package_when_searched_then_nothing_sleeps() -> None:
    sleeps = [
        f"{shown(path)}:{node.lineno}"
        for path in package_files()
        if path.name != "failpoints.py"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute)
        and node.attr == "sleep"
        and isinstance(node.value, ast.Name)
        and node.value.id == "time"
    ]
    imports = [
        shown(path) for path in package_files() for name, _ in imported_names(parsed(path)) if name == "time.sleep"
    ]

    assert sleeps + imports == []


def test_package_when_searched_then_nothing_stored_can_run_code() -> None:
    strays = [
        f"{shown(path)}:{line} imports {name}"
        for path in package_files()
        for name, line in imported_names(parsed(path))
        if name.split(".")[0] in UNSAFE_STORES
    ]

    assert strays == []


def test_modules_when_parsed_then_import_absolutely_and_postpone_annotations() -> None:
    strays = []
    for path in package_files():
        statements = [node for node in parsed(path).body if not isinstance(node, ast.Expr)]
        futures = {name for name, _ in imported_names(parsed(path)) if name.startswith("__future__")}
        if statements and path.name != "__init__.py" and "__future__.annotations" not in futures:
            strays.append(f"{shown(path)}: no `from __future__ import annotations`")
        strays += [
            f"{shown(path)}:{node.lineno}: relative import"
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.ImportFrom) and node.level
        ]

    assert strays == []


def test_init_files_when_read_then_export_nothing_of_others() -> None:
    strays = [
        f"{shown(path)}:{line} re-exports {name}"
        for path in package_files()
        if path.name == "__init__.py"
        for name, line in imported_names(parsed(path))
        # The build puts the version into a module of its own.
        if name.startswith("searchcrawl.") and name != "searchcrawl._built.VERSION"
    ]

    assert strays == []


def test_tracked_files_when_searched_then_name_no_machine_and_no_package_index() -> None:
    found = []
    for path in tracked_files():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a fixture in bytes
        found += [
            f"{shown(path)}:{n}: {m[0]}" for n, line in enumerate(lines, 1) if (m := FORBIDDEN_WORDS.search(line))
        ]

    assert found == []


def test_locked_requirements_when_read_then_each_has_a_hash() -> None:
    for path in sorted((ROOT / "requirements").glob("*.txt")):
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        pins = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]

        assert pins
        assert [pin for pin in pins if "==" not in pin or "--hash=sha256:" not in pin] == []


def logged_messages() -> Iterator[tuple[str, str]]:
    """The module and the text of each message that the package logs."""
    for path in package_files():
        for node in ast.walk(parsed(path)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in {"debug", "info", "warning", "error", "exception", "critical"}
                and ast.unparse(node.func.value) in {"logger", "self.logger"}
            ):
                text = node.args[0]
                assert isinstance(text, ast.Constant), f"{shown(path)}:{node.lineno}: no text, so it can have no id"
                yield ".".join(path.relative_to(PACKAGE).with_suffix("").parts), str(text.value)


def test_messages_when_they_are_logged_then_each_has_an_id() -> None:
    listed = list(list_messages())
    kept = {(message.module, message.text) for message in listed if message.module != "-"}
    logged = set(logged_messages())
    following = f"SC{len(listed) + 1:03d}"

    assert logged - kept == set(), f"add a line for each to searchcrawl/messages.txt, the next id is {following}"
    assert kept - logged == set(), "edit its text in searchcrawl/messages.txt; of one that is gone the module becomes -"
    assert [message.id for message in listed] == [f"SC{number:03d}" for number in range(1, len(listed) + 1)]
