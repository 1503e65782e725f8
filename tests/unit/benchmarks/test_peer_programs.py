"""Peers that cannot be built are named with the reason, and end nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.peer_programs import PEERS, PeerAbsent


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.letter)
def test_build_when_tools_are_missing_then_the_reason_names_them(
    peer: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(PeerAbsent, match="is not installed"):
        peer.build(tmp_path)  # type: ignore[attr-defined]


def test_build_when_a_tool_fails_then_the_reason_is_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho 'no route to host' >&2\nexit 3\n", encoding="utf-8")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    colly = next(peer for peer in PEERS if peer.letter == "e")

    with pytest.raises(PeerAbsent, match="go failed: no route to host"):
        colly.build(tmp_path)
