"""Tables and queries of databases: ``type = "table"``."""
