"""What only Linux says of files: the kind of their file system, with what it promises (statfs(2)), and when they were made."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from functools import cache
from typing import Any, Final

#: Not known, as on other systems.
UNKNOWN: Final = 0
#: Local ones, of which times of change and inodes hold (linux/magic.h, and the sources of ZFS).
_EXT, _XFS, _BTRFS, _TMPFS, _ZFS = 0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x2FC12FC1
_F2FS, _JFS, _REISER, _BCACHEFS, _RAMFS = 0xF2F52010, 0x3153464A, 0x52654973, 0xCA451A4E, 0x858458F6
_LOCAL: Final = frozenset({_EXT, _XFS, _BTRFS, _TMPFS, _ZFS, _F2FS, _JFS, _REISER, _BCACHEFS, _RAMFS})
#: Of several layers: the inode and the device of a file may be others after the next mount, or once it was written.
OVERLAY: Final = 0x794C7630
#: What is no file there, or another one each time.
_SPECIAL: Final = {
    0x9FA0: "proc",
    0x62656572: "sysfs",
    0x1CD1: "devpts",
    0x27E0EB: "cgroup",
    0x63677270: "cgroup2",
    0x64626720: "debugfs",
    0x74726163: "tracefs",
    0x73636673: "securityfs",
    0x62656570: "configfs",
    0xCAFE4A11: "bpf",
    0x6165676C: "pstore",
    0x19800202: "mqueue",
    0xDE5E81E4: "efivarfs",
    0x65735543: "fusectl",
    0xF97CFF8C: "selinuxfs",
    0x42494E4D: "binfmt_misc",
    0x6E736673: "nsfs",
}
#: Larger than the struct of any machine.
_STATFS_BYTES: Final = 512
#: linux/stat.h: the struct, what is asked for, and where it is in it.
_STATX_BYTES: Final = 256
_AT_EMPTY_PATH: Final = 0x1000
_STATX_BTIME: Final = 0x800
_BIRTH: Final = struct.Struct("=qI")
_BIRTH_AT: Final = 80


def find_type(descriptor: int) -> int:
    """The number of the file system that an open file or folder is on, or UNKNOWN; raises OSError."""
    fstatfs = _load("fstatfs", ctypes.c_int, ctypes.c_char_p)
    if fstatfs is None:
        return UNKNOWN
    found = ctypes.create_string_buffer(_STATFS_BYTES)
    if fstatfs(descriptor, found):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    # The first field is the type; where it is signed only the low half counts.
    return int.from_bytes(found.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder) & 0xFFFFFFFF


def find_birth_ns(descriptor: int) -> int | None:
    """When an open file was made, in nanoseconds since 1970; None where its file system does not say (statx(2))."""
    statx = _load("statx", ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p)
    found = ctypes.create_string_buffer(_STATX_BYTES)
    if statx is None or statx(descriptor, b"", _AT_EMPTY_PATH, _STATX_BTIME, found):
        return None
    has_birth = int.from_bytes(found.raw[:4], sys.byteorder) & _STATX_BTIME
    seconds, nanoseconds = _BIRTH.unpack_from(found.raw, _BIRTH_AT)
    return seconds * 1_000_000_000 + nanoseconds if has_birth else None


@cache
def _load(name: str, *arguments: Any) -> Any:
    """A function of the C library; None where it has none of this name, or is not that of Linux."""
    found = getattr(ctypes.CDLL(None, use_errno=True), name, None) if sys.platform == "linux" else None
    if found is not None:
        found.argtypes = arguments
    return found


def find_special(kind: int) -> str | None:
    """The name of a file system that holds no files of people; None for all others."""
    return _SPECIAL.get(kind)


def has_change_times(kind: int) -> bool:
    """Whether the time of a change (ctime) is the machine's own, and moves with each change."""
    return kind in _LOCAL or kind == OVERLAY


def has_inodes(kind: int) -> bool:
    """Whether the number of a file is its own as long as it is there."""
    return kind in _LOCAL
