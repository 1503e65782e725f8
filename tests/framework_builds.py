"""Applications of React, Vue and Svelte as their tools build them: kept as data, and built anew where Node is (C10).

    python -m tests.framework_builds

builds them from ``tests/frameworks`` and keeps them there: what is to be done after each edit of them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FRAMEWORKS: Final = ("react", "vue", "svelte")
SOURCES: Final = Path(__file__).parent / "frameworks"
KEPT: Final = SOURCES / "kept.zip"
_MADE: Final = frozenset({"node_modules", ".svelte-kit", "kept.zip", "README.md"})
_LICENSES: Final = "LICENSES.txt"
#: The packages of which there is something in an application; all have the licence of MIT.
_BUNDLED: Final = (
    "react", "react-dom", "react-router", "react-router-dom", "scheduler", "cookie", "set-cookie-parser",
    "vue", "@vue/reactivity", "@vue/runtime-core", "@vue/runtime-dom", "@vue/shared", "vue-router",
    "svelte", "@sveltejs/kit", "devalue", "esm-env",
)  # fmt: skip
_MOMENT: Final = (2024, 3, 5, 10, 0, 0)
_SECONDS: Final = 300


class NodeMissing(Exception):
    """Nothing can be built here; the text says what is missing."""


def read_build(archive: Path, framework: str) -> dict[str, bytes]:
    """The files of an application by path, with "/index.html"; ``archive`` is KEPT or of ``build_all``."""
    with zipfile.ZipFile(archive) as packed:
        names = [name for name in packed.namelist() if name.startswith(f"{framework}/")]
        return {name.removeprefix(framework): packed.read(name) for name in names}


def build_all() -> Path:
    """The archive of all applications, built once for each state of their sources; raises NodeMissing."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NodeMissing(f"{program} is not installed (scripts/bootstrap node)")
    above = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "searchcrawl-tests"
    archive = above / f"frameworks-{_digest()}.zip"
    if not archive.is_file():
        above.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=above) as made:
            folder = Path(made)
            _build(folder)
            _pack(folder, folder / "packed.zip")
            # Another process may have been faster: its archive is the same.
            (folder / "packed.zip").replace(archive)
    return archive


def _digest() -> str:
    """What names a state of the sources, and of how they are built."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for path in _list_sources():
        digest.update(f"{path.relative_to(SOURCES).as_posix()} ".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _list_sources() -> list[Path]:
    found = (path for path in SOURCES.rglob("*") if _MADE.isdisjoint(path.relative_to(SOURCES).parts))
    return sorted(path for path in found if path.is_file())


def _build(folder: Path) -> None:
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns(*_MADE), dirs_exist_ok=True)
    installed = _call(folder, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    if installed.returncode:
        raise NodeMissing(f"the packages of tests/frameworks cannot be installed: {installed.stderr[-500:]}")
    for framework in FRAMEWORKS:
        out = folder / "out" / framework
        built = _call(folder / framework, "npx", "--no-install", "vite", "build", "--outDir", str(out), OUT=str(out))
        assert built.returncode == 0, built.stderr


def _call(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        check=False,
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )


def _pack(folder: Path, archive: Path) -> None:
    out = folder / "out"
    members: dict[str, bytes] = {_LICENSES: _join_licenses(folder).encode()}
    members |= {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    _write(archive, members)


def _write(archive: Path, members: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, content in sorted(members.items()):
            info = zipfile.ZipInfo(name, _MOMENT)
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, content)


def _join_licenses(folder: Path) -> str:
    packages = [folder / "node_modules" / name for name in _BUNDLED]
    texts = ["\n".join(path.read_text("utf-8") for path in sorted(package.glob("LICENSE*"))) for package in packages]
    return "\n".join(f"==== {name}\n\n{text}" for name, text in zip(_BUNDLED, texts, strict=True))


if __name__ == "__main__":
    shutil.copyfile(build_all(), KEPT)
