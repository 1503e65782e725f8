"""What differs between table and index. In the main thread of a command (`verify`, `status`), in the helper thread that
opens the writer (a run begins), and in the delivery thread (it ends).
"""
