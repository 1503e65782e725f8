"""The stages of a document after it was read, as item pipelines: in the reactor."""
