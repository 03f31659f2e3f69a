"""The server of a run, on this machine only: `/status`, `/metrics` and `/health`; and its client.

In: the status that the runner publishes. Out: JSON for the commands, metrics for Prometheus by the
application and the server of prometheus_client, and for a supervisor 200 while batches come and 503
when they do not. A page that a browser shows may resolve its own name to this machine: therefore a
request is answered only when its one Host is a name of this server.
"""

from __future__ import annotations

import json
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, Final
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

from terascope.diagnostic import StreamError
from terascope.operate.metrics import StatusCollector
from terascope.operate.status import OVER, Status
from terascope.streaming.state.runs import Run

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

HOST: Final = "127.0.0.1"
OWN_NAMES: Final = (HOST, "localhost", "[::1]")
UNEXPECTED: Final = (
    "the Host of the request is not 127.0.0.1, localhost or [::1] with the port of this server;"
    " the setting status_hosts allows others"
)
READ_ONLY: Final = "pages can only be read, with GET"
LEAST_PATIENCE: Final = 10.0
PATIENT_TRIGGERS: Final = 5

PATIENCE: Final = 5.0
LOOKS_SECONDS: Final = 0.1
"""How often the server looks whether it shall close: a run that ends waits for it."""


class StatusServer(AbstractContextManager["StatusServer"]):
    """Serves the newest status from a thread of its own until it is closed. Use it in a `with`."""

    def __init__(
        self,
        port: int = 0,
        clock: Callable[[], float] = time.time,
        look: Callable[[], Status] | None = None,
        hosts: Iterable[str] = (),
    ) -> None:
        """Port 0: any free one, which `port` then names. `look`: called for the status of each
        request; without it the status published last is served. `hosts`: what the Host of a request
        may be besides the names of this machine, such as `proxy.example:8443`.

        Raises:
            StreamError: the port is taken.
        """
        self._clock = clock
        self._look = look
        self._status: Status | None = None
        self._last_batch = clock()
        registry = CollectorRegistry()
        registry.register(StatusCollector(lambda: self._status))
        self._metrics: WSGIApplication = make_wsgi_app(registry)
        try:
            self._server = make_server(HOST, port, self._answer, LoopbackServer, Handler)
        except (OSError, OverflowError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            raise StreamError(
                f"cannot listen on port {port} of {HOST}: {reason.lower()};"
                " give another port, or none and a free one is taken"
            ) from problem
        self.port = self._server.server_port
        own = {f"{name}:{self.port}" for name in OWN_NAMES}
        self.hosts = frozenset(own | {host.lower() for host in hosts})
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(LOOKS_SECONDS,),
            name="terascope-status",
            daemon=True,
        )
        self._thread.start()

    def publish(self, status: Status) -> None:
        before = self._status
        # A run that restarts again and again publishes, too: only a new batch is a sign of life.
        if before is None or before.run.batch != status.run.batch:
            self._last_batch = status.run.updated
        self._status = status

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- pages -----------------------------------------------------------------------------------

    def _answer(self, request: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer a request. Several Host headers arrive as one text with commas."""
        if request.get("HTTP_HOST", "").lower() not in self.hosts:
            code, content = HTTPStatus.FORBIDDEN, as_json({"error": UNEXPECTED})
        elif request["REQUEST_METHOD"] != "GET":
            code, content = HTTPStatus.METHOD_NOT_ALLOWED, as_json({"error": READ_ONLY})
        else:
            if self._look is not None:
                self.publish(self._look())
            if request["PATH_INFO"] == "/metrics":
                return self._metrics(request, start)
            code, content = self._page(request["PATH_INFO"])
        start(
            f"{code.value} {code.phrase}",
            [
                ("Content-Type", "application/json; charset=utf-8"),
                ("Content-Length", str(len(content))),
                ("Cache-Control", "no-store"),
            ],
        )
        return [content]

    def _page(self, path: str) -> tuple[HTTPStatus, bytes]:
        match path:
            case "/status" if self._status is not None:
                return HTTPStatus.OK, self._status.to_json().encode()
            case "/status":
                starting = {"error": "the run is starting: there is no status yet"}
                return HTTPStatus.SERVICE_UNAVAILABLE, as_json(starting)
            case "/health":
                return self._health()
            case _:
                known = {"error": f"no page '{path}'; there are /status, /metrics and /health"}
                return HTTPStatus.NOT_FOUND, as_json(known)

    def _health(self) -> tuple[HTTPStatus, bytes]:
        age = max(0.0, self._clock() - self._last_batch)
        run = None if self._status is None else self._status.run
        patience = max(LEAST_PATIENCE, PATIENT_TRIGGERS * (run.trigger_seconds if run else 0.0))
        state = "starting" if run is None else run.state
        healthy = age < patience and state not in OVER
        facts = {
            "healthy": healthy,
            "state": state,
            "batch": None if run is None else run.batch,
            "last_batch_seconds_ago": round(age, 3),
            "patience_seconds": patience,
        }
        return HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE, as_json(facts)


def as_json(content: object) -> bytes:
    return json.dumps(content).encode() + b"\n"


class LoopbackServer(ThreadingWSGIServer):
    """The server of prometheus_client, without a look-up of the machine's name."""

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)
        self.server_name = HOST
        self.server_port = int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent or vanished clients are not reported: stderr belongs to the live view."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Handler(WSGIRequestHandler):
    timeout = 10  # a client that says nothing holds no thread for long

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


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
