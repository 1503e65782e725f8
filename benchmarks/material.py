"""The pages of the benchmark: documentation packages of the running Debian release, unpacked and never installed."""

from __future__ import annotations

import html
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

#: Metapackages that depend on the release's versioned package.
_METAPACKAGES: Final = frozenset({"python3-doc", "postgresql-doc"})
DOCS: Final = "docs"
#: The packages of each corpus: pages of 25 KB; small ones, of 14 KB; those of a generated API reference, of 52 KB; a site of few
#: pages, of which the start of a crawl is a large part.
CORPORA: Final[Mapping[str, Sequence[str]]] = {
    DOCS: ("python3-doc", "postgresql-doc", "cmake-doc", "git-doc"),
    "small": ("libboost1.81-doc", "sqlite3-doc", "octave-doc"),
    "large": ("wx3.2-doc",),
    "few": ("libgtk-3-doc",),
}


def package_names(corpus: str = DOCS) -> list[str]:
    """Names of the release's documentation packages, e.g. ``python3.11-doc``."""
    return [_versioned(name) if name in _METAPACKAGES else name for name in CORPORA[corpus]]


def _versioned(metapackage: str) -> str:
    answer = subprocess.run(["apt-cache", "depends", metapackage], capture_output=True, text=True, check=True).stdout
    pattern = metapackage.replace("3-", r"3\.\d+-") if "3-" in metapackage else metapackage + r"-\d+"
    found = re.search(rf"Depends: ({pattern})\s", answer)
    if found is None:
        raise SystemExit(f"bench: {metapackage} names no versioned package; is `apt-get update` due?")
    return found[1]


def result_name(corpus: str) -> str:
    """The file with the figures of a corpus."""
    return "result.json" if corpus == DOCS else f"result-{corpus}.json"


def prepare_site(work: Path, corpus: str = DOCS) -> Path:
    """Downloads and unpacks what is missing under ``work``; returns the web root with its ``index.html``."""
    site = work / ("site" if corpus == DOCS else f"site-{corpus}")
    site.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0 and not any(work.glob("debs/*.deb")):
        subprocess.run(["apt-get", "update", "-qq"], check=True)
    names = package_names(corpus)
    for name in names:
        link = site / name
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(os.path.relpath(_html_root(unpacked(work, name)), site), target_is_directory=True)
    _write_index(site, names)
    return site


def unpacked(work: Path, name: str) -> Path:
    """The folder below ``work`` with what a package holds; it is downloaded and unpacked the first time."""
    target = work / "unpacked" / name
    if target.is_dir():
        return target
    debs = work / "debs"
    debs.mkdir(parents=True, exist_ok=True)
    if not any(debs.glob(f"{name}_*.deb")):
        subprocess.run(["apt-get", "download", "-qq", name], cwd=debs, check=True, stderr=subprocess.DEVNULL)
    partial = target.with_suffix(".partial")
    partial.mkdir(parents=True, exist_ok=True)
    subprocess.run(["dpkg", "-x", str(next(debs.glob(f"{name}_*.deb"))), str(partial)], check=True)
    return partial.rename(target)


def _html_root(folder: Path) -> Path:
    pages = [path for path in folder.glob("usr/share/**/index.html") if path.is_file()]
    if not pages:
        raise SystemExit(f"bench: {folder.name} has no index.html")
    least = min(len(path.parts) for path in pages)
    # Of several manuals side by side the largest.
    return max((path.parent for path in pages if len(path.parts) == least), key=_count_pages)


def _count_pages(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*.html"))


def _write_index(site: Path, names: list[str]) -> None:
    items = "\n".join(f'<li><a href="{html.escape(name)}/">{html.escape(name)}</a></li>' for name in names)
    text = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Documentation</title></head>\n'
        f"<body><h1>Documentation packages</h1>\n<ul>\n{items}\n</ul></body></html>\n"
    )
    index = site / "index.html"
    # Rewritten only when it differs: its date is a validator.
    if not index.exists() or index.read_text(encoding="utf-8") != text:
        index.write_text(text, encoding="utf-8")
