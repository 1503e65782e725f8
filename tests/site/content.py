"""Reads the site's content: files under content/STAGE/HOST/, and content/STAGE.toml for what is special.

A file is the page of its path (``index.html`` of its folder); ``NAME.pdf.txt`` becomes a PDF. In texts
``@PORT@`` is the site's port and ``@NAV@`` the host's ``_nav.html``. A ``[[page]]`` table of the manifest
names a ``url`` (host, path and query) and what differs from the default: ``file`` (of another page),
``type`` ("" for none), ``encode``, ``status``, ``headers``, ``encoding``, ``links`` (of a PDF),
``validators`` (false: none), ``modified`` (a date), ``text`` (the body itself), ``repeat_to_bytes``, ``compress``
(true: a gzip file).
"""

from __future__ import annotations

import gzip
import tomllib
import zlib
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Final

from tests.site.pages import Page, etag_of
from tests.site.pdf import make_pdf

CONTENT: Final = Path(__file__).parent / "content"
Key = tuple[str, str]
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".pdf": "application/pdf",
    ".acm": "application/x-unknown",
}


def stages() -> list[str]:
    """The names that can be applied on top of ``base``."""
    return sorted(path.stem for path in CONTENT.glob("*.toml") if path.stem != "base")


def read_stage(stage: str, port: int) -> dict[Key, Page]:
    """The pages of a stage by (host, path with query), for a site on ``port``."""
    manifest = tomllib.loads((CONTENT / f"{stage}.toml").read_text("utf-8").replace("@PORT@", str(port)))
    date: datetime = manifest["date"]
    special = {_key(entry["url"]): entry for entry in manifest.get("page", [])}
    files = _files(CONTENT / stage, port)
    pages: dict[Key, Page] = {}
    for key in {**files, **special}:
        entry = special.get(key, {})
        source = _key(entry["file"]) if "file" in entry else key
        pages[key] = _page(key, entry, files.get(source, ""), date)
    return pages


def _files(folder: Path, port: int) -> dict[Key, str]:
    found: dict[Key, str] = {}
    for host in sorted(path for path in folder.iterdir() if path.is_dir()):
        nav_file = CONTENT / "base" / host.name / "_nav.html"
        nav = nav_file.read_text("utf-8").strip() if nav_file.exists() else ""
        for path in sorted(host.rglob("*.*")):
            if path.name == "_nav.html":
                continue
            name = "/" + path.relative_to(host).as_posix().removesuffix("index.html").replace(".pdf.txt", ".pdf")
            text = path.read_text("utf-8").replace("@NAV@", nav).replace("@PORT@", str(port))
            found[host.name, name] = text
    return found


def _key(url: str) -> Key:
    host, _, path = url.partition("/")
    return host, "/" + path


def _page(key: Key, entry: dict[str, Any], text: str, date: datetime) -> Page:
    suffix = Path(key[1].partition("?")[0]).suffix
    text = entry.get("text", text)
    body = _body(text, suffix, entry)
    validators = entry.get("validators", "status" not in entry)
    modified = entry.get("modified") or date - timedelta(minutes=zlib.crc32("".join(key).encode()) % 150_000)
    return Page(
        body=body,
        content_type=entry.get("type", _TYPES.get(suffix, _TYPES[".html"])) or None,
        status=entry.get("status", 200),
        headers=tuple(entry.get("headers", {}).items()),
        etag=etag_of(body) if validators else None,
        last_modified=format_datetime(modified.astimezone(UTC), usegmt=True) if validators else None,
        encoding=entry.get("encoding"),
    )


def _body(text: str, suffix: str, entry: dict[str, Any]) -> bytes:
    if suffix == ".pdf":
        return make_pdf(text, title=text.strip().split("\n", 1)[0], links=entry.get("links", ()))
    wanted = entry.get("repeat_to_bytes", 0)
    if wanted:
        start, rows, end = text.split("<!-- repeat -->")
        count = wanted // len(rows.encode("utf-8")) + 1
        text = start + "".join(rows.replace("@NUMBER@", str(number)) for number in range(1, count + 1)) + end
    encoded = text.encode(entry.get("encode", "utf-8"))
    return gzip.compress(encoded, mtime=0) if entry.get("compress") else encoded
