"""Installs tshark, the independent judge of the packet decoder, where that disturbs nobody.

Only as root (a container, a build machine) and only when it is missing. Never fails: the tests that
compare with tshark say that they were skipped.
"""

from __future__ import annotations

import os
import shutil

from system_packages import install_first_available

SYSTEM_PACKAGES = {"apt-get": ("tshark",), "dnf": ("wireshark-cli",), "apk": ("tshark",)}


def main() -> None:
    """Leaves tshark installed, or one line that says it is not."""
    if shutil.which("tshark"):
        return
    if os.geteuid() == 0 and install_first_available(SYSTEM_PACKAGES):
        return
    print("tshark is not installed: the tests that compare with it will be skipped")


if __name__ == "__main__":
    main()
