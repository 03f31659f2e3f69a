"""`python -m terascope.training`: the archive of Spark's classes is made (spark/class_archive.py).

A small query set runs as most do, next to its source and in Spark, so that the classes it takes are
known; Java writes them down when it ends.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from terascope.config import Config
from terascope.session import Session
from terascope.spark.class_archive import archive_path, claim, java_program, take
from terascope.spark.session import end_java, java_home, open_session

SET = """
PROTOCOL EVENT (time UINT increasing clock(s), host STRING, bytes UINT);
QUERY busy: SELECT tb, host, COUNT(*) AS n, SUM(bytes) AS total FROM EVENT
GROUP BY time/60 AS tb, host ORDER BY total DESC LIMIT 2;
QUERY large: SELECT time, host, bytes FROM EVENT WHERE bytes > 990;
"""
NICE = 10
JAVA_SECONDS = 600


def main() -> int:
    """Make the archive, unless it is there; 0 when it then is."""
    java = java_program(java_home())
    path = None if java is None else archive_path(java)
    if path is None:
        return 1
    if path.exists():
        return 0
    if not claim(path):
        return 1
    os.nice(NICE)
    new = path.with_suffix(f".jsa.{os.getpid()}")
    try:
        spark = open_session(
            "local[2]",
            "terascope-training",
            {"spark.driver.extraJavaOptions": f"-Xlog:disable -XX:ArchiveClassesAtExit={new}"},
        )
        with tempfile.TemporaryDirectory(prefix="terascope-training-") as folder:
            events = Path(folder) / "events.csv"
            lines = (f"{i // 4},h{i % 7},{i % 1000}\n" for i in range(5000))
            events.write_text("time,host,bytes\n" + "".join(lines), encoding="utf-8")
            for low in ("native", "catalyst"):
                with Session(spark, config=Config(low=low)) as session:
                    session.source(f"events=csv:{events}")
                    for result in session.query(SET).run().values():
                        result.head(), result.row_count
        spark.stop()
        end_java(JAVA_SECONDS)
        return 0 if take(new, path) else 1
    finally:
        new.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
