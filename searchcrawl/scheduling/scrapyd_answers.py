"""What an order of a scrapyd may come to, and its name: without the HTTP client that asks it."""

from __future__ import annotations

from urllib.parse import urlsplit

from searchcrawl.exceptions import SearchcrawlError


class ScrapydRefused(SearchcrawlError):
    """A scrapyd did not take an order: it cannot be reached, or says no, or is none."""


class ScrapydAway(ScrapydRefused):
    """A scrapyd cannot be reached: it took nothing."""


class AnswerLost(SearchcrawlError):
    """A scrapyd was asked, and did not answer in time: it may have taken the order."""


def name_of(url: str) -> str:
    """The URL of a scrapyd without user and password, as the store keeps it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
