"""What the code of users raises, as an ordinary error (K4).

Such code may raise what ends a process or a task, as ``exit()`` does, a cancelled task, or a panic of an extension
module. It is to cost what any other error costs. Ctrl-C alone stays what it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

_PACKAGE: Final = "searchcrawl."


def is_ours(name: str) -> bool:
    """Whether a module, or what is named by its path, is part of this package, and neither of a user nor of a library."""
    return name.startswith(_PACKAGE)


class UserCodeError(Exception):
    """Stands for something that is raised, and is no Exception; reads as it does."""

    def __init__(self, raised: BaseException) -> None:
        self.raised = raised
        super().__init__(raised)

    def __str__(self) -> str:
        return str(self.raised)

    def __repr__(self) -> str:
        return repr(self.raised)


@contextmanager
def ordinary_errors() -> Iterator[None]:
    """Has the code of a user raise an Exception or KeyboardInterrupt, and nothing else."""
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise UserCodeError(error) from error


async def wait_for_user_code(answer: Coroutine[Any, Any, T], seconds: float | None) -> T:
    """What the code of a user answers, which raises as in ``ordinary_errors``.

    Raises TimeoutError where it takes longer than ``seconds`` (None: it is waited for).
    """
    task = asyncio.current_task()
    try:
        async with asyncio.timeout(seconds) as limit:
            return await answer
    except TimeoutError:
        if limit.expired():
            raise TimeoutError(f"no answer within {seconds:g} s") from None
        raise
    except (Exception, KeyboardInterrupt):
        raise
    except GeneratorExit as error:
        if not _is_running(task):
            # The coroutine is thrown away with the loop: nobody raised it.
            raise
        raise UserCodeError(error) from error
    except BaseException as error:
        # Nothing of ours cancels a visit: one that ended so would never be settled (X-D3).
        raise UserCodeError(error) from error


def _is_running(task: object) -> bool:
    try:
        return task is not None and asyncio.current_task() is task
    except RuntimeError:
        return False


def name_error(error: BaseException) -> str:
    """An error as ``Class: text``."""
    shown = error.raised if isinstance(error, UserCodeError) else error
    return f"{type(shown).__name__}: {_read(shown, str)}"


def show_error(error: BaseException) -> str:
    """The ``repr`` of an error."""
    shown = error.raised if isinstance(error, UserCodeError) else error
    return _read(shown, repr)


def read_text(error: BaseException) -> str:
    """The text of an error."""
    return _read(error, str)


def _read(error: BaseException, read: Callable[[object], str]) -> str:
    try:
        with ordinary_errors():
            return str(read(error))
    except Exception as failed:  # noqa: BLE001 - the class may be that of a user
        return f"<{type(error).__name__} without a text: {type(failed).__name__}>"
