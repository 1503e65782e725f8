"""When a host may be asked. The reactor asks; the thread "hosts" takes hosts for this process from the store, which several
processes share, and hands them over. Dry runs do that in helper threads.
"""
