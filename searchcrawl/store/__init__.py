"""The database, by topic. Any thread may read or write: each transaction is of the thread that opened it."""
