"""Spark's daemon of Python workers (`spark.python.daemon.module`), whose workers can be killed from
within (tests.spark.mortal_tasks).
"""

from __future__ import annotations

import os
import socket

from pyspark import daemon

born = daemon.worker
executor = os.getppid()


def mortal_worker(connection: socket.socket, authenticated: bool) -> int:
    # Not before the fork: a process with threads of its own must not fork.
    from tests.spark.mortal_tasks import make_mortal

    make_mortal(executor)
    return born(connection, authenticated)


if __name__ == "__main__":
    setattr(daemon, "worker", mortal_worker)  # noqa: B010
    daemon.manager()
