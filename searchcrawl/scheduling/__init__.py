"""When sources are due, and what is started. In the main thread of `tick` or `run`; scrapyds answer in threads of their
own.
"""
