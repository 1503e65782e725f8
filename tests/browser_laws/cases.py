"""The table of all cases."""

from __future__ import annotations

from tests.browser_laws.case import Case
from tests.browser_laws.cookie_cases import list_cookie_cases
from tests.browser_laws.element_cases import list_element_cases
from tests.browser_laws.fetch_cases import list_fetch_cases
from tests.browser_laws.frame_cases import list_frame_cases
from tests.browser_laws.password_cases import list_password_cases
from tests.browser_laws.policy_cases import list_policy_cases
from tests.browser_laws.redirect_cases import list_redirect_cases
from tests.browser_laws.worker_cases import list_worker_cases


def list_cases() -> list[Case]:
    """All cases; each has a name of its own."""
    return [
        *list_fetch_cases(),
        *list_redirect_cases(),
        *list_element_cases(),
        *list_frame_cases(),
        *list_cookie_cases(),
        *list_policy_cases(),
        *list_worker_cases(),
        *list_password_cases(),
    ]
