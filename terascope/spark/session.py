"""Opening Spark the way Terascope needs it.

In: a master URL or none. Out: a quiet SparkSession with ANSI arithmetic, UTC, Arrow and a shuffle
sized for the machine; or one clear line when there is no Java. A session that somebody else opened
is adopted: `adopt_session` gives a sibling with our SQL settings and leaves theirs alone.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

JAVA_RECORD = "terascope-java-home"
"""File in the Python environment where the installation noted the Java it found."""

SQL_SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.crossJoin.enabled": "true",
    # Column names of ours hold dots and hashes, but only as quoted names.
    "spark.sql.caseSensitive": "true",
    # A union of many reads, or a deep chain of shared streams, prints as one endless line.
    "spark.sql.debug.maxToStringFields": "50",
    # A stream runs a few jobs in every micro-batch: what is remembered of each must not grow.
    "spark.sql.streaming.numRecentProgressUpdates": "5",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # It would make integers of the decimals that bounds are given as (terascope.spark.operands).
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
    ),
    # A stack trace of a Python worker ends in the line people need; the rest is of no use to them.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}

STREAM_MEGABYTES = 2048
STREAM_JAVA = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:CompileThresholdScaling=0.1"
    " -XX:ReservedCodeCacheSize=128m -Xms384m -XX:+AlwaysPreTouch"
)
"""A JVM that plans small jobs for ever, while tuples are the workers' business. The compiler that
takes its time would work on and on for code that is soon another one, and a collector that wants
few pauses would let the heap grow as far as it may. What the heap begins with is there from the
beginning, so that what grows later is seen."""

LOG_SETTINGS = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""

# Spark's scripts source this before they start Java: all that the JVM itself says (that it uses
# incubator modules, what its executors log) goes to a file instead of a person's terminal.
ENVIRONMENT = 'exec 2>>"$TERASCOPE_SPARK_LOG"\n'


TROUBLE = re.compile(r"^[\d:]+ ERROR |(?:Exception|Error)\b")
PREFIX = re.compile(r"^(?:.*?\b\w*(?:Exception|Error): |[\d:]+ ERROR \w+: )+")
"""Where the line came from, which tells a person nothing."""


class SparkUnavailable(Exception):
    """Spark cannot be started; the message says why and what to do."""


def open_session(
    master: str | None = None,
    app_name: str = "terascope",
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark, or join the session that is already running in this process.

    Raises:
        SparkUnavailable: there is no Java, or it did not start.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        return adopt_session(running)
    master = master or "local[*]"
    if master.startswith("sc://"):
        return connect_session(master, app_name)
    folder = Path(tempfile.mkdtemp(prefix="terascope-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    log = folder / "spark.log"
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in {**default_settings(master, folder), **(settings or {})}.items():
        builder = builder.config(key, value)
    try:
        with launch_environment(folder, log):
            session = builder.getOrCreate()
    except Exception as problem:  # py4j has exceptions of its own, which nobody should import
        raise SparkUnavailable(start_problem(master, problem, log)) from problem
    return session


def connect_session(remote: str, app_name: str) -> SparkSession:
    """A session of a Spark Connect server, which has settings and a Java of its own."""
    if importlib.util.find_spec("grpc") is None:
        # PySpark would leave the process without a word.
        raise SparkUnavailable("Spark Connect needs more packages: pip install 'pyspark[connect]'")
    try:
        return adopt_session(SparkSession.builder.remote(remote).appName(app_name).getOrCreate())
    except (PySparkException, ImportError, OSError) as problem:
        reason = str(problem).strip().partition("\n")[0]
        raise SparkUnavailable(f"cannot reach Spark at '{remote}': {reason}") from problem


def adopt_session(session: SparkSession) -> SparkSession:
    """A session that shares everything with the given one but has our SQL settings."""
    ours = session.newSession()
    for key, value in SQL_SETTINGS.items():
        ours.conf.set(key, value)
    return ours


def is_alive(session: SparkSession) -> bool:
    """Whether anything can still be run in a session: its JVM is there, and was not stopped."""
    try:
        return not session.sparkContext._jsc.sc().isStopped()
    except Exception:  # py4j has several for a JVM that is not there
        return False


def default_settings(master: str, folder: Path) -> dict[str, str]:
    python_path = os.pathsep.join(
        part
        for part in (str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH"))
        if part
    )
    settings = {
        **SQL_SETTINGS,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(2 * parallelism(master)),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.executorEnv.PYTHONPATH": python_path,
        "spark.log.level": "ERROR",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "1000",
        "spark.ui.retainedDeadExecutors": "5",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": f"{driver_megabytes()}m",
            "spark.local.dir": str(folder / "local"),
        }
    return settings


def stream_settings(master: str | None) -> dict[str, str]:
    """What is better otherwise when a session is opened for a stream."""
    if not (master or "local").startswith("local"):
        return {}
    return {
        "spark.driver.memory": f"{min(STREAM_MEGABYTES, driver_megabytes())}m",
        "spark.driver.extraJavaOptions": STREAM_JAVA,
    }


def parallelism(master: str) -> int:
    """How many tasks run at once, as far as the master URL tells."""
    inside = master.partition("[")[2].partition("]")[0].partition(",")[0]
    if inside.isdigit():
        return int(inside)
    return 1 if master == "local" else os.cpu_count() or 1


def driver_megabytes() -> int:
    """A quarter of the machine, between 1 and 8 GB: Python workers and the page cache need the
    rest.
    """
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    except (AttributeError, ValueError, OSError):
        total = 8192
    return max(1024, min(8192, total // 4))


@contextmanager
def launch_environment(folder: Path, log: Path) -> Iterator[None]:
    """The environment variables Spark's start scripts look at, for as long as they run."""
    changes = {"TERASCOPE_SPARK_LOG": str(log), "PYSPARK_PYTHON": sys.executable}
    if "SPARK_CONF_DIR" not in os.environ and "SPARK_HOME" not in os.environ:
        (folder / "log4j2.properties").write_text(LOG_SETTINGS, encoding="utf-8")
        (folder / "spark-env.sh").write_text(ENVIRONMENT, encoding="utf-8")
        changes["SPARK_CONF_DIR"] = str(folder)
    if (home := java_home()) is not None:
        changes["JAVA_HOME"] = str(home)
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def java_home() -> Path | None:
    """The Java to use when the environment does not say: None when it does.

    Raises:
        SparkUnavailable: there is none.
    """
    chosen = os.environ.get("JAVA_HOME")
    if chosen:
        if not (Path(chosen) / "bin" / "java").exists() and os.name != "nt":
            raise SparkUnavailable(f"JAVA_HOME is '{chosen}', which has no bin/java")
        return None
    record = Path(sys.prefix) / JAVA_RECORD
    if record.is_file():
        noted = Path(record.read_text(encoding="utf-8").strip())
        if (noted / "bin").is_dir():
            return noted
    if shutil.which("java"):
        return None
    raise SparkUnavailable(
        "no Java found: Spark needs Java 17 or newer; run 'make install', or install one and set"
        " JAVA_HOME"
    )


def start_problem(master: str, problem: Exception, log: Path) -> str:
    """What Java said first, or else what PySpark made of it."""
    said = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    told = next((line for line in said if TROUBLE.search(line)), None)
    reason = told or str(problem).strip().partition("\n")[0] or type(problem).__name__
    return f"Spark did not start with master '{master}': {PREFIX.sub('', reason).strip()}"
