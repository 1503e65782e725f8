"""What makes text and links of a body. The reactor has small pages read at once, large text files in a helper thread,
and all else in a worker process.
"""
