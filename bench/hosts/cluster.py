"""A standalone cluster of Spark on the hosts of a network: a master beside the driver, and a worker
with a folder of its own on each host.

In: a number of hosts, the cores and megabytes of each, and a folder. Out: a `Cluster`, whose
executors, workers and hosts can be killed, and whose driver is started by `command`. Everything it
has started is ended with it, by the ids of its processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from bench.hosts.network import DRIVER, Network
from bench.memory import PROC

PORT: Final = 7077
OWN_TIMES: Final = slice(11, 13)
"""Of /proc/PID/stat behind the name: user and system."""
START_SECONDS: Final = 90
"""The longest that a master or a worker takes to start."""
EXECUTOR: Final = "CoarseGrainedExecutorBackend"
MASTER_CLASS: Final = "org.apache.spark.deploy.master.Master"
WORKER_CLASS: Final = "org.apache.spark.deploy.worker.Worker"
LOGGING: Final = """\
rootLogger.level = info
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""


class ClusterFailed(Exception):
    """The cluster did not start; the message has the end of a log."""


class Cluster:
    """A master, and workers on hosts 1, 2, ..."""

    def __init__(
        self,
        folder: Path,
        hosts: int,
        cores: int = 2,
        megabytes: int = 1024,
        worker_timeout: int = 15,
    ) -> None:
        """`worker_timeout`: the seconds after which the master gives up a silent worker."""
        self.folder = folder
        self.network = Network(hosts)
        self._cores, self._megabytes = cores, megabytes
        self._timeout = worker_timeout
        self._opened = ExitStack()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        """The daemon on each host; 0: the master."""
        self._seen: dict[int, dict[int, float]] = {}
        """The processor seconds of each process that was seen on a host."""

    @property
    def master(self) -> str:
        return f"spark://{DRIVER}:{PORT}"

    def host_folder(self, host: int) -> Path:
        """The disk of a host."""
        return self.folder / f"host{host}"

    def __enter__(self) -> Self:
        try:
            self._opened.enter_context(self.network)
            self._opened.callback(self._end)
            self._start()
        except BaseException:
            self._opened.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._opened.close()

    def _start(self) -> None:
        conf = self.folder / "conf"
        conf.mkdir(parents=True, exist_ok=True)
        (conf / "log4j2.properties").write_text(LOGGING, encoding="utf-8")
        where = ("--host", DRIVER, "--port", str(PORT), "--webui-port", "8080")
        self._daemon(0, MASTER_CLASS, *where)
        self._await("the master", lambda: "elected leader" in self.log(0))
        for host in self.network.hosts:
            self.start_worker(host)
        for host in self.network.hosts:
            self.await_worker(host)

    def start_worker(self, host: int) -> None:
        """Start the worker of a host, for the first time or again."""
        folder = self.host_folder(host)
        size = ("--cores", str(self._cores), "--memory", f"{self._megabytes}m")
        where = ("--host", self.network.address(host), "--webui-port", "8081")
        work = ("--work-dir", str(folder / "work"))
        self._daemon(host, WORKER_CLASS, *where, *size, *work, self.master)

    def await_worker(self, host: int) -> None:
        """Wait until the worker that was started last is known to the master."""
        known = "Successfully registered with master"
        self._await(f"the worker of host {host}", lambda: known in self.log(host))

    def _daemon(self, host: int, *words: str) -> None:
        home = Path(str(find_spec("pyspark").origin)).parent  # type: ignore[union-attr]
        folder = self.host_folder(host)
        (folder / "local").mkdir(parents=True, exist_ok=True)
        environment = {
            **self.environment(host),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
            f" -Dspark.worker.timeout={self._timeout} -Dspark.master.rest.enabled=false",
        }
        command = self.network.command(host, str(home / "bin" / "spark-class"), *words)
        with (folder / "daemon.log").open("wb") as log:
            self._processes[host] = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def environment(self, host: int = 0) -> dict[str, str]:
        """The environment of a process on a host; 0: of the driver."""
        environment = {**os.environ, **java_environment()}
        environment.pop("SPARK_HOME", None)
        return {
            **environment,
            "SPARK_CONF_DIR": str(self.folder / "conf"),
            "SPARK_LOCAL_IP": self.network.address(host),
            "PYSPARK_PYTHON": sys.executable,
        }

    def command(self, *words: str) -> list[str]:
        """A command that runs beside the master, as a driver does."""
        return self.network.command(0, *words)

    def log(self, host: int) -> str:
        """What the worker of a host has said; 0: the master."""
        path = self.host_folder(host) / "daemon.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def kill_executors(self, host: int) -> list[int]:
        """Kill the executors on a host; its worker starts others."""
        return self.network.kill(host, EXECUTOR)

    def kill_host(self, host: int) -> None:
        """Kill everything on a host, as when its power fails."""
        self.network.kill(host)
        process = self._processes.pop(host, None)
        if process is not None:
            process.wait(START_SECONDS)

    def cpu_seconds(self, host: int) -> float:
        """The processor time of a host so far. PySpark ends workers that are idle, and nobody keeps
        their times: those that were seen before count with the last time that was seen.
        """
        seen = self._seen.setdefault(host, {})
        for pid in self.network.processes(host):
            seen[pid] = max(seen.get(pid, 0.0), own_seconds(pid))
        return sum(seen.values())

    def _await(self, what: str, is_there: Callable[[], bool]) -> None:
        end = time.monotonic() + START_SECONDS
        while not is_there():
            ended = [h for h, one in self._processes.items() if one.poll() is not None]
            if ended or time.monotonic() > end:
                last = self.log(ended[0] if ended else 0)[-2000:]
                raise ClusterFailed(f"{what} did not start; {last}")
            time.sleep(0.1)

    def _end(self) -> None:
        for host in (*self.network.hosts, 0):
            self.network.kill(host)
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._processes.clear()


def own_seconds(pid: int) -> float:
    """The processor time of a process without its children."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="latin-1")
    except OSError:
        return 0.0
    return sum(map(int, text.rpartition(")")[2].split()[OWN_TIMES])) / os.sysconf("SC_CLK_TCK")


def java_environment() -> Mapping[str, str]:
    """The Java that Terascope uses, where the environment does not name one."""
    from terascope.spark.session import java_home

    home = java_home()
    return {} if home is None else {"JAVA_HOME": str(home)}
