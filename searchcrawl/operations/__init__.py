"""What users order between crawls: in the main thread of a command, beside the heartbeat of the lease."""
