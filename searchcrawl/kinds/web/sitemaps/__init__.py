"""Sitemaps and feeds: asked for in the reactor, parsed in the thread "sitemaps", noted by the writer thread."""
