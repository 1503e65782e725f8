"""In which order jobs are done: each origin in its turn, so that one that is slow holds up no other."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """Jobs by origin; ``most_of_origin`` of one are under way at once."""

    def __init__(self, most_of_origin: int) -> None:
        self._most_of_origin = most_of_origin
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()
        self._under_way: Counter[str] = Counter()

    def add(self, origin: str, job: T) -> None:
        """Adds a job behind the others of its origin."""
        self._waiting.setdefault(origin, deque()).append(job)

    def take(self) -> tuple[str, T] | None:
        """The next job and its origin, for which ``end`` has to be called; None while none may begin."""
        # Only few origins can have that many under way.
        origin = next((one for one in self._waiting if self._under_way[one] < self._most_of_origin), None)
        if origin is None:
            return None
        jobs = self._waiting[origin]
        job = jobs.popleft()
        if jobs:
            self._waiting.move_to_end(origin)
        else:
            del self._waiting[origin]
        self._under_way[origin] += 1
        return origin, job

    def end(self, origin: str) -> None:
        """A job of an origin ended."""
        self._under_way[origin] -= 1
        if not self._under_way[origin]:
            del self._under_way[origin]

    def clear(self) -> None:
        """Forgets the jobs that wait."""
        self._waiting.clear()
