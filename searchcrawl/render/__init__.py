"""A browser behind a wall, for pages that show nothing without their scripts (C10, L7).

In the reactor, on one event loop with Playwright. What reads the database or files of the browser does it in
helper threads.
"""
