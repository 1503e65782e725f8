"""Repeatable measurements with a peer beside us; `make bench`."""
