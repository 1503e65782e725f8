"""The proxy between a browser and the crawl: it sees each request of a page as Chromium sends it."""
