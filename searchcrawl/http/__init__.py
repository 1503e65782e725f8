"""Requests and answers: in the reactor. Large bodies are decoded in helper threads; names are looked up in a thread
"names".
"""
