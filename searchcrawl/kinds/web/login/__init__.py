"""Logins of a source: in the reactor; forms are parsed in helper threads."""
