"""The lock on the folder of the local index, where its file system has none."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import closing
from pathlib import Path

import pytest

from searchcrawl.exceptions import IndexUnavailable
from searchcrawl.index.local.receiver import LocalReceiver
from tests.index_documents import batch, document


def test_deliver_when_the_file_system_has_no_locks_then_the_index_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(_handle: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)

    with (
        closing(LocalReceiver(tmp_path)) as receiver,
        pytest.raises(IndexUnavailable, match=f"{tmp_path}: No locks available"),
    ):
        receiver.deliver(batch(document("1", content="text")))
