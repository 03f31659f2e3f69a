"""Finds a Java runtime for Spark, or installs one: `.venv/bin/python scripts/ensure_java.py`.

In: JAVA_HOME, PATH and the usual folders. Out: the file `terascope-java-home` in the environment,
whose one line is the home of a Java of version 17 or newer; the Spark session starts that one.
Without any, in this order: the system's package manager, the `install-jdk` package.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from system_packages import install_first_available

OLDEST = 17
INSTALLED_VERSION = "17"
SYSTEM_PACKAGES = {
    "apt-get": ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless"),
    "dnf": ("java-17-openjdk-headless", "java-21-openjdk-headless"),
    "apk": ("openjdk17-jre-headless", "openjdk21-jre-headless"),
}
USUAL_FOLDERS = (Path("/usr/lib/jvm"), Path("/Library/Java/JavaVirtualMachines"))
RECORD = Path(sys.prefix) / "terascope-java-home"
PRIVATE_FOLDER = Path(sys.prefix) / "jdk"


def main() -> None:
    """Records the home of a usable Java, or exits with one line that says what to do."""
    home = find_java() or java_of_the_system() or java_of_install_jdk()
    if home is None:
        raise SystemExit(
            f"help: install a Java {OLDEST} or newer runtime, set JAVA_HOME to it, and run make"
            " again"
        )
    RECORD.write_text(f"{home}\n")
    print(f"Spark will use the Java in {home}")


def find_java() -> Path | None:
    """The home of the first usable Java among all the places where one may be."""
    return next((home for java in java_programs() if (home := usable_home(java))), None)


def java_programs() -> Iterator[Path]:
    """Every `java` worth asking, the user's own choice first."""
    if chosen := os.environ.get("JAVA_HOME"):
        yield Path(chosen) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    for folder in (PRIVATE_FOLDER, *USUAL_FOLDERS):
        # A macOS runtime has its home two folders deeper.
        yield from sorted((*folder.glob("*/bin/java"), *folder.glob("*/Contents/Home/bin/java")))


def usable_home(java: Path) -> Path | None:
    """The home of this Java when it runs and is new enough (`java` itself may be a mere link)."""
    try:
        told = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"java\.specification\.version = (\d+)", told.stderr)
    home = re.search(r"java\.home = (.+)", told.stderr)
    if version is None or home is None or int(version[1]) < OLDEST:
        return None
    return Path(home[1].strip())


def java_of_the_system() -> Path | None:
    """Installs a runtime with the system's package manager, where this user may."""
    print(f"no Java {OLDEST} or newer found", flush=True)
    return find_java() if install_first_available(SYSTEM_PACKAGES) else None


def java_of_install_jdk() -> Path | None:
    """Downloads a runtime into the environment; needs no rights, but access to the outside."""
    print(f"downloading a Java {INSTALLED_VERSION} runtime into {PRIVATE_FOLDER}", flush=True)
    try:
        import jdk
    except ImportError as missing:
        print(f"error: cannot download Java: {missing}", file=sys.stderr)
        return None
    PRIVATE_FOLDER.mkdir(exist_ok=True)
    try:
        jdk.install(INSTALLED_VERSION, jre=True, path=str(PRIVATE_FOLDER))
    except (jdk.JdkError, OSError) as failure:
        print(f"error: cannot download Java: {failure}", file=sys.stderr)
        return None
    return find_java()


if __name__ == "__main__":
    main()
