"""A browser behind a wall, for pages that show nothing without their scripts (C10, L7)."""
