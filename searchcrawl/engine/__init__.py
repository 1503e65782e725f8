"""Scrapy's engine with one task a visit: in the reactor."""
