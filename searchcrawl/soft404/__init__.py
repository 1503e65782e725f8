"""Pages that stand for "not found": in the reactor; pages are compared, and answers of probes parsed, in helper
threads.
"""
