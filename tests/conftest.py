"""What all tests share: how a missing part of the machine is reported."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

import pytest


@pytest.fixture(scope="session")
def ci() -> bool:
    """Whether the tests run under CI, where nothing may be missing."""
    return os.environ.get("CI") == "true"


@pytest.fixture(scope="session")
def part_missing(ci: bool) -> Callable[[str], NoReturn]:
    """Ends a test whose system part is missing: a failure under CI, a skip with its reason elsewhere."""

    def report(reason: str) -> NoReturn:
        if ci:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)

    return report
