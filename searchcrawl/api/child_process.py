"""Runs a command in a process of its own, and gives its answer and its error to a program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import orjson

from searchcrawl import exceptions
from searchcrawl.environment import Variable
from searchcrawl.exceptions import ConfigurationError, Exit, InvalidFile, SearchcrawlError
from searchcrawl.sources.loading import PROJECT_VARIABLE
from searchcrawl.sources.secrets import redact

#: What a command that wrote no error down failed with, by its exit code; StoreError for all others.
_FAILURES: Final[Mapping[int, type[SearchcrawlError]]] = {
    Exit.BUSY: exceptions.SourceBusy,
    Exit.INDEX_AWAY: exceptions.DeliveryError,
    Exit.ENDED_EARLY: exceptions.SourceSuspended,
}


class EndedCommand(NamedTuple):
    """The exit code of a command, the objects that it answered with, and its lines on standard error."""

    code: int
    answers: list[dict[str, Any]]
    messages: tuple[str, ...]


def run_command(root: Path, command: str, *arguments: str) -> EndedCommand:
    """Runs a command of the project in ``root``; raises the error of one without an answer, ValueError for a wrong use."""
    with TemporaryDirectory(prefix="searchcrawl-") as folder:
        error_file = Path(folder) / "error"
        ended = subprocess.run(  # noqa: S603  # our own command
            [sys.executable, "-m", "searchcrawl", command, "--json", *arguments],
            cwd=root,
            env=build_environment(root) | {Variable.ERROR_FILE: str(error_file)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        messages = tuple(ended.stderr.decode("utf-8", "replace").splitlines())
        if not ended.stdout and (error := read_error(error_file, messages)) is not None:
            raise error
    if not ended.stdout and ended.returncode:
        text = "; ".join(messages) or f"searchcrawl {command} ended with {ended.returncode}"
        if ended.returncode == Exit.WRONG_USE:
            raise ValueError(messages[-1] if messages else text)
        if ended.returncode == Exit.CONFIGURATION:
            raise ConfigurationError("", "", text)
        raise _FAILURES.get(ended.returncode, exceptions.StoreError)(text)
    return EndedCommand(ended.returncode, [orjson.loads(line) for line in ended.stdout.splitlines()], messages)


def build_environment(root: Path) -> dict[str, str]:
    """What a command of the project in ``root`` gets: this package, and no settings of another project."""
    paths = filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")])
    kept = {name: value for name, value in os.environ.items() if name != Variable.SETTINGS_MODULE}
    return kept | {PROJECT_VARIABLE: str(root), "PYTHONPATH": os.pathsep.join(paths)}


def write_error(path: Path, error: Exception) -> None:
    """Writes an error of ``exceptions`` down for ``read_error``, without secrets; it is on standard error in any case."""
    told: dict[str, Any] = {"kind": type(error).__name__, "text": redact(str(error))}
    if isinstance(error, ConfigurationError):
        told["errors"] = [[each.file, each.key, redact(each.message)] for each in error.errors]
    try:
        path.write_bytes(orjson.dumps(told))
    except OSError:
        return


def read_error(path: Path, messages: tuple[str, ...] = ()) -> SearchcrawlError | None:
    """The error that a command wrote down; None for none. One of the system is a StoreError, with what the command said."""
    try:
        told = orjson.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    kind = getattr(exceptions, told["kind"], None)
    if not (isinstance(kind, type) and issubclass(kind, SearchcrawlError)):
        return exceptions.StoreError("; ".join(messages) or told["text"])
    if issubclass(kind, ConfigurationError):
        errors = [ConfigurationError(*each) for each in told["errors"]]
        return InvalidFile(errors) if issubclass(kind, InvalidFile) else kind(*told["errors"][0])
    return kind(told["text"])
