"""Creates the project's virtual environment: `python3 scripts/create_venv.py .venv`.

In: any python3, perhaps too old, perhaps Debian's without its venv package. Out: an environment
with a working pip, or one line that says what to install. Standard library only.
"""

# Old interpreters must be able to read this file, up to `restart_with_newer_interpreter`.
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
TRIED_NAMES = ("python3.13", "python3.12", "python3.11")


def main() -> None:
    """Leaves a working environment at the path of the first argument, or exits with a reason."""
    if sys.version_info[:2] < OLDEST:
        restart_with_newer_interpreter()
    venv = Path(sys.argv[1])
    if has_pip(venv):
        return
    print(f"creating {venv} with Python {sys.version.split()[0]}", flush=True)
    if venv_alone(venv) or venv_and_outer_pip(venv) or venv_after_system_package(venv):
        return
    major, minor = sys.version_info[:2]
    raise SystemExit(
        f"error: {sys.executable} cannot make a virtual environment with pip\n"
        f"help: install the system package python{major}.{minor}-venv (as root), or pip for this"
        " Python, then run make again"
    )


def restart_with_newer_interpreter() -> None:
    """Replaces this process by a Python that is new enough, when there is one on PATH."""
    for name in TRIED_NAMES:
        found = shutil.which(name)
        if found:
            os.execv(found, [found, *sys.argv])
    raise SystemExit(
        "error: Python {}.{} is too old, terascope needs 3.11 or newer\n"
        "help: install a newer one and run make PYTHON=/path/to/python3".format(*sys.version_info)
    )


def has_pip(venv: Path) -> bool:
    """Whether the environment exists and its pip runs."""
    return succeeds(str(venv / "bin" / "python"), "-m", "pip", "--version")


def venv_alone(venv: Path) -> bool:
    """The ordinary way; it fails on a Debian without python3-venv, which lacks ensurepip."""
    return succeeds(sys.executable, "-m", "venv", "--clear", str(venv)) and has_pip(venv)


def venv_and_outer_pip(venv: Path) -> bool:
    """An environment without pip, into which the pip of the outer Python installs one."""
    return (
        succeeds(sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv))
        and succeeds(
            *(sys.executable, "-m", "pip", "--python", str(venv / "bin" / "python")),
            *("--disable-pip-version-check", "install", "--quiet", "pip"),
        )
        and has_pip(venv)
    )


def venv_after_system_package(venv: Path) -> bool:
    """The ordinary way once more, after installing what it lacked."""
    from system_packages import install_first_available

    major, minor = sys.version_info[:2]
    names = (f"python{major}.{minor}-venv", "python3-venv")
    return install_first_available({"apt-get": names}) is not None and venv_alone(venv)


def succeeds(*command: str) -> bool:
    """Runs a command in silence; a program that does not exist is a failure too."""
    try:
        finished = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except OSError:
        return False
    return finished.returncode == 0


if __name__ == "__main__":
    main()
