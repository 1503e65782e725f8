"""What a visit leaves in cache and rows. The writer thread works here; `CachePipeline` alone is called by the reactor,
and opens and ends the writer in helper threads of asyncio. Orphans, near copies and rows that go are looked at in the
delivery thread.
"""
