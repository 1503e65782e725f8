"""The processes of a run that has several. Each has a reactor; the channel between them is written and read there."""
