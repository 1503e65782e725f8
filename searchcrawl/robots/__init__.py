"""robots.txt: in the reactor; large files are parsed, and copies read and written, in helper threads."""
