"""The reference interpreter: the meaning of a Plan in plain Python, one tuple at a time.

It is the oracle the engines are tested against, so it is written to be read and believed, not to
be fast.
"""
