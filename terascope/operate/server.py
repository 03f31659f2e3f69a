"""The server of a run, on this machine only: `/status`, `/metrics` and `/health`.

In: the status the runner publishes. Out: JSON for the commands, metrics for Prometheus, and for
whoever watches the process 200 while batches come and 503 when they do not.
"""

from __future__ import annotations

import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from terascope.operate.metrics import StatusCollector
from terascope.operate.status import OVER, Status
from terascope.streaming.mistakes import StreamError

HOST: Final = "127.0.0.1"
OWN_NAMES: Final = (HOST, "localhost", "[::1]")
UNEXPECTED: Final = (
    "the Host of the request is not 127.0.0.1, localhost or [::1] with the port of this server;"
    " the setting status_hosts allows others"
)
LEAST_PATIENCE: Final = 10.0
PATIENT_TRIGGERS: Final = 5
JSON: Final = "application/json; charset=utf-8"


class StatusServer:
    """Serves the newest status from a thread of its own until it is closed. Use it in a `with`."""

    def __init__(
        self,
        port: int = 0,
        clock: Callable[[], float] = time.time,
        look: Callable[[], Status] | None = None,
        hosts: Iterable[str] = (),
    ) -> None:
        """Port 0: any that is free; `port` then says which. `look`: asked for the status when a
        page is; without it, what was published last is shown. `hosts`: what the Host of a request
        may be besides the names of this machine, such as `proxy.example:8443`.

        Raises:
            StreamError: the port is taken.
        """
        self._clock = clock
        self._look = look
        self._status: Status | None = None
        self._last_batch = clock()
        self._metrics = CollectorRegistry()
        self._metrics.register(StatusCollector(lambda: self._status))
        self._server = LoopbackServer(port, self)
        self.port = int(self._server.server_address[1])
        own = {f"{name}:{self.port}" for name in OWN_NAMES}
        self.hosts = frozenset(own | {host.lower() for host in hosts})
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="terascope-status", daemon=True
        )
        self._thread.start()

    def publish(self, status: Status) -> None:
        """The status that is served from now on."""
        before = self._status
        # A run that restarts again and again publishes, too: only a new batch is a sign of life.
        if before is None or before.run.batch != status.run.batch:
            self._last_batch = status.run.updated
        self._status = status

    def close(self) -> None:
        """Give the port back."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> StatusServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- pages -----------------------------------------------------------------------------------

    def page(self, path: str, accept: str) -> tuple[HTTPStatus, str, bytes]:
        """What a path shows: the code, the type, the content."""
        if self._look is not None:
            self.publish(self._look())
        match path:
            case "/status":
                return self._status_page()
            case "/metrics":
                encode, kind = choose_encoder(accept)
                return HTTPStatus.OK, kind, encode(self._metrics)
            case "/health":
                return self._health_page()
            case _:
                known = {"error": f"no page '{path}'; there are /status, /metrics and /health"}
                return HTTPStatus.NOT_FOUND, JSON, as_json(known)

    def _status_page(self) -> tuple[HTTPStatus, str, bytes]:
        if self._status is None:
            starting = {"error": "the run is starting: there is no status yet"}
            return HTTPStatus.SERVICE_UNAVAILABLE, JSON, as_json(starting)
        return HTTPStatus.OK, JSON, self._status.to_json().encode()

    def _health_page(self) -> tuple[HTTPStatus, str, bytes]:
        age = max(0.0, self._clock() - self._last_batch)
        run = None if self._status is None else self._status.run
        trigger = 0.0 if run is None else run.trigger_seconds
        patience = max(LEAST_PATIENCE, PATIENT_TRIGGERS * trigger)
        state = "starting" if run is None else run.state
        healthy = age < patience and state not in OVER
        told = {
            "healthy": healthy,
            "state": state,
            "batch": None if run is None else run.batch,
            "last_batch_seconds_ago": round(age, 3),
            "patience_seconds": patience,
        }
        code = HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE
        return code, JSON, as_json(told)


def as_json(told: object) -> bytes:
    return json.dumps(told).encode() + b"\n"


class LoopbackServer(ThreadingHTTPServer):
    """Reachable from this machine only."""

    daemon_threads = True

    def __init__(self, port: int, shown: StatusServer) -> None:
        self.shown = shown
        try:
            super().__init__((HOST, port), Handler)
        except (OSError, OverflowError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            raise StreamError(
                f"cannot listen on port {port} of {HOST}: {reason.lower()};"
                " give another port, or none and a free one is taken"
            ) from problem

    def server_bind(self) -> None:
        """Without the name of the host, for which a name server might be asked."""
        socketserver.TCPServer.server_bind(self)
        self.server_name = HOST
        self.server_port = int(self.server_address[1])


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: LoopbackServer
    timeout = 10  # whoever says nothing holds no thread for long

    def do_GET(self) -> None:
        shown = self.server.shown
        if self._is_expected:
            path, accept = self.path.partition("?")[0], self.headers.get("Accept", "")
            code, kind, content = shown.page(path, accept)
        else:
            code, kind, content = HTTPStatus.FORBIDDEN, JSON, as_json({"error": UNEXPECTED})
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    @property
    def _is_expected(self) -> bool:
        """Whether the one Host of a request is a name of this server: a page that a browser shows
        may resolve its own name to this machine, and must not read what a run does.
        """
        hosts = self.headers.get_all("Host") or []
        return len(hosts) == 1 and hosts[0].strip().lower() in self.server.shown.hosts

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not news: stderr is the live view's."""
