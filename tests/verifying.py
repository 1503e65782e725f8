"""What ``verify --json`` prints, as an object."""

from __future__ import annotations

from typing import Any

from searchcrawl.comparison.differences import KINDS, Treatment
from searchcrawl.comparison.differences import verify as open_verified
from searchcrawl.store.engine.database import Database


def verify(
    database: Database, receiver: Any, sources: list[str], *, only: str | None, treat: Treatment | None = None
) -> dict[str, Any]:
    with open_verified(database, receiver, sources, only=only, treat=treat) as found:
        lists = {kind: list(found.describe(kind)) for kind in KINDS}
        return {"ok": found.ok, **lists, "repaired": found.repaired}
