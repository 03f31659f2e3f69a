"""`python -m terascope` is `terascope`."""

from __future__ import annotations

from terascope.cli import app

if __name__ == "__main__":
    app(prog_name="terascope")
