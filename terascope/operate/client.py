"""The status of a run, fetched over HTTP on this machine. In: a `Run`. Out: a `Status`."""

from __future__ import annotations

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Final

from terascope.operate.server import HOST
from terascope.operate.status import Status
from terascope.streaming.mistakes import StreamError
from terascope.streaming.state.runs import Run

PATIENCE: Final = 5.0


def fetch_status(run: Run, patience: float = PATIENCE) -> Status:
    """The newest status of a run.

    Raises:
        StreamError: the run does not answer, or has none yet.
    """
    # Not with urllib, which would use the proxy of the environment.
    connection = HTTPConnection(HOST, run.port, timeout=patience)
    try:
        connection.request("GET", "/status")
        answer = connection.getresponse()
        content = answer.read()
    except (OSError, HTTPException) as problem:
        raise StreamError(
            f"{run.set_name} (process {run.pid}) does not answer on port {run.port}:"
            f" {getattr(problem, 'strerror', None) or problem}; its own output says more"
        ) from problem
    finally:
        connection.close()
    if answer.status == HTTPStatus.SERVICE_UNAVAILABLE:
        raise StreamError(f"{run.set_name} is starting: it has no status yet; try again")
    if answer.status != HTTPStatus.OK:
        raise StreamError(f"{run.set_name} answers {answer.status} instead of its status")
    return Status.from_json(content)
