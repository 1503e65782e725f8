"""Asks a project about URLs while its source file is edited, and edits it as ``explain`` says (L1)."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from searchcrawl.exceptions import ConfigurationError
from searchcrawl.queries.explain import explain_url
from searchcrawl.queries.explain_context import build_inputs
from searchcrawl.sources.loading import build_boundary, load_project, load_source
from searchcrawl.store.engine.database import Database
from tests.site.toml_text import to_toml

FILE: Final = "sources/demo.toml"
HOST: Final = "www.acme.test"


class Told(NamedTuple):
    """What ``explain`` says: the beginning of the verdict, rule, key and edit of what decided.

    And the beginning of what a step says; of the step "found" in ``found``.
    """

    verdict: str
    rule: str
    key: str | None = None
    edit: tuple[str, str, Any] | None = None
    step: tuple[str, str] | None = None
    found: str = ""


INDEXED: Final = ("in the index", HOST, "scope.include_hosts")


class Asking:
    """Asks a project about URLs, as its source file is at the moment."""

    def __init__(self, folder: Path) -> None:
        self._project = load_project(folder)
        self._file = folder / FILE
        self._database = Database(self._project.database_url, folder)
        self.written = tomllib.loads(self._file.read_text("utf-8"))

    def close(self) -> None:
        self._file.write_text(to_toml(self.written), "utf-8")
        self._database.close()

    def asked(self, urls: Sequence[str]) -> list[dict[str, Any]]:
        """The objects of ``explain --json``."""
        source = load_source(self._project, "demo")
        self.boundary = build_boundary(source)
        inputs = build_inputs(self._project, source)
        inputs.rewriting.open("demo")
        with closing(inputs.rewriting):
            return [explain_url(self._database, inputs, url).as_json() for url in urls]

    def allows(self, told: Mapping[str, Any]) -> bool:
        """Whether the boundary of the source file, as it was asked last, admits a URL at the depth of its row."""
        depths = [re.search(r"at depth (\d+)", step["detail"]) for step in told["steps"] if step["step"] == "found"]
        depth = int(depths[0][1]) if depths and depths[0] else None
        return self.boundary.decide(told["url"], depth).allowed

    def edited(self, tables: Mapping[str, Any], urls: Sequence[str]) -> list[dict[str, Any]] | None:
        """What is said of URLs with another source file; None where that is refused."""
        self._file.write_text(to_toml(tables), "utf-8")
        try:
            return self.asked(urls)
        except ConfigurationError:
            return None


def without(tables: Mapping[str, Any], reasons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The source file without the rules of these objects of ``explain``, and with the includes they propose."""
    edited = copy.deepcopy(dict(tables))
    for reason in reasons:
        names = re.findall(r"[a-z_]+|\d+", reason["proposal"]["key"] if is_missing(reason) else reason["key"])
        table: Any = edited
        for name in names[:-1]:
            table = table[int(name)] if name.isdigit() else table[name]
        name = names[-1]
        if names[0] == "rewrite":
            del edited["rewrite"][int(names[1])]
        elif is_missing(reason):
            table[name].append(reason["proposal"]["value"])
        elif name == "meta_robots":
            # A switch that is on by itself: what stands for its removal is off.
            table[name] = False
        elif isinstance(table.get(name), list):
            kept = [value for value in table[name] if str(value) != reason["rule"]]
            assert len(kept) < len(table[name]), f"{reason} is not in {FILE}"
            table[name] = kept
        elif name in table:
            assert reason["rule"].startswith((f"{name} = ", str(table[name]).lower())), reason
            del table[name]
    return edited


def is_missing(reason: Mapping[str, Any]) -> bool:
    """Whether no include matches."""
    return bool(reason.get("proposal", {}).get("action") == "add")


def with_advice(tables: Mapping[str, Any], reasons: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The source file after the edits that ``explain`` names to admit a URL."""
    edited = copy.deepcopy(dict(tables))
    for edit in (reason["proposal"] for reason in reasons):
        names = re.findall(r"[a-z_]+|\d+", edit["key"])
        table: Any = edited
        for name in names[:-1]:
            table = table[int(name)] if name.isdigit() else table.setdefault(name, {})
        name, value = names[-1], edit["value"]
        if edit["action"] == "add":
            table[name].append(value)
        elif edit["action"] == "set":
            table[name] = value
        elif edit["action"] == "raise":
            table[name] = value * 1000
        elif name.isdigit():
            del table[int(name)]
        else:
            table[name] = [each for each in table[name] if each != value]
    return edited


def of_file(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rules of the source file that decided; empty where something else did."""
    reasons = [found["decided_by"], *found["also"]]
    return reasons if all(reason["file"] == FILE for reason in reasons) else []


def said(found: Mapping[str, Any]) -> str:
    """``KEY: RULE`` of what decided; the line of robots.txt alone."""
    reason = found["decided_by"]
    return reason["rule"] if reason["key"] == "robots.txt" else f"{reason['key']}: {reason['rule']}"


def is_outside(found: Mapping[str, Any]) -> bool:
    """Whether the boundary refuses it, or a rewriter gives it up, by what ``explain`` says."""
    return any(step["step"] in {"boundary", "rewrite"} and step["outcome"] != "allowed" for step in found["steps"])


def is_refused(found: Mapping[str, Any]) -> bool:
    """Whether a rule as it is now keeps the URL out of the index, by what ``explain`` says."""
    return found["decided_by"]["step"] != "boundary" or any(
        step["step"] == "boundary" and step["outcome"] == "refused" for step in found["steps"]
    )


def ask(folder: Path, *urls: str) -> list[dict[str, Any]]:
    """The objects of ``explain --json``, as the source file is now."""
    with closing(Asking(folder)) as asking:
        return asking.asked(urls)


def check(folder: Path, situations: Mapping[str, Told], **origins: str) -> dict[str, dict[str, Any]]:
    """Compares what is said with what was made, by paths or URLs with ``origins``; returns what is said by these."""
    told = ask(folder, *((path if "{" in path else "{www}" + path).format(**origins) for path in situations))
    for expected, found in zip(situations.values(), told, strict=True):
        decided = found["decided_by"]
        assert found["verdict"].startswith(expected.verdict.format(**origins)), found
        assert (decided["rule"], decided["key"]) == (expected.rule.format(**origins), expected.key), found
        if expected.edit is not None:
            proposal = decided["proposal"]
            assert (proposal["action"], proposal["key"], proposal["value"]) == expected.edit, found
        steps = [expected.step, ("found", expected.found) if expected.found else None]
        for name, detail in filter(None, steps):
            details = [step["detail"] for step in found["steps"] if step["step"] == name]
            assert any(one.startswith(detail.format(**origins)) for one in details), found
    return dict(zip(situations, told, strict=True))


def take_advice(folder: Path, reasons: Sequence[Mapping[str, Any]]) -> None:
    """Edits the source file as these reasons propose."""
    file = folder / FILE
    file.write_text(to_toml(with_advice(tomllib.loads(file.read_text("utf-8")), reasons)), "utf-8")
