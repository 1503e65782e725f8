"""Web sites: ``type = "web"``."""

from __future__ import annotations

from typing import Final

from searchcrawl.kinds.kind import Kind

WEB: Final = Kind(
    name="web",
    url="an http or https URL",
    ports={"http": 80, "https": 443},
    handler="searchcrawl.http.late_handler.LateHandler",
    spider="searchcrawl.spiders.web_spider.WebSpider",
)
