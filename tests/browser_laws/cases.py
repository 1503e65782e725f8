"""The table of all cases."""

from __future__ import annotations

from tests.browser_laws.case import Case
from tests.browser_laws.fetch_cases import list_fetch_cases
from tests.browser_laws.redirect_cases import list_redirect_cases


def list_cases() -> list[Case]:
    """All cases."""
    return [*list_fetch_cases(), *list_redirect_cases()]
