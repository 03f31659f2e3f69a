"""What a run that is killed works on: a query set with every kind of state, and little data.

In: a folder. Out: two captures in it, and `open_set`, the set bound to them. The set has groups
that tasks finish and groups that wait, a selection, a merge of two interfaces, a join, windows that
overlap, groups that live on, and a top-k.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from terascope.config import load_config
from terascope.session import QuerySet, Session
from terascope.traffic.profile import Profile
from terascope.traffic.trace import generate

if TYPE_CHECKING:
    from terascope.spark.session import SparkSession

QUERIES: Final = """
QUERY senders: SELECT tb, srcIP, COUNT(*) AS packets, SUM(len) AS bytes
  FROM left.TCP GROUP BY time/5 AS tb, srcIP;

QUERY syns: SELECT time, timestamp, srcIP, destIP, destPort FROM left.TCP WHERE SYN AND NOT ACK;

DEFINE { query_name 'one_link'; visibility 'internal'; }
MERGE L.timestamp : R.timestamp FROM left.TCP L, right.TCP R;
QUERY both: SELECT time, timestamp, interface, srcIP, destIP, len FROM one_link;

DEFINE { query_name 'opened'; visibility 'internal'; }
SELECT tb, destIP, COUNT(*) AS syns FROM left.TCP WHERE SYN AND NOT ACK
GROUP BY time/5 AS tb, destIP;
DEFINE { query_name 'answered'; visibility 'internal'; }
SELECT tb, srcIP, COUNT(*) AS answers FROM left.TCP WHERE SYN AND ACK GROUP BY time/5 AS tb, srcIP;
QUERY served: SELECT O.tb, O.destIP, O.syns, A.answers FROM opened O JOIN answered A
  WHERE O.tb = A.tb AND O.destIP = A.srcIP;

QUERY overlapping: SELECT destIP, COUNT(*) AS packets, wstart, wend
  FROM right.TCP [RANGE '9 sec' SLIDE '4 sec'] GROUP BY destIP;

QUERY living: SELECT tb, srcIP, COUNT(*) AS packets, running_count(*) AS total
  FROM left.TCP WHERE len > 1000 GROUP BY time/4 AS tb, srcIP CLOSING_WHEN COUNT(*) < 2;

QUERY talkers: SELECT tb, srcIP, SUM(len) AS bytes FROM [links].TCP
  GROUP BY time/3 AS tb, srcIP ORDER BY bytes DESC, srcIP LIMIT 3;
"""

NAMES: Final = ("senders", "syns", "both", "served", "overlapping", "living", "talkers")

BATCH_BYTES: Final = 150_000
"""Four micro-batches or five; a split is a third of one."""

QUICK: Final = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""For Spark: runs are short, and none of them is measured."""


def make_data(folder: Path, packets: int = 4000) -> None:
    """The two captures, of the same minute."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(("left", "right")):
        path = folder / f"{name}.pcap"
        if not path.exists():
            profile = Profile(
                packets=packets // (1 + seed), duration=60.0, seed=7 + seed, hosts=120, snaplen=96
            )
            generate(profile, path)


def open_set(data: Path, spark: SparkSession) -> tuple[Session, QuerySet]:
    """The set, in a session of the Spark that is given."""
    config = load_config(kernels="numpy", split_bytes=BATCH_BYTES // 3)
    session = Session(spark, config=config)
    for name in ("left", "right"):
        session.source(f"{name}=pcap:{data / f'{name}.pcap'}")
    session.set("links", "left", "right")
    return session, session.query(QUERIES)
