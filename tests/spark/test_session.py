"""Spark opens quietly, or says in one line why it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession

from terascope.spark.engine import SparkBatchEngine
from terascope.spark.session import (
    JAVA_RECORD,
    SparkUnavailable,
    adopt_session,
    default_settings,
    forget_session,
    is_alive,
    java_home,
    parallelism,
    runs_here,
    tasks,
)


@pytest.mark.parametrize(
    ("master", "tasks"),
    [("local", 1), ("local[3]", 3), ("local[2,4]", 2), ("local-cluster[2,1,9]", 2)],
)
def test_parallelism_follows_the_master(master: str, tasks: int) -> None:
    assert parallelism(master) == tasks


def test_a_cluster_keeps_its_own_folders_and_addresses(tmp_path: Path) -> None:
    assert "spark.local.dir" in default_settings("local[2]", tmp_path)
    assert "spark.local.dir" not in default_settings("spark://host:7077", tmp_path)


def test_java_is_the_one_the_installation_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(SparkUnavailable, match="no Java found"):
        java_home()
    (tmp_path / "jdk" / "bin").mkdir(parents=True)
    (tmp_path / JAVA_RECORD).write_text(f"{tmp_path / 'jdk'}\n", encoding="utf-8")
    assert java_home() == tmp_path / "jdk"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "absent"))
    with pytest.raises(SparkUnavailable, match="JAVA_HOME is"):
        java_home()


class ServerSession:
    """A session of Spark Connect, as far as it differs: its JVM is elsewhere."""

    def __init__(self, is_stopped: bool) -> None:
        self.is_stopped = is_stopped

    def __getattr__(self, name: str) -> None:
        raise PySparkAttributeError(
            errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": name}
        )


def test_a_session_of_a_server_is_alive_until_it_is_stopped() -> None:
    alive, stopped = (cast(SparkSession, ServerSession(is_stopped)) for is_stopped in (False, True))
    assert is_alive(alive)
    assert not is_alive(stopped)
    assert not runs_here(alive)
    assert tasks(alive) is None
    assert SparkBatchEngine(alive, []).processes >= 1
    forget_session(stopped)


@pytest.mark.spark
def test_an_adopted_session_leaves_the_other_alone(spark: SparkSession) -> None:
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.ansi.enabled", "false")
    ours = adopt_session(theirs)
    assert ours.conf.get("spark.sql.ansi.enabled") == "true"
    assert theirs.conf.get("spark.sql.ansi.enabled") == "false"


@pytest.mark.spark
def test_a_run_says_nothing_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "from terascope.spark.session import open_session\n"
        "spark = open_session('local[1]')\n"
        "assert spark.range(3).count() == 3\n"
        "spark.stop()\n",
        encoding="utf-8",
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, cwd=root,
        env={**__import__("os").environ, "PYTHONPATH": str(root)}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.spark
def test_whoever_connects_must_know_a_secret_that_no_argument_shows(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.authenticate") == "true"
    secret = conf.get("spark.authenticate.secret")
    assert secret
    arguments = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
    assert not any(secret.encode() in each for each in arguments)
