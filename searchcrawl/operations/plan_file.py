"""The file of a plan: what an edit would change, and of which source file and table that was said (L2)."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from searchcrawl.durable import make_folder, sync_folder
from searchcrawl.exceptions import PlanRefused
from searchcrawl.sources.config import Source
from searchcrawl.sources.effective import list_effective_values
from searchcrawl.sources.fingerprint import VERSIONS
from searchcrawl.sources.loading import read_start_urls
from searchcrawl.sources.project import Project

_SUFFIX: Final = ".json"


@dataclass(slots=True, kw_only=True)
class EditPlan:
    """What ``plan`` found. ``to_fetch`` URLs are left to a run, ``send`` documents differ, ``undecided`` ones wait for a
    visit that does not fail, ``past_limits`` says whether the removals pass the limits on deleting.

    ``configuration`` and ``fence`` are those of the source file and of the table, which has another fence after each
    command that wrote to it. ``run`` is that of ``apply``, once it has begun; ``ended`` says that only its removals are left.
    """

    plan: str
    source: str
    enter: int = 0
    leave: int = 0
    reprocess: int = 0
    refetch: int = 0
    send: int = 0
    to_fetch: int = 0
    undecided: int = 0
    past_limits: bool = False
    edited: list[str] = field(default_factory=list)
    reasons: list[dict[str, Any]] = field(default_factory=list)
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    configuration: str = ""
    fence: int = 0
    run: int | None = None
    ended: bool = False

    def describe(self) -> dict[str, Any]:
        """What ``plan --json`` prints."""
        inner = {"configuration", "fence", "run", "ended"}
        return {name: value for name, value in asdict(self).items() if name not in inner}


def digest_configuration(project: Project, source: Source) -> str:
    """A digest of everything in the files of a project that decides what a plan says; without secrets."""
    values = {key: entry["value"] for key, entry in list_effective_values(project, source).items()}
    text = json.dumps(
        [values, sorted(read_start_urls(project, source)), source.forgotten, dict(VERSIONS)],
        sort_keys=True,
        default=str,
    )
    return hashlib.sha256(text.encode()).hexdigest()


def save_plan(project: Project, plan: EditPlan) -> Path:
    """Writes a plan durably, in the place of all earlier ones of its source; returns its path."""
    folder = project.plans_dir
    make_folder(folder)
    # The table has another fence since: they would be refused.
    drop_plans(project, plan.source, but=plan.plan)
    path = folder / f"{plan.plan}{_SUFFIX}"
    written = path.with_suffix(".new")
    with written.open("w", encoding="utf-8") as file:
        json.dump(asdict(plan), file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    written.replace(path)
    sync_folder(folder)
    return path


def drop_plans(project: Project, name: str, *, but: str | None = None) -> None:
    """Deletes the plans of a source: they name its URLs."""
    for old in project.plans_dir.glob(f"*{_SUFFIX}"):
        source, _, fence = old.stem.rpartition("-")
        if source == name and fence.isdigit() and old.stem != but:
            old.unlink(missing_ok=True)


def list_plan_names(project: Project) -> list[str]:
    """The plans that may be applied, sorted."""
    return sorted(path.stem for path in project.plans_dir.glob(f"*{_SUFFIX}"))


def load_plan(project: Project, name: str) -> EditPlan:
    """The plan of a name or a path, as ``plan`` showed it; raises PlanRefused."""
    path = Path(name) if name.endswith(_SUFFIX) else project.plans_dir / f"{name}{_SUFFIX}"
    try:
        found = json.loads(path.read_text("utf-8"))
        return EditPlan(**found)
    except FileNotFoundError:
        raise PlanRefused(f"there is no plan {name}: searchcrawl plan NAME makes one") from None
    except (OSError, ValueError, TypeError) as error:
        raise PlanRefused(f"{path}: this is no plan: {error}") from error
