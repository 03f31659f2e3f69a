"""Installs packages of the operating system, when this user is allowed to.

In: names of one thing as the package managers spell it. Out: whether one of them got installed.
Only as root or with a `sudo` that asks no password: an installation must never stop at a prompt.
Runs before anything is installed, hence the standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence

INSTALL_COMMANDS: Mapping[str, Sequence[str]] = {
    "apt-get": ("apt-get", "install", "-y", "--no-install-recommends"),
    "dnf": ("dnf", "install", "-y"),
    "apk": ("apk", "add"),
}
REFRESH_COMMANDS: Mapping[str, Sequence[str]] = {"apt-get": ("apt-get", "update")}


def administrator_prefix() -> tuple[str, ...] | None:
    """The words to put before a command to run it as root; None when this user may not."""
    if os.geteuid() == 0:
        return ()
    if shutil.which("sudo") and _failure(("sudo", "-n", "true")) is None:
        return ("sudo", "-n")
    return None


def install_first_available(candidates: Mapping[str, Sequence[str]]) -> str | None:
    """Installs the first candidate that the system's package manager has, and returns its name.

    `candidates` maps a package manager to names in order of preference.
    """
    prefix = administrator_prefix()
    manager = next((name for name in INSTALL_COMMANDS if shutil.which(name)), None)
    if prefix is None or manager is None or not candidates.get(manager):
        return None
    if manager in REFRESH_COMMANDS:
        # A failed refresh is no reason to stop: the lists on disk may be good enough.
        _failure((*prefix, *REFRESH_COMMANDS[manager]))
    for package in candidates[manager]:
        print(f"installing {package} with {manager}", flush=True)
        reason = _failure((*prefix, *_unattended(manager), *INSTALL_COMMANDS[manager], package))
        if reason is None:
            return package
        print(f"  not installed: {reason}", flush=True)
    return None


def _unattended(manager: str) -> tuple[str, ...]:
    # Through `env`, because sudo drops the variables of the caller.
    return ("env", "DEBIAN_FRONTEND=noninteractive") if manager == "apt-get" else ()


def _failure(command: Sequence[str]) -> str | None:
    """Runs a command in silence; None when it succeeded, else the last line of its complaint."""
    finished = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if finished.returncode == 0:
        return None
    complaint = finished.stderr.strip() or finished.stdout.strip() or "no reason given"
    return complaint.splitlines()[-1]
