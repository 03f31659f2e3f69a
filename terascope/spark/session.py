"""Opening Spark with the settings that Terascope needs.

In: a master URL or none. Out: a quiet SparkSession with ANSI arithmetic, UTC, Arrow and a shuffle
sized for the machine; or one clear line when there is no Java. `adopt_session` makes a sibling of a
session that the user opened, with Terascope's SQL settings, and leaves the user's alone. Only
terascope.spark imports pyspark; other modules find the types of sessions and DataFrames here.
"""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import re
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame as DataFrame
from pyspark.sql import SparkSession as SparkSession

from terascope.config import machine_memory
from terascope.spark import class_archive

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
KERNELS_USED = "TERASCOPE_KERNELS_USED"
NO_FOLDER = "/nonexistent/terascope"
LONGEST_SOCKET = 100
"""The bytes of a socket path that every system accepts."""
JAVA_RECORD = "terascope-java-home"
"""The file in the Python environment in which the installation recorded the Java it found."""

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
    # A stream runs a few jobs in every micro-batch: the memory of past jobs must not grow.
    "spark.sql.streaming.numRecentProgressUpdates": "5",
    "spark.sql.streaming.minBatchesToRetain": "10",
    # It would make integers of the decimals that bounds are given as
    # (terascope.spark.catalyst.frame).
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.UnwrapCastInBinaryComparison"
    ),
    # Sums of FLOATs keep a list for each group (terascope.spark.catalyst.float_sums), most often an
    # empty one: beyond 128 groups a task would sort all rows instead of hashing them.
    "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "65536",
    # A stack trace of a Python worker ends in the line people need; the rest is of no use to them.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
}

STREAM_MEGABYTES = 2048
STREAM_JAVA = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:CompileThresholdScaling=0.1"
    " -XX:ReservedCodeCacheSize=128m -Xms384m -XX:+AlwaysPreTouch"
)
"""Options of a JVM that plans small jobs without end, while workers process tuples. The optimising
compiler would compile code that soon changes, again and again, and a collector with short pauses
would let the heap grow to its limit. The heap has its initial size from the start, so that later
growth is visible."""

BATCH_JAVA = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
    " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000 -Xms192m"
)
"""Options of a JVM that starts, runs a few jobs and ends: its optimising compiler waits ten times
as long before it compiles a method. By default it works beside a short run for nothing. The heap is
small at first, and grows where Spark does much."""

CLUSTER_SETTINGS: Mapping[str, str] = {
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "5s",
    "spark.shuffle.io.retryWait": "2s",
    "spark.task.maxFailures": "8",
}
"""Settings for the hosts of a standalone cluster. A host that is cut off is noticed after 30 to 35
seconds, and its tasks run elsewhere; by default after two to three minutes. A task that loses its
executor counts as failed: several hosts may be lost one after the other."""

LOG_SETTINGS = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
"""

TROUBLE = re.compile(r"^[\d:]+ ERROR |(?:Exception|Error)\b")
PREFIX = re.compile(r"^(?:.*?\b\w*(?:Exception|Error): |[\d:]+ ERROR \w+: )+")
"""The origin of a log line, which is removed from messages."""


class SparkUnavailable(Exception):
    """Spark cannot be started; the message has the reason and the remedy."""


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
    chosen: dict[str, Any] = {**default_settings(master, folder), **(settings or {})}
    builder = SparkSession.builder.master(master).appName(app_name).config(map=chosen)
    if master.startswith("local"):
        # Whoever connects to the driver or to an executor on this machine must know a secret. It is
        # not among the arguments of a process, which everybody may read. A cluster has its own.
        builder = builder.config("spark.authenticate", "true")
        builder = builder.config("spark.authenticate.secret", secrets.token_hex(32))
    try:
        home = java_home()
        with launch_environment(home):
            start_java(
                {"spark.master": master, "spark.app.name": app_name, **chosen}, home, folder, log
            )
            session = builder.getOrCreate()
            # PySpark's own server prints a stack trace when its JVM is gone: whoever waits for the
            # JVM says what happened.
            server: Any = session.sparkContext._accumulatorServer
            server.handle_error = lambda *_: None
            return session
    except SparkUnavailable:
        raise
    except Exception as problem:  # py4j has exceptions of its own, which nobody should import
        raise SparkUnavailable(start_problem(master, problem, log)) from problem


def start_java(settings: dict[str, str], home: Path | None, folder: Path, log: Path) -> None:
    """Start the JVM, unless one is running in this process.

    Its output (that it uses incubator modules, the logs of its executors) goes to a file instead of
    the terminal. Files that it and its workers make are private (terascope.files opens those that
    are not).
    """
    if SparkContext._gateway is not None:
        return
    java = class_archive.java_program(home)
    options = [settings.get(JAVA_OPTIONS, "")]
    if os.environ.get("SPARK_CONF_DIR") == NO_FOLDER:
        (folder / "log4j2.properties").write_text(LOG_SETTINGS, encoding="utf-8")
        options.append(f"-Dlog4j2.configurationFile=file:{folder / 'log4j2.properties'}")
        if java is not None and "ArchiveClassesAtExit" not in options[0]:
            options.append(class_archive.archive_options(java))
            class_archive.make_later(java)
    settings[JAVA_OPTIONS] = " ".join(option for option in options if option)
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    launch: Any = launch_gateway  # has no type hints
    with log.open("ab") as said:
        gateway = launch(conf, {"stdout": said, "stderr": said, "umask": 0o077})
    used = settings.get(f"spark.executorEnv.{KERNELS_USED}")
    if used is not None:
        os.environ[KERNELS_USED] = used
    SparkContext._ensure_initialized(gateway=gateway)


def end_java(seconds: float) -> None:
    """End the JVM of this process, and wait for it."""
    gateway = SparkContext._gateway
    assert gateway is not None
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(seconds)


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
    """A session that shares everything with the given one but has Terascope's SQL settings."""
    ours = session.newSession()
    for key, value in SQL_SETTINGS.items():
        ours.conf.set(key, value)
    return ours


def silence_mistakes() -> None:
    """Stop PySpark from writing every exception to stderr as JSON: Terascope reports each once."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    # So does py4j, for every connection to a JVM that is gone, to its own logger and to the root.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(is_not_py4j)


def is_not_py4j(record: logging.LogRecord) -> bool:
    """Whether a log record is not from py4j."""
    return "py4j" not in Path(record.pathname).parts


def tasks(spark: SparkSession) -> tuple[int, int] | None:
    """The tasks of the running stages that are done, and all of them."""
    context = context_of(spark)
    if context is None:
        return None
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    if not known:
        return None
    return sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)


def context_of(session: SparkSession) -> Any:
    """The SparkContext of a session; None: a session of Spark Connect has none in this process."""
    return getattr(session, "sparkContext", None)


def java_process(session: SparkSession) -> int:
    """The process of the JVM that a session has started."""
    return int(context_of(session)._gateway.proc.pid)


def is_alive(session: SparkSession) -> bool:
    """Whether a session can still run anything: its JVM, or its connection to the server of Spark
    Connect, exists and was not stopped.
    """
    try:
        context = context_of(session)
        if context is None:
            return not cast(Any, session).is_stopped
        return not context._jsc.sc().isStopped()
    except Exception:  # py4j has several for a JVM that is not there
        return False


def master_of(session: SparkSession) -> str:
    """The master URL of a session; empty where Spark Connect does not say."""
    context = context_of(session)
    return "" if context is None else context.master or ""


def runs_here(session: SparkSession) -> bool:
    """Whether the tasks of a session run on this machine, and have its files."""
    return master_of(session).startswith("local")


def forget_session(session: SparkSession) -> None:
    """Forget a session whose JVM is gone, so that another one can be started in this process.
    PySpark keeps references to its JVM in its classes, and would use the old one for ever.
    """
    context = context_of(session)
    if context is None:
        return
    with suppress(Exception):  # the server that workers report to
        context._accumulatorServer.shutdown()
    with suppress(Exception):  # closes the sockets that nobody answers any more
        context._gateway.shutdown()
    with suppress(Exception):  # it is dead, and waited for by nobody
        context._gateway.proc.kill()
        context._gateway.proc.wait()
    with SparkContext._lock:
        if SparkContext._active_spark_context is context:
            SparkContext._gateway = SparkContext._jvm = None
            SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


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
    if master.startswith("spark://"):
        settings |= CLUSTER_SETTINGS
    if master.startswith("local"):
        # The JVM has little garbage: tuples are the workers' business.
        collector = "-XX:+UseSerialGC" if parallelism(master) <= 2 else "-XX:+UseParallelGC"
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": f"{driver_megabytes()}m",
            "spark.local.dir": str(folder / "local"),
            # Checkpoints and files of Spark itself: Hadoop reads its own setting, not the system's.
            "spark.hadoop.fs.permissions.umask-mode": "077",
            "spark.python.daemon.module": "terascope.spark.daemon",
            f"spark.executorEnv.{KERNELS_USED}": str(folder / "kernels-used"),
            JAVA_OPTIONS: f"{BATCH_JAVA} {collector}",
            **socket_settings(folder),
        }
    return settings


def socket_settings(folder: Path) -> dict[str, str]:
    """The JVM and its workers communicate over sockets in a private folder: with TCP, each task
    would wait for acknowledgements that are delayed by 40 ms, and other users could connect. Where
    the path is too long for a socket, Spark's default stays.
    """
    longest = folder / f".{uuid4()}.sock"
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(longest)) > LONGEST_SOCKET:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(folder),
    }


@contextmanager
def planned_once(spark: SparkSession) -> Iterator[None]:
    """Turn off adaptive planning for rows that are kept and read in the same job: an adaptive plan
    would compute them in a job of their own before.
    """
    name = "spark.sql.adaptive.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "false")
    try:
        yield
    finally:
        spark.conf.set(name, before or "true")


def stream_settings(master: str | None) -> dict[str, str]:
    """Settings that differ for a session opened for a stream."""
    if not (master or "local").startswith("local"):
        return {}
    return {
        "spark.driver.memory": f"{min(STREAM_MEGABYTES, driver_megabytes())}m",
        JAVA_OPTIONS: STREAM_JAVA,
    }


def parallelism(master: str) -> int:
    """The number of tasks that run at once, as far as the master URL says."""
    inside = master.partition("[")[2].partition("]")[0].partition(",")[0]
    if inside.isdigit():
        return int(inside)
    return 1 if master == "local" else os.cpu_count() or 1


def driver_megabytes() -> int:
    """A quarter of the machine's memory, between 1 and 8 GB: Python workers and the page cache need
    the rest.
    """
    return max(1024, min(8192, (machine_memory() >> 20) // 4))


@contextmanager
def launch_environment(home: Path | None) -> Iterator[None]:
    """The environment variables that Spark reads when it starts, set while it starts."""
    changes = {"PYSPARK_PYTHON": sys.executable}
    if "SPARK_CONF_DIR" not in os.environ and "SPARK_HOME" not in os.environ:
        # It is on the class path, which must always be the same for an archive of classes.
        changes["SPARK_CONF_DIR"] = NO_FOLDER
    if home is not None:
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
    """The Java to use when the environment does not name one; None when it does.

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
    """The first message of Java, or else that of PySpark."""
    said = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    told = next((line for line in said if TROUBLE.search(line)), None)
    reason = told or str(problem).strip().partition("\n")[0] or type(problem).__name__
    return f"Spark did not start with master '{master}': {PREFIX.sub('', reason).strip()}"
