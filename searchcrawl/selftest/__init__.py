"""Shows on the user's own machine that a crawl which is killed at any moment ends like one that nobody disturbed.

What a crawl came to is read past the code under test: by SQL of its own from the store, document by document from the
index, record by record from the cache. In the main thread of the command; its site answers in threads.
"""
