"""Batches, receipts and removals. The delivery thread sends and removes, the thread "reading" reads ahead of it, and
each further receiver has a thread of its own; commands deliver in their main thread.
"""
