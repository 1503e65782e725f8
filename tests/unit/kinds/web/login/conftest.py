"""Tests that are coroutines run in a loop of their own; nobody waits long for the next request."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable

import pytest

from searchcrawl.kinds.web.login import login_middleware


@pytest.fixture(autouse=True)
def next_seconds(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets how long the next request is waited for."""

    def wait(seconds: float) -> None:
        monkeypatch.setattr(login_middleware, "NEXT_SECONDS", seconds)

    wait(0.01)
    return wait


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    asyncio.run(
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters})
    )
    return True
