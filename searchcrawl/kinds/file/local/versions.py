"""What tells one version of a file from another: its token, of what stat(2) says. Compared for equality only.

Who may see it is told apart from that. A change of its own mode is one of its time of change as well, and nobody can say whether
its bytes were changed at the same moment: they are read. Those of the folders above say nothing of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from searchcrawl.answer_headers import Level
from searchcrawl.kinds.file.local import file_systems
from searchcrawl.kinds.file.posix import digest_levels

#: A file that was changed less than this ago may change once more within the same moment.
_RACY_NS = 2_000_000_000
#: The clock of a server may be so far ahead: a time beyond is no time of writing.
_AHEAD_NS = 3_600_000_000_000


class Tokens:
    """Builds the tokens of files on a file system of this number, in folders that let these users pass (None: it does not matter)."""

    def __init__(self, file_system: int, levels: Sequence[Level] | None) -> None:
        self._has_times = file_systems.has_change_times(file_system)
        self._has_inodes = file_systems.has_inodes(file_system)
        self._levels = None if levels is None else digest_levels(levels)

    def build(self, facts: os.stat_result, now_ns: int) -> bytes:
        """The token of what a file holds at a moment that is not after its stat(2); empty for one that is too young."""
        modified, changed = facts.st_mtime_ns, facts.st_ctime_ns
        # Where the time of change is the machine's own, programs cannot set it.
        written, latest = (changed, changed) if self._has_times else (modified, now_ns + _AHEAD_NS)
        if now_ns - _RACY_NS < written <= latest:
            return b""
        token = f"{facts.st_size} {modified}"
        if self._has_times:
            token += f" {changed}"
        if self._has_inodes:
            token += f" {facts.st_ino}"
        return token.encode("ascii")

    def describe(self, facts: os.stat_result) -> bytes:
        """The token of who may see a file, and whose it is; empty where it does not matter."""
        if self._levels is None:
            return b""
        return f"{facts.st_mode:o} {facts.st_uid} {facts.st_gid} {self._levels}".encode("ascii")


def is_same(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether a file did not change between two looks at it while it was open."""
    return (one.st_size, one.st_mtime_ns, one.st_ctime_ns) == (other.st_size, other.st_mtime_ns, other.st_ctime_ns)
