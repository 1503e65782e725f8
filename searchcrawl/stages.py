"""Holds the stages of one crawl by their class: Scrapy's components get from it what ``composition`` built."""

from __future__ import annotations

from typing import TypeVar, cast

from scrapy.crawler import Crawler

T = TypeVar("T")


class Stages:
    """One object of each class; ``composition`` adds them before Scrapy makes its components."""

    def __init__(self) -> None:
        self._stages: dict[type, object] = {}

    def add(self, stage: T, kind: type | None = None) -> T:
        """Keeps ``stage`` under its class, or under ``kind``, which is a base of it; returns it."""
        self._stages[kind or type(stage)] = stage
        return stage

    def get(self, kind: type[T]) -> T:
        """The stage of a class; raises KeyError where this crawl has none."""
        return cast(T, self._stages[kind])

    def find(self, kind: type[T]) -> T | None:
        """The stage of a class; None where this crawl has none."""
        return cast(T | None, self._stages.get(kind))


def stages_of(crawler: Crawler) -> Stages:
    """The stages of a crawler whose spider is that of a source."""
    stages: Stages = crawler.spider.stages  # type: ignore[union-attr]  # the add-on has set it
    return stages
