"""A project with a source on a share of a real Samba."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.acceptance.support_files import FileProject
from tests.smb_server import PASSWORD, USER, RunningSmb


class SmbProject(FileProject):
    """A folder with a project, and the share that its source ``files`` reads; the share is filled as a folder of this machine."""

    def __init__(
        self,
        folder: Path,
        server: RunningSmb,
        *,
        share: str = "share",
        below: str = "",
        user: str = USER,
        **tables: Any,
    ) -> None:
        self.server = server
        served = "/".join(filter(None, (f"smb://127.0.0.1:{server.port}", share, below)))
        super().__init__(folder, served=served, access={"username": user, "password": PASSWORD}, **tables)
        self.root = server.folder / share / below
        self.root.mkdir(exist_ok=True)

    def edit(self, *, file: dict[str, Any] | None = None, **tables: Any) -> None:
        super().edit(file=file, **{"fetch": {"retries": 0}, **tables})
