"""What the commands do, for programs. In the thread of whoever calls."""
