"""What `type` in a source file may be. Data, of any thread."""
