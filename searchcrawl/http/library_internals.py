"""What we use of Scrapy that is not public: nothing else does, but for ``engine.visit_engine``.

What we use of aiohttp is in ``connection_internals``, which is loaded with the first request only. Made for Scrapy 2.19;
look here first when it is raised to a newer version.

=========================================  ==================================  =======================
used                                       why there is no public way          fails with it
=========================================  ==================================  =======================
``ExecutionEngine._slot.closing``          no signal says that closing begins  test_r14_sitemaps
=========================================  ==================================  =======================
"""

from __future__ import annotations

from scrapy.crawler import Crawler


def is_closing(crawler: Crawler) -> bool:
    """Whether the spider of a crawler whose engine was made is being closed, or closed."""
    slot = crawler.engine._slot
    return slot is None or slot.closing is not None
