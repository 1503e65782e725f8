"""One parse of a page, and what is read from it. Pure: called wherever a page is parsed, which is the reactor, a helper
thread (probes, logins, pages of text), or a worker process.
"""
