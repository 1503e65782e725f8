"""What users ask. In the main thread of a command; at the end of a crawl, or of a program that asks, in that of the
caller.
"""
