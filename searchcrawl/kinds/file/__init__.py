"""Trees of files: ``type = "file"``."""
