"""Puts the version into the wheel: what is installed has no repository to ask."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class VersionHook(BuildHookInterface):
    """Adds ``searchcrawl/_built.py`` to a wheel; an editable installation goes on asking the repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the build; ``version`` is the kind of wheel."""
        if version == "standard":
            self._folder = tempfile.TemporaryDirectory()
            file = Path(self._folder.name, "built.py")
            file.write_text(f'"""Made by the build."""\n\nVERSION = "{self.metadata.version}"\n', encoding="utf-8")
            build_data["force_include"][str(file)] = "searchcrawl/_built.py"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called after it."""
        if version == "standard":
            self._folder.cleanup()
