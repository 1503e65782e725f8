"""Rows that are due, on their way to the engine. The thread "claiming" fills the window, and the reactor takes from it."""
