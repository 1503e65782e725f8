"""A small site of which each removal waits, and what commands say of waiting removals."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.acceptance.support_project import CrawlProject
from tests.acceptance.support_stories import page, source
from tests.site.client import SiteProcess

HOST: Final = "kept.acme.test"
NAMES: Final = ("alpha", "beta")
PATHS: Final = tuple(f"/{name}.html" for name in NAMES)


def settings(site: SiteProcess, **more: Any) -> dict[str, Any]:
    """A source of which each removal waits."""
    return {**source(site, HOST), "lifecycle": {"max_delete_documents": 0}, **more}


def decide(project: CrawlProject, action: str, *options: str) -> dict[str, Any]:
    done = project.command("quarantine", action, "demo", *options, "--json")
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def listed(project: CrawlProject, *options: str) -> list[dict[str, Any]]:
    done = project.command("quarantine", "list", "demo", *options, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_verified(project: CrawlProject) -> bool:
    done = project.command("verify", "demo", "--json")
    return bool(json.loads(done.stdout)["ok"])


def write(project: CrawlProject, text: str, head: str = "") -> None:
    for name, path in zip(NAMES, PATHS, strict=True):
        project.site.set_page(HOST, path, page(f"{text} {name}", head=head))
