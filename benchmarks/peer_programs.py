"""The peers that are no Python: built where their tools are, named as absent with the reason where not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROGRAMS: Final = Path(__file__).resolve().parent / "peers"
#: So much heap as a small server of its own would give it.
_JAVA: Final = ("java", "-Xmx512m")


class PeerAbsent(Exception):
    """A peer cannot be built here; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A crawler beside us: ``build`` makes it under the folder given and returns the start of its command.

    The command takes a start URL, the URL of a core, the number of requests in flight, and a folder of its own.
    """

    letter: str
    name: str
    build: Callable[[Path], Sequence[str]]


def _build_go(program: str, *options: str) -> Callable[[Path], Sequence[str]]:
    def build(folder: Path) -> Sequence[str]:
        binary = folder / program / program
        _run_tool([_tool("go", "Go"), "build", "-o", str(binary), "."], cwd=PROGRAMS / program)
        return [str(binary), *options]

    return build


def _build_java(program: str, main_class: str) -> Callable[[Path], Sequence[str]]:
    def build(folder: Path) -> Sequence[str]:
        _tool("java", "a JDK")
        command = [_tool("mvn", "Maven"), "-q", "-B", "-ntp", f"-DbuildFolder={folder / program}", "process-classes"]
        _run_tool(command, cwd=PROGRAMS / program)
        # Classes that are copied beside a jar of the same name come first.
        return [*_JAVA, "-cp", f"{folder / program / 'classes'}:{folder / program / 'lib'}/*", main_class]

    return build


def _tool(name: str, what: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise PeerAbsent(f"{what} is not installed ({name})")
    return found


def _run_tool(command: Sequence[str], *, cwd: Path) -> None:
    done = subprocess.run(
        command, cwd=cwd, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if line.strip()]
        raise PeerAbsent(f"{Path(command[0]).name} failed: {' / '.join(errors[:3])[:500]}")


PEERS: Final = (
    Peer(letter="e", name="Colly 2.3 (Go)", build=_build_go("colly")),
    Peer(letter="f", name="crawler4j 4.4 (Java)", build=_build_java("crawler4j", "Crawler4jPeer")),
    Peer(letter="g", name="Norconex 2.9.1 (Java)", build=_build_java("norconex", "NorconexPeer")),
    Peer(letter="h", name="Colly 2.3 behind a set of its own", build=_build_go("colly", "-own-set")),
)
