"""Which links become rows, and what is a trap. The writer thread asks; start URLs are admitted in the helper thread
that opens the writer, and the reactor asks `TrapWatch.refuse` alone.
"""
