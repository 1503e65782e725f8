"""Pages in a browser for spiders in Python: scrapy-playwright, with the browser and the proxy that sources have."""
