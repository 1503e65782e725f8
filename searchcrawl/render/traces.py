"""What Playwright writes of a page for its viewer, without what lets somebody in (X-N7, X-N10)."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any, Final

_SECRET: Final = frozenset({"authorization", "cookie", "proxy-authorization", "set-cookie"})


def clean_trace(file: Path) -> None:
    """Takes cookies and credentials out of the requests in a trace; raises OSError and BadZipFile."""
    cleaned = file.with_name(f".{file.name}.part")
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(cleaned, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            data = source.read(entry)
            target.writestr(entry, _clean(data) if entry.filename.endswith(".network") else data)
    cleaned.replace(file)


def _clean(lines: bytes) -> bytes:
    return b"".join(json.dumps(_clean_value(json.loads(line))).encode() + b"\n" for line in lines.splitlines() if line)


def _clean_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_clean_value(each) for each in value if not _is_secret(each)]
    if isinstance(value, dict):
        return {key: [] if key == "cookies" else _clean_value(each) for key, each in value.items()}
    return value


def _is_secret(value: Any) -> bool:
    return isinstance(value, dict) and str(value.get("name", "")).lower() in _SECRET
