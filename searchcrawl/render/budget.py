"""What a page may load: bytes and requests, its own and those of all pages together (X-O7, X-O8)."""

from __future__ import annotations

from typing import Final

#: Requests of a page that rules allow, and how many of them may be under way.
MAX_REQUESTS: Final = 500
MAX_IN_FLIGHT: Final = 16
#: Requests that rules refuse cost little, and no page needs so many.
_MAX_REFUSED: Final = 5000
#: How much all open pages may have loaded together, in budgets of one.
_PAGES_TOGETHER: Final = 4


class BudgetSpent(Exception):
    """A page has loaded all that it may."""


class SharedBudget:
    """The bytes of all pages that are open; a page alone may load ``max_page_bytes``."""

    def __init__(self, max_page_bytes: int) -> None:
        self.max_page_bytes = max_page_bytes
        self._open: set[PageBudget] = set()

    def open(self) -> PageBudget:
        """The budget of one more page, until ``PageBudget.close``."""
        budget = PageBudget(self)
        self._open.add(budget)
        return budget

    def leave(self, budget: PageBudget) -> None:
        """Counts the bytes of a page no longer."""
        self._open.discard(budget)

    def check(self) -> None:
        """Ends the budget of the page that has most, where all pages have too much."""
        if sum(each.received for each in self._open) > _PAGES_TOGETHER * self.max_page_bytes:
            largest = max(self._open, key=lambda each: each.received)
            largest.spend(f"all pages together loaded too much, and {largest.received} bytes of it are of this one")


class PageBudget:
    """What one page has loaded. ``spent`` says in words what there was too much of; None while there is something left."""

    def __init__(self, shared: SharedBudget) -> None:
        self._shared = shared
        self._requests = 0
        self._refused = 0
        self.received = 0
        self.spent: str | None = None

    @property
    def left(self) -> int:
        """How many bytes may still come."""
        return 0 if self.spent is not None else max(self._shared.max_page_bytes - self.received, 0)

    def take(self, count: int) -> None:
        """Counts bytes; raises BudgetSpent once there are too many."""
        self.received += count
        if self.received > self._shared.max_page_bytes:
            self.spend(f"more than {self._shared.max_page_bytes} bytes of one page (render.max_page_mb)")
        self._shared.check()
        self.check()

    def count_request(self) -> None:
        """Counts a request that rules allow; raises BudgetSpent."""
        self._requests += 1
        if self._requests > MAX_REQUESTS:
            self.spend(f"more than {MAX_REQUESTS} requests of one page")
        self.check()

    def count_refused(self) -> None:
        """Counts a request that a rule refuses; raises BudgetSpent."""
        self._refused += 1
        if self._refused > _MAX_REFUSED:
            self.spend(f"more than {_MAX_REFUSED} requests that rules refuse")
        self.check()

    def check(self) -> None:
        """Raises BudgetSpent where nothing is left."""
        if self.spent is not None:
            raise BudgetSpent(self.spent)

    def spend(self, why: str) -> None:
        """Leaves nothing of it."""
        self.spent = self.spent or why

    def close(self) -> None:
        """The page is closed."""
        self._shared.leave(self)
