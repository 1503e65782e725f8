"""The table of all cases."""

from __future__ import annotations

from tests.browser_laws.case import Case
from tests.browser_laws.cookie_cases import list_cookie_cases
from tests.browser_laws.element_cases import list_element_cases
from tests.browser_laws.fetch_cases import list_fetch_cases
from tests.browser_laws.frame_cases import list_frame_cases
from tests.browser_laws.redirect_cases import list_redirect_cases


def list_cases() -> list[Case]:
    """All cases."""
    return [*list_fetch_cases(), *list_redirect_cases(), *list_element_cases(), *list_frame_cases(), *list_cookie_cases()]
