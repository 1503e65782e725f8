"""What Scrapy tells of the beginning and the end of a crawl: in the reactor. Heartbeat and progress bar have threads of
their own.
"""
