"""A running stream, seen from outside: what it says of itself, where it is found, what it gives.

In: the status a runner publishes after every micro-batch, and the folders it writes. Out: files and
a server on this machine that tell of it, and subscriptions to its named streams. Nothing here needs
the engine; the commands `status`, `why`, `tail` and `set` are made of it.
"""
