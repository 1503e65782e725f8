"""The crawled test site: a process of its own with virtual hosts, stages and a request log."""
