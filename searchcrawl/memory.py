"""Large blocks of memory go back to the system when they are freed."""

from __future__ import annotations

import ctypes
from typing import Final

# malloc.h of glibc
_M_MMAP_THRESHOLD: Final = -3
_LARGE_BYTES: Final = 2 << 20


def return_large_blocks() -> None:
    """Fixes from which size on a block has a mapping of its own; does nothing where malloc is not glibc's.

    By itself glibc raises that size to the largest block that was freed: bodies of pages then stay in the heap of each
    thread that had them, and a few of 30 MB double the memory of a crawl (X-R13).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
