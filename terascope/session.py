"""The Python API: open a session, bind sources, load a query set, explain it, run it.

    with terascope.Session() as ts:
        ts.source("eth0=pcap:trace.pcap")
        ts.dataframe("logins", spark.read.table("logins"))  # anything that Spark can read
        flows = ts.load("flows.gsql", threshold=100)
        print(flows.explain(stage="job"))
        results = flows.run()
        results["flows"].show()
        results.write("out", "parquet")

In: sources, queries and settings, as on the command line. Out: query sets and results. A small
batch is computed in this process; Spark is started only when a run needs it. Mistakes come as
QueryError, SourceError, ConfigError, FunctionMistake, ValueMistake or OutputError, each with a
message for the user.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final, cast

from terascope.analysis.costs import read_measured
from terascope.config import DEFAULT_MASTER, Config, load_config
from terascope.connectors.base import interface_of
from terascope.connectors.registry import Interface, parse_interface
from terascope.diagnostic import Diagnostic, OutputError, Source, SourceError, SparkLost
from terascope.explain import Format, Stage, as_svg, explain, picture
from terascope.functions.base import AggregateFunction, Scalar
from terascope.functions.registry import Functions
from terascope.functions.user import load_functions
from terascope.local.choice import EngineChoice, EngineRequest, EngineSetting, choose_engine
from terascope.output import FileFormat, staged
from terascope.partitioning.partitions import partitions_of
from terascope.physical.delivery import Sink
from terascope.physical.operators import without_spark
from terascope.pipeline import Bindings, Compiled, compile_set, files_allowed, read_source
from terascope.plan.plan import Stream
from terascope.results import Results

if TYPE_CHECKING:
    from terascope.advise.advice import Advice
    from terascope.execute.low_level import Progress
    from terascope.execute.results.job_result import JobResult
    from terascope.operate.subscription import Callback
    from terascope.physical.delivery import PartFormat
    from terascope.physical.job import Job
    from terascope.physical.settings import Destination
    from terascope.running import RunningSet, StreamFormat
    from terascope.spark.session import DataFrame, SparkSession
    from terascope.streaming.heartbeat import BatchReport

PARTS: Final = ".parts"


class Session(AbstractContextManager["Session"]):
    """Sources, functions and settings that query sets are bound to, and the Spark that runs them.

    A SparkSession that is given stays open; one that was started here is stopped by `close`.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        master: str | None = None,
        config: Config | str | Path | None = None,
        engine: EngineSetting | None = None,
    ) -> None:
        """`engine`: local, spark or auto; by default that of the configuration."""
        if not isinstance(config, Config):
            config = load_config(None if config is None else Path(config))
        given = {"master": master, "engine": engine}
        update = {name: value for name, value in given.items() if value is not None}
        self.config = config = config.changed(
            measured_costs=config.measured_costs or read_measured(), **update
        )
        self._given = spark
        self._spark: SparkSession | None = None
        self._results: list[Results] = []
        self.bindings = Bindings(
            parameters=dict(config.params),
            config=config,
            engine=EngineRequest(config.engine, spark_because(spark, config.master)),
        )
        for name, text in config.sources.items():
            options = config.source_options.get(name, {})
            self.source(f"{name}={text}", config.partitioned_by.get(name), **options)
        for name, members in config.sets.items():
            self.set(name, *members)
        for path in config.functions:
            self.register(*load_functions(path))

    # ---- binding

    def source(self, text: str, partitioned_by: str | None = None, **options: str) -> Interface:
        """Bind a source, `[INTERFACE=]KIND:LOCATION`; options go to its connector.

        `partitioned_by`: expressions over its columns, such as 'srcIP & 0xFFFFFFF0, destIP'. Each
        file or folder in the location is then a partition, which has all tuples with the same
        values of them. What 'terascope split' wrote says so itself.

        Raises:
            SourceError: the text makes no sense, or the interface is bound already.
        """
        interface = parse_interface(text, {k: str(v) for k, v in options.items()})
        other = f"{interface.name}2={interface.kind}:{interface.location}"
        for part in partitions_of(interface, partitioned_by):
            self._bind(part, other)
        return interface

    def dataframe(self, name: str, df: DataFrame, partitioned_by: str | None = None) -> Interface:
        """Bind a Spark DataFrame (not a streaming one) as the interface `name`.

            flows = spark.read.table("netflow")
            ts.dataframe("flows", flows)
            ts.query('''
                PROTOCOL FLOW (start UINT clock(s), srcIP IP, bytes ULLONG);
                SELECT tb, srcIP, SUM(bytes) AS total FROM flows.FLOW
                GROUP BY start/60 AS tb, srcIP
            ''').run()["query1"].show()

        Columns are found by their names. FROM flows alone reads them as they are, like those of a
        Parquet file; a PROTOCOL declares other types: a clock (of TIMESTAMP, DATE, numbers or
        text), an IP (text, an IPv4 number, 4 or 16 bytes). Tuples with another value are
        counted as malformed. The low level runs in Spark: with low = native the set is refused.

        `partitioned_by`: the expressions by which the DataFrame was partitioned, such as 'srcIP'
        after df.repartition(8, "srcIP"). Spark then computes queries that the set is compatible
        with in these partitions, without another exchange. It does so where it has made the
        partitions itself, by columns that GSQL takes as they are (BIGINT, STRING, ..): a column
        that has to be converted is another one for Spark.

        Raises:
            SourceError: it is no such DataFrame, or the interface is bound already.
        """
        from terascope.spark.dataframes import bound_dataframe

        if not name:
            raise SourceError("a DataFrame needs a name, which queries call it by")
        interface = self._bind(bound_dataframe(name, df, partitioned_by or ""), f"{name}2")
        if self._spark is None and self._given is None:
            self._given = df.sparkSession
        return interface

    def _bind(self, interface: Interface, other: str) -> Interface:
        if interface.name in self.bindings.interfaces or (
            interface.partition is None and interface.name in self.bindings.sources
        ):
            name = interface_of(interface.name)
            raise SourceError(f"two sources are called '{name}'; name them, such as {other}")
        self.bindings = replace(
            self.bindings,
            interfaces={**self.bindings.interfaces, interface.name: interface},
        )
        return interface

    def set(self, name: str, *members: str) -> None:
        """Make an interface set: FROM [name].TCP reads the merge of its members."""
        if not members:
            raise SourceError(f"interface set '{name}' has no members")
        self.bindings = replace(self.bindings, sets={**self.bindings.sets, name: members})

    def register(self, *functions: Scalar | AggregateFunction) -> None:
        """Add functions made with @terascope.scalar or @terascope.aggregate.

        Raises:
            FunctionMistake: a function of that name is there already.
        """
        known: Functions = self.bindings.functions
        self.bindings = replace(self.bindings, functions=known.extended(functions))

    # ---- query sets

    def load(self, path: str | Path, *more: str | Path, **parameters: object) -> QuerySet:
        """Read a query set from a file, or from several that make one set.

        Raises:
            SourceError: the file cannot be read.
            QueryError: it has mistakes; the exception carries all of them.
        """
        files = [read_source(Path(each)) for each in (path, *more)]
        return QuerySet(self, Source.joined(files), parameters)

    def query(self, text: str, **parameters: object) -> QuerySet:
        """A query set given as text; an unnamed query is called query1, query2, ...

        Raises:
            QueryError: it has mistakes.
        """
        return QuerySet(self, Source(text, "query"), parameters)

    # ---- Spark

    @property
    def spark(self) -> SparkSession:
        """Spark, started if need be.

        Raises:
            SparkUnavailable: there is no Java, or Spark did not start.
        """
        return self._open()

    @property
    def stream_spark(self) -> SparkSession:
        """Spark, started if need be with the settings of a stream."""
        return self._open(streaming=True)

    @property
    def lost_spark(self) -> SparkLost | None:
        """The mistake when Spark is gone and was not started by this session; None: Spark is there,
        or this session starts another one.
        """
        from terascope.spark.session import is_alive

        if self._spark is None or self._given is None or is_alive(self._spark):
            return None
        return SparkLost(
            "the Spark that this session was given has ended, and only its owner can start it"
            " again: open another SparkSession (in another process, if its JVM is gone) and run"
            " the set with the same checkpoint; nothing is lost"
        )

    def _open(self, streaming: bool = False) -> SparkSession:
        """Raises:
        SparkLost: Spark is gone, and was not started by this session.
        """
        if (lost := self.lost_spark) is not None:
            raise lost
        if self._spark is not None and self._forget_dead_spark():
            self._results.clear()  # what they had in Spark is gone with it
        if self._spark is None:
            from terascope.spark.session import (
                SparkSession,
                adopt_session,
                open_session,
                silence_mistakes,
                stream_settings,
            )

            silence_mistakes()
            # Whoever has started Spark in this process, that is the one to use, and not to stop.
            self._given = self._given or SparkSession.getActiveSession()
            if self._given is not None:
                self._spark = adopt_session(self._given)
            else:
                settings = stream_settings(self.config.master) if streaming else {}
                if self.config.shuffle_partitions is not None:
                    settings["spark.sql.shuffle.partitions"] = str(self.config.shuffle_partitions)
                self._spark = open_session(self.config.master, settings=settings)
        return self._spark

    @property
    def has_spark(self) -> bool:
        """Whether Spark is running for this session."""
        return self._spark is not None

    @property
    def _running_spark(self) -> SparkSession | None:
        """The Spark that is running already, for this session or for others in this process."""
        if self._spark is None and self._given is None and "pyspark" in sys.modules:
            from terascope.spark.session import SparkSession

            return SparkSession.getActiveSession()
        return self._spark or self._given

    def run(self, text: str, **parameters: object) -> Results:
        """Run a query set given as text: `query` and then `run`.

            ts.run("SELECT time, COUNT(*) FROM TCP GROUP BY time")["query1"].show()

        Raises:
            QueryError: it has mistakes.
            SourceError: a source is missing.
            ValueMistake: a value no answer exists for, such as an integer overflow.
        """
        return self.query(text, **parameters).run()

    def run_compiled(
        self,
        compiled: Compiled,
        progress: Progress | None = None,
        sink: Sink | None = None,
        engine: EngineSetting | None = None,
    ) -> Results:
        """Run a compiled set; `QuerySet.run` is the usual way. With a sink, the tasks write the
        queries that they can finish.
        """
        request = self.bindings.engine
        if engine is not None:
            request = replace(request, setting=engine)
        folder = None
        if sink is None and (request.setting == "local" or self._has_files_of_spark):
            # What tasks have finished need not be kept, sorted and fetched by further jobs.
            folder = Path(mkdtemp(prefix="terascope-rows-"))
            sink = self._sink(folder, "held")
        try:
            destination: Destination = "frames"
            if sink is not None:  # for files that are sorted later, or for those of the user
                destination = "rows" if sink.format == "held" else "files"
            planned = compiled.job_and_split(destination=destination)
            choice = choose_engine(planned[0], request, self._running_spark is not None)
            if choice.engine == "local":
                job, split = planned
                planned = replace(job, operators=without_spark(job.operators)), split
            has_own = self._spark is not None or self._given is not None
            if choice.engine == "spark" and not has_own and progress is not None:
                progress("starting Spark", 0, 1)
            made = self._run_job(planned[0], choice, progress, sink)
        except BaseException:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        results = Results(compiled, made, lambda: self.spark, planned, folder, choice)
        self._results.append(results)
        return results

    @property
    def _has_files_of_spark(self) -> bool:
        """Whether the tasks of Spark write files that this process can read."""
        if (running := self._running_spark) is None:
            return self.config.master.startswith("local")
        from terascope.spark.session import runs_here

        return runs_here(running)

    def _run_job(
        self, job: Job, choice: EngineChoice, progress: Progress | None, sink: Sink | None
    ) -> JobResult:
        if choice.engine == "local":
            from terascope.local.run import run_locally

            return run_locally(job, sink, progress)
        from terascope.spark.run import run_job

        return run_job(job, self.spark, progress, sink)

    def _sink(self, folder: Path, format: PartFormat) -> Sink:
        config = self.config
        return Sink(str(folder.absolute()), format, config.compiled, config.memory_bytes)

    def _forget_dead_spark(self) -> bool:
        """Forget a JVM that was killed, so that another one is started; False: it is alive."""
        from terascope.spark.session import forget_session, is_alive

        assert self._spark is not None
        if is_alive(self._spark):
            return False
        forget_session(self._spark)
        self._spark = None
        return True

    def close(self) -> None:
        """Release the resources of results, and stop Spark if it was started here."""
        while self._results:
            self._results.pop().close()
        if self._spark is not None and self._given is None and not self._forget_dead_spark():
            self._spark.stop()
        self._spark = None

    def __exit__(self, *_: object) -> None:
        self.close()


class QuerySet:
    """A query set, bound to the sources, functions and settings of its session."""

    def __init__(
        self, session: Session, source: Source, parameters: Mapping[str, object] | None = None
    ) -> None:
        self._session = session
        self.source = source
        self.parameters = {name: str(value) for name, value in (parameters or {}).items()}
        self._compiled = self._compile()

    def _compile(self) -> Compiled:
        self._bindings = self._session.bindings
        parameters = {**self._bindings.parameters, **self.parameters}
        bindings = replace(
            self._bindings,
            parameters=parameters,
            query_files=files_allowed(self.source, self._session.config.query_files),
        )
        return compile_set(self.source, bindings)

    @property
    def compiled(self) -> Compiled:
        """All stages but the last; bound again when the session got other sources meanwhile."""
        if self._bindings is not self._session.bindings:
            self._compiled = self._compile()
        return self._compiled

    @property
    def queries(self) -> tuple[Stream, ...]:
        """The visible queries."""
        return self.compiled.plan.visible

    def check(self) -> tuple[Diagnostic, ...]:
        """The warnings; also checks that there are no mistakes and that all sources exist.

        Raises:
            QueryError: the set does not fit the sources.
            SourceError: a source is missing or unreadable.
        """
        if self.compiled.runnable:
            self.compiled.job()
        return self.compiled.warnings

    def explain(
        self, stage: Stage = "optimized", format: Format = "text", verbose: bool = False
    ) -> str:
        """The set at a stage: ast, plan, optimized or job; as text, json, dot or html."""
        return explain(self.compiled, stage, format, verbose)

    def advise(
        self,
        into: int = 8,
        splitter: str = "",
        existing: Mapping[str, str] | str | None = None,
        weights: Mapping[str, float] | None = None,
        rotate: float | None = None,
        tuples: int | None = None,
        seconds: float = 2.0,
    ) -> Advice:
        """Recommend the partitioning set by which to split each source into so many partitions.

            advice = flows.advise(splitter="masks")
            advice.recommended.sets                     # {"eth0": ["srcIP & 0xFFFFFFF0"]}
            advice.document()["queries"]["flows"]

        `splitter`: what it can do: 'masks', or the expressions that it has. `existing`: the
        partitioning sets that exist, by source; a text is that of every source. `weights`: how
        often each query is asked of stored data. `rotate`: the seconds after which groups change
        their partition. `tuples`, `seconds`: the most that is read to measure rates.

        Raises:
            QueryError: no partitioning helps any query, or an argument makes no sense.
            SourceError: a source cannot be read.
        """
        from terascope.advise.advice import Wishes, advise

        wishes = Wishes(into, splitter, existing or {}, weights, rotate, tuples, seconds)
        return advise(self.compiled, wishes)

    def run(
        self,
        strict: bool | None = None,
        progress: Progress | None = None,
        engine: EngineSetting | None = None,
    ) -> Results:
        """Read the sources and compute all queries.

            flows.run()["flows"].show()                 # small inputs without Spark
            flows.run(engine="spark")["flows"].dataframe

        With `strict` (by default that of the configuration) malformed tuples are an error.
        `engine`: local computes in this process, without Spark; spark in Spark; auto, the default,
        uses local where Spark would take longer to start than the work takes. The rows are the
        same.

        Raises:
            SourceError: a source is missing, or is malformed and the run is strict.
            ValueMistake: a value no answer exists for, such as an integer overflow.
        """
        results = self._session.run_compiled(self.compiled, progress, engine=engine)
        if self._session.config.strict if strict is None else strict:
            results.check_strict()
        return results

    def write(
        self,
        directory: str | Path,
        format: FileFormat = "csv",
        parts: bool = False,
        progress: Progress | None = None,
        engine: EngineSetting | None = None,
    ) -> Results:
        """Read the sources, compute all queries and write them; the rows of most queries go
        straight from tasks to files. `engine`: see `run`.

        Every query becomes DIR/NAME.<format>, its rows in order; with `parts` (csv and parquet) a
        folder DIR/NAME of several files, in which the rows stand in no particular order. All of
        them or none.

        Raises:
            SourceError: a source is missing, or is malformed and the run is strict.
            OutputError: the directory cannot be written.
            ValueMistake: a value no answer exists for, such as an integer overflow.
        """
        bindings = self._session.bindings
        with staged(Path(directory), bindings.output_mode) as folder:
            return self.write_into(folder, format, parts, progress, engine)

    def write_into(
        self,
        folder: Path,
        format: FileFormat,
        parts: bool,
        progress: Progress | None = None,
        engine: EngineSetting | None = None,
    ) -> Results:
        """Write all queries into an existing folder."""
        if parts and format not in ("csv", "parquet"):
            raise OutputError(f"parts are csv or parquet, not {format}")
        tasks_folder = folder if parts else folder / PARTS
        # Without parts the files are put together afterwards, from values as engines hold them.
        form = cast("PartFormat", format if parts else "held")
        sink = self._session._sink(tasks_folder, form)
        results = self._session.run_compiled(self.compiled, progress, sink, engine)
        if self._session.config.strict:
            results.check_strict()
        results.write_into(folder, format, progress, parts)
        if not parts:
            shutil.rmtree(tasks_folder, ignore_errors=True)
        return results

    def stream(
        self,
        checkpoint: str | Path,
        output: str | Path | None = None,
        format: StreamFormat = "parquet",
        watch: Callable[[BatchReport], None] | None = None,
        say: Callable[[str], None] | None = None,
        progress: Progress | None = None,
        callback: Callback | None = None,
        **settings: Any,
    ) -> RunningSet:
        """Run the set as a stream, until its sources end or it is stopped.

            with flows.stream("state", "out", speed="max", until_idle=True) as running:
                running.wait(60)

        With `output`, the rows of each query go to a folder OUTPUT/NAME of immutable files with a
        manifest, each row once, whatever happens; else they are kept under the checkpoint for
        subscribers. `watch` is called after every micro-batch, `say` with notices for the user.
        `settings` override those of the session's Config, by the same names.

        `callback(query, batch, rows)` is called with the rows of every batch, an Arrow table, in
        order and before the next batch begins. When the process is killed before a call returns,
        it is called again with the same number and the same rows; one with a method
        `last(query)`, which gives the number of the last batch it has stored, gets each batch once.
        Without `output`, rows that it has taken are removed after a hundred batches.

        Raises:
            SourceError: a source is missing.
            OutputError: the output or the checkpoint cannot be written, or is of another set.
            ConfigError: a setting is unknown, or its value makes no sense.
        """
        from terascope.running import open_running

        self.compiled.check_stream()
        return open_running(
            lambda: self._session.stream_spark,
            self.compiled.with_settings(**settings),
            checkpoint,
            output,
            format,
            watch,
            say,
            progress,
            callback,
            lambda: self._session.lost_spark,
        )

    def _repr_html_(self) -> str:
        return f'<div style="overflow:auto">{as_svg(picture(self.compiled))}</div>'

    def __repr__(self) -> str:
        return f"<query set {self.source.name}: {', '.join(s.name for s in self.queries)}>"


def spark_because(given: SparkSession | None, master: str) -> str:
    """The reason why only Spark can run a set; empty: there is none."""
    if given is not None:
        return "the session was given a SparkSession"
    return f"master {master} was given" if master != DEFAULT_MASTER else ""
