"""What commands share about jobs: that of a crawl, which ``tick``, ``run`` or a scrapyd started, and its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from searchcrawl import clock
from searchcrawl.cli.command import UsageError
from searchcrawl.cli.output import error_lines, print_error
from searchcrawl.exceptions import SearchcrawlError, StoreError
from searchcrawl.exit_codes import Exit, exit_of
from searchcrawl.sources.project import Project
from searchcrawl.sources.secrets import redact
from searchcrawl.store.opening import use_store
from searchcrawl.store.runs import job_table, run_table
from searchcrawl.terminal import to_one_line

#: The argument of a spider with which scrapyd names each of its jobs.
JOB: Final = "_job"


def find_job(arguments: Sequence[str]) -> str:
    """The token of the try that a crawl belongs to; "" for one that was started in another way."""
    pairs = dict(pair.partition("=")[::2] for pair in arguments)
    token = pairs.get(JOB, "")
    return token if job_table.is_token(token) else ""


def list_overrides(token: str) -> list[str]:
    """What the schedule says of the run of a try, as ``--set`` has it."""
    mode = job_table.find_mode(token)
    return [f"mode={mode}"] if mode else []


@contextmanager
def note_failed_job(load_project: Callable[[], Project], name: str, token: str) -> Iterator[None]:
    """Notes in the store that a crawl of a try failed before, or instead of, its end; errors go on."""
    try:
        yield
    except (UsageError, SearchcrawlError, OSError) as error:
        if token:
            code = Exit.WRONG_USE if isinstance(error, UsageError) else exit_of(error)
            _note(load_project(), name, token, code, to_one_line(redact(" ".join(error_lines(error)))))
        raise


def _note(project: Project, name: str, token: str, code: Exit, text: str) -> None:
    try:
        with use_store(project) as database:
            source_id = database.read(run_table.find_source, name)
            if source_id is not None:
                database.write(
                    lambda opened: job_table.end(
                        opened, source_id, token, exit_code=code, error=text, now_ms=clock.now_ms()
                    )
                )
    except StoreError as error:
        # Who started it sees that its process ended.
        print_error(error)
