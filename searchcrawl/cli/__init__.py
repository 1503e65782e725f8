"""The commands: one process each, in its main thread; `run` and `crawl` follow events in a thread besides."""
