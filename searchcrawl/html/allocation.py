"""How the C library keeps memory: a tree is made and freed for each page."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Final

# Numbers of <malloc.h>.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
#: Freed memory that stays with the process; a page's tree takes a few megabytes at most.
_KEPT_BYTES: Final = 16 * 2**20
_MAPPED_BYTES: Final = 2 * 2**20


@cache
def keep_freed_memory() -> None:
    """Lets the process keep what a page's tree leaves free, for the next page's tree.

    By default glibc gives it back after each page, and the kernel then clears fresh memory for
    the next: some twenty page faults a page. Holds for the whole process, and does nothing with
    other C libraries.
    """
    if sys.platform != "linux":
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_TRIM_THRESHOLD, _KEPT_BYTES)
        # Set too, as it stops growing by itself once the other is set.
        set_option(_MMAP_THRESHOLD, _MAPPED_BYTES)
