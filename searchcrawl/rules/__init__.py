"""Pure decisions, without a thread of their own. The reactor asks about requests and pages, the writer thread about
links, copies, changes and traps, the delivery thread about what pages of a host have in common, and commands to explain
it all.
"""
