from __future__ import annotations

import subprocess
import sys

_CHILD = (
    "from scrapy.utils.test import get_crawler;"
    "from searchcrawl.extensions.memory_extension import MemoryExtension;"
    "print(MemoryExtension(get_crawler()).get_virtual_size())"
)
_PARENT = (
    "import os, sys;"
    "much = bytearray(b'x') * 400_000_000;"
    "sys.stdout.flush();"
    "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1]])"
)


def test_memory_when_the_process_was_a_large_one_before_then_counts_its_own_alone() -> None:
    large = subprocess.run([sys.executable, "-c", _PARENT, _CHILD], capture_output=True, text=True, check=True)

    assert 20_000_000 < int(large.stdout) < 300_000_000
