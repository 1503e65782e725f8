"""What figures were taken on: the machine, and the versions of what was measured."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
_PACKAGES: Final = ("scrapy", "twisted", "aiohttp", "sqlalchemy", "selectolax", "tantivy", "pysolr")


def machine() -> dict[str, Any]:
    """Processor, memory and versions; what is not installed is left out."""
    versions = {"Python": platform.python_version()} | {name: version(name) for name in _PACKAGES}
    for name, command, pattern in (
        ("Java", ["java", "-version"], r'version "([^"]+)"'),
        ("Go", ["go", "version"], r"go(\d\S+)"),
        ("nginx", [shutil.which("nginx") or "/usr/sbin/nginx", "-v"], r"nginx/(\S+)"),
    ):
        if found := _version_of(command, pattern):
            versions[name] = found
    pom = (ROOT / "solr" / "server" / "pom.xml").read_text(encoding="utf-8")
    if found_solr := re.search(r"<solr\.version>([^<]+)<", pom):
        versions["Solr"] = found_solr[1]
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpus": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(memory_bytes / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "versions": versions,
    }


def _version_of(command: list[str], pattern: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    found = re.search(pattern, done.stdout + done.stderr)
    return found[1] if found else None


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
