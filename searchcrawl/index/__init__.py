"""Search indexes. A receiver is used by one thread at a time: the delivery thread, that of a further receiver, the
helper thread in which a run begins, or the main thread of a command.
"""
