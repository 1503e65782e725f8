"""Ends a run whose process takes too much memory (MEMUSAGE_LIMIT_MB), by what this process took itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from scrapy.extensions.memusage import MemoryUsage

_STATUS: Final = Path("/proc/self/status")
_PEAK: Final = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)


class MemoryExtension(MemoryUsage):
    """Scrapy's, but for whoever starts crawls: ``getrusage`` counts the peak of the process before ``exec``, too."""

    def get_virtual_size(self) -> int:
        """The peak of resident memory in bytes."""
        peak = _PEAK.search(_STATUS.read_text(encoding="ascii", errors="replace")) if _STATUS.exists() else None
        return int(peak[1]) * 1024 if peak else super().get_virtual_size()
