"""WARC segments and their records. The writer thread appends; the delivery, its thread "reading" and the threads of
receivers read, and so do commands.
"""
