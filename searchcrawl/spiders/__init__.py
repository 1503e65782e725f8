"""What Scrapy runs: in the reactor."""
