"""Hosts on one machine: network namespaces that a bridge connects.

In: a number of hosts. Out: a `Network`: a namespace for the driver, which has the bridge, and one
for each host, with addresses that exist nowhere else. A host can be cut off and connected again.
Names hold the id of the process that made them: what a process has left behind that died is removed
by the next one. Linux, and root or CAP_NET_ADMIN.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

PREFIX: Final = "terascope"
NAME: Final = re.compile(rf"{PREFIX}-(\d+)-\d+-\d+")
FOLDER: Final = Path("/var/run/netns")
NETWORK_NAMESPACE: Final = 0x40000000
"""CLONE_NEWNET."""
BRIDGE: Final = "bridge"
DRIVER: Final = "10.77.0.1"
SECONDS: Final = 20
"""The longest that one command of the network takes."""
_numbers = count()


class NoNetwork(Exception):
    """Namespaces cannot be made here; the message has the reason."""


def ip(*words: str) -> str:
    """The output of a command of iproute2.

    Raises:
        NoNetwork: it failed.
    """
    program = shutil.which("ip") or "/usr/sbin/ip"
    try:
        done = subprocess.run(
            [program, *words], capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NoNetwork(f"ip {' '.join(words)}: {problem}") from problem
    if done.returncode:
        raise NoNetwork(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def lacking() -> str:
    """The reason why there can be no hosts on this machine; empty: there can."""
    try:
        with Network(1):
            return ""
    except NoNetwork as problem:
        return f"no network namespaces: {problem}"


class Network:
    """Namespaces of a driver and of hosts, numbered from 1."""

    def __init__(self, hosts: int) -> None:
        self.hosts = range(1, hosts + 1)
        self._name = f"{PREFIX}-{os.getpid()}-{next(_numbers)}"

    def namespace(self, host: int) -> str:
        """The namespace of a host; 0: the driver."""
        return f"{self._name}-{host}"

    def address(self, host: int) -> str:
        return f"10.77.0.{10 + host}" if host else DRIVER

    def __enter__(self) -> Self:
        remove_leftovers()
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        self._remove()

    def _make(self) -> None:
        driver = self.namespace(0)
        ip("netns", "add", driver)
        ip("-n", driver, "link", "set", "lo", "up")
        ip("-n", driver, "link", "add", BRIDGE, "type", "bridge")
        ip("-n", driver, "addr", "add", f"{DRIVER}/24", "dev", BRIDGE)
        ip("-n", driver, "link", "set", BRIDGE, "up")
        for host in self.hosts:
            own, port = self.namespace(host), self._port(host)
            ip("netns", "add", own)
            pair = ("type", "veth", "peer", "name", "eth0", "netns", own)
            ip("-n", driver, "link", "add", port, *pair)
            ip("-n", driver, "link", "set", port, "master", BRIDGE, "up")
            ip("-n", own, "link", "set", "lo", "up")
            ip("-n", own, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
            ip("-n", own, "link", "set", "eth0", "up")

    def _remove(self) -> None:
        for host in (*self.hosts, 0):
            remove_namespace(self.namespace(host))

    def _port(self, host: int) -> str:
        return f"host{host}"

    def command(self, host: int, *words: str) -> list[str]:
        """A command that runs on a host; its process is that of the command itself."""
        return ["ip", "netns", "exec", self.namespace(host), *words]

    def enter(self, host: int) -> None:
        """Move this thread, and the processes and threads that it starts from now on, to a host."""
        library = ctypes.CDLL(None, use_errno=True)
        with (FOLDER / self.namespace(host)).open("rb") as file:
            if library.setns(file.fileno(), NETWORK_NAMESPACE):
                raise NoNetwork(f"setns: {os.strerror(ctypes.get_errno())}")

    def processes(self, host: int) -> list[int]:
        """The processes on a host, without this one."""
        return processes_in(self.namespace(host))

    def kill(self, host: int, program: str = "") -> list[int]:
        """Kill the processes on a host, or those with a word in their command line; their ids."""
        chosen = [pid for pid in self.processes(host) if program in command_line(pid)]
        kill_all(chosen)
        return chosen

    def cut_off(self, host: int) -> None:
        ip("-n", self.namespace(0), "link", "set", self._port(host), "down")

    def connect(self, host: int) -> None:
        ip("-n", self.namespace(0), "link", "set", self._port(host), "up")

    def received(self, host: int = 0) -> int:
        """The bytes that a host has received over the network so far; 0: the driver."""
        device = "eth0" if host else BRIDGE
        told: Any = json.loads(ip("-n", self.namespace(host), "-s", "-j", "link", "show", device))
        return int(told[0]["stats64"]["rx"]["bytes"])


def command_line(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""


def kill_all(pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def processes_in(namespace: str) -> list[int]:
    with suppress(NoNetwork):
        found = map(int, ip("netns", "pids", namespace).split())
        return [pid for pid in found if pid != os.getpid()]
    return []


def remove_namespace(name: str) -> None:
    """Remove a namespace, its interfaces and the processes in it."""
    kill_all(processes_in(name))
    with suppress(NoNetwork):
        ip("netns", "del", name)


def remove_leftovers() -> None:
    """Remove the namespaces of processes that have died."""
    for line in ip("netns", "list").splitlines():
        found = NAME.match(line)
        if found and not Path("/proc", found[1]).exists():
            remove_namespace(found[0])
