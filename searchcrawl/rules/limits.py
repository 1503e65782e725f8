"""The limits of ``[scope]`` on depth and dynamic pages, and those that end traps (B7, B9, L8). Pure."""

from __future__ import annotations

from collections import Counter

from searchcrawl.rules.decision import Decision


class Limits:
    """Depth, dynamic pages and the limits that end traps (B7, B9, L8)."""

    def __init__(self, file: str, **values: int) -> None:
        self._depth = values["depth"]
        self._dynamic_pages = values["dynamic_pages"]
        self._max_segments = values["max_path_segments"]
        self._max_parameters = values["max_query_parameters"]
        self._max_repeated = values["max_repeated_segments"]
        shown = {**values, "dynamic_pages": "false"}
        self._refusals = {
            name: Decision(False, f"{name} = {value}", file, f"scope.{name}") for name, value in shown.items()
        }

    def find(self, target: str, depth: int | None) -> list[Decision]:
        """Lists the limits that a path with its query exceeds, if it was found at ``depth``."""
        passed: list[Decision] = []
        path, mark, query = target.partition("?")
        if mark:
            if not self._dynamic_pages:
                passed.append(self._refusals["dynamic_pages"])
            if 0 < self._max_parameters <= query.count("&"):
                passed.append(self._refusals["max_query_parameters"])
        slashes = path.count("/")
        if 0 < self._max_segments < slashes - path.endswith("/"):
            passed.append(self._refusals["max_path_segments"])
        if 0 < self._max_repeated < slashes and self._repeats(path):
            passed.append(self._refusals["max_repeated_segments"])
        if depth is not None and 0 < self._depth < depth:
            passed.append(self._refusals["depth"])
        return passed

    def measure(self, target: str, depth: int | None) -> dict[str, int]:
        """What a path with its query has of that which the limits count, by their keys."""
        path, mark, query = target.partition("?")
        segments = Counter(path.split("/"))
        del segments[""]
        found = {
            "scope.max_path_segments": path.count("/") - path.endswith("/"),
            "scope.max_query_parameters": query.count("&") + 1 if mark else 0,
            "scope.max_repeated_segments": max(segments.values(), default=0),
        }
        return found if depth is None else {**found, "scope.depth": depth}

    def _repeats(self, path: str) -> bool:
        """Whether a segment occurs too often in the path, side by side or apart."""
        segments = path.split("/")
        if len(set(segments)) > len(segments) - self._max_repeated:
            return False
        counts = Counter(segments)
        # Doubled slashes, and the slashes at both ends, make empty segments.
        del counts[""]
        return max(counts.values(), default=0) > self._max_repeated
