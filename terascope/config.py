"""All settings in one immutable value, passed to every module; there are no globals.

In: a TOML file (`--config`), `TERASCOPE_...` environment variables, flags; a flag overrides the
environment, which overrides the file. Out: a `Config`.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from terascope.units import seconds, seconds_or_never, seconds_or_off, size

Seconds = Annotated[float, BeforeValidator(seconds)]
SecondsOrOff = Annotated[float, BeforeValidator(seconds_or_off)]
SecondsOrNever = Annotated[float, BeforeValidator(seconds_or_never)]
Size = Annotated[int, BeforeValidator(size)]


DEFAULT_MASTER = "local[*]"


def machine_memory() -> int:
    """The bytes of memory of this machine; 8 GB where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def task_memory() -> int:
    """A third of the memory, shared by the cores: the JVM and the page cache need the rest."""
    return max(256 << 20, min(4 << 30, machine_memory() // 3 // (os.cpu_count() or 1)))


class ConfigError(Exception):
    """A configuration file or variable with a mistake; the message is one line."""


class Config(BaseSettings):
    """Settings of a run.

    A TOML file has the same words:

        master = "local[2]"
        [sources]
        eth0 = "pcap:trace.pcap"
        [sets]
        main = ["eth0", "eth1"]
        [params]
        threshold = "100"
        [costs]
        str_extract_regex = 150
        [strategies]
        approx_quantile = "gk_heavy"
    """

    model_config = SettingsConfigDict(env_prefix="TERASCOPE_", frozen=True, extra="forbid")

    master: str = DEFAULT_MASTER
    engine: Literal["local", "spark", "auto"] = "auto"
    """The engine of a batch: this process (local), or Spark. auto: this process where Spark takes
    longer to start than the work, unless a master was given. Streams always run in Spark."""
    shuffle_partitions: int | None = Field(default=None, ge=1)
    split_bytes: int | None = Field(default=None, ge=1)
    """The bytes of a file that are read at a time; by default 4 MB, up to 16 MB for large files."""
    sources: dict[str, str] = {}
    """Interface -> KIND:LOCATION."""
    source_options: dict[str, dict[str, str]] = {}
    """Interface -> options of its connector, such as a CSV delimiter."""
    partitioned_by: dict[str, str] = {}
    """Interface -> the partitioning set of a source of which each file or folder is a partition,
    such as 'srcIP & 0xFFFFFFF0, destIP'."""
    sets: dict[str, list[str]] = {}
    params: dict[str, str] = {}
    functions: list[Path] = []
    """Python files with user-defined scalars and aggregates."""
    strategies: dict[str, str] = {}
    """Aggregate -> the strategy of its states; a query that names one itself decides."""
    low_cores_per_high: float | None = Field(default=None, gt=0)
    """Where the super-aggregates run on other cores than the reading tasks: the cores that read for
    each core that merges. By default both levels run on the same cores, as they do on Spark."""
    host: Literal["compiled_host", "plain_decoder", "capture_filter"] = "compiled_host"
    """The capability profile of the host of the sources: which expressions it can compute."""
    costs: dict[str, float] = {}
    """Function -> nanoseconds for a call; overrides costs of `terascope calibrate`."""
    measured_costs: dict[str, float] = {}
    """The costs that `terascope calibrate` measured; a session reads them from its file."""
    low_budget_ns: float = Field(default=800, ge=0)
    """The most nanoseconds a tuple of a predicate, key or column next to its source."""
    query_files: list[Path] | None = None
    """Folders with files that a query may name (watch lists, tables of getlpmid). By default any
    folder, and none where the query file belongs to another user."""
    outputs: Literal["private", "shared"] = "private"
    """The readers of result files: their owner alone, or everybody whom the umask admits. A
    checkpoint is always private."""
    strict: bool = False
    """Whether malformed tuples are an error."""
    low: Literal["native", "catalyst", "auto"] = "auto"
    """The engine of the low level: compiled kernels in the reading tasks, or Spark's operators."""
    memory_bytes: int = Field(default_factory=task_memory, ge=1 << 20)
    """The memory of a task: pending tuples, groups, dictionaries, parts being written. Groups that
    do not fit are spilled to disk. By default a share of the machine's memory."""
    table: Literal["open", "direct_mapped", "second_chance", "lru"] = "open"
    """The kind of table of the low level (paper 1, section 6; paper 4, III-C)."""
    flush: Literal["eager", "lazy"] = "eager"
    """How groups leave a table of fixed size when an epoch ends: all at once, or one by one."""
    kernels: Literal["numba", "numpy"] = "numba"
    """The implementation of generated kernels: machine code, or numpy."""
    combine_on_hosts: Literal["auto", "never"] = "auto"
    """Whether the partial groups of the partitions of a host are merged before they leave it, where
    there are several hosts and one of them has several partitions (paper 2, 5.2.2)."""
    send_tuples: Literal["cost", "never", "always"] = "cost"
    """Whether partitions of a batch send tuples instead of partial groups for the aggregations that
    they cannot finish: where that is cheaper, never, or wherever the times of tuples are known."""
    share_windows: Literal["cost", "unshared", "paired", "paned"] = "cost"
    """The windows that are assembled from the same slices (paper 0): those for which that is
    cheapest; none; all, with paired or with paned slices."""
    share_tables: Literal["cost", "never", "always"] = "cost"
    """The aggregations with the same keys and different conditions that share one table."""
    share_trees: Literal["time", "operations", "never"] = "time"
    """Whether aggregations are computed from others (paper 4): where that saves time; where it
    saves hash operations, in tables of a fixed memory; or never."""
    share_sample: Literal["cost", "always", "never"] = "cost"
    """Whether a source of a batch is sampled before queries share by cost: where the possible
    saving pays for the sample, always, or never."""
    tree_memory: Size | None = None
    """The memory of the tables of trees, such as 8MB, where trees save operations; by default the
    cache of a core."""
    tree_leaves: Literal["bounded", "free"] = "bounded"
    """Whether that memory is also for the tables of the queries: groups that do not fit leave early
    for the exchange, which is part of the cost; or only for intermediate tables, as in paper 4."""
    sample_tuples: int = Field(default=1 << 16, ge=1)
    """The most tuples of a source from which its statistics are computed."""
    sample_seconds: Seconds = 1.0
    """The time for which a source is read for its statistics."""
    speed: str | None = None
    """For streams: 1x, 10x or max: existing data is replayed. None: sources are followed."""
    until_idle: bool = False
    """For streams: stop when everything was read; windows close then, as in a batch."""
    late: Path | None = None
    """For streams: a folder for late tuples."""
    tasks: int = Field(default_factory=lambda: os.cpu_count() or 2, ge=1)
    """For streams: the tasks that run at once in every micro-batch."""
    heartbeat: SecondsOrOff = 1.0
    """For streams: how often the clock moves silent watermarks, such as 500ms; off: never."""
    skew: Seconds | None = None
    """How far a silent source may be behind the clock; by default 2s live, and 0s in a replay."""
    replay_limit: SecondsOrNever = 60.0
    """A followed source whose first tuples are further from the clock than this and the skew is a
    replay: it keeps its own clock; off: no source is."""
    replay: list[str] = []
    """Sources that are replays whatever their first tuples are; `all`: every source."""
    liveness: SecondsOrNever = 300.0
    """How long other sources wait for one that cannot be read, or for a replay without tuples; off:
    for ever."""
    trigger: Seconds = 1.0
    """The time from the start of one micro-batch to the next; after a longer batch, none."""
    batch_bytes: Size = 256_000_000
    """The most bytes that a micro-batch reads, such as 64MB."""
    port: int | None = Field(default=0, ge=0, le=65535)
    """The port of /status and /metrics on this machine; 0: any free port. None: there is no server,
    and `terascope status` and the other commands do not find the set."""
    status_hosts: list[str] = []
    """Accepted Hosts of requests besides 127.0.0.1, localhost and [::1] with that port, such as the
    name and port of a proxy."""
    replan_windows: bool = True
    """For streams: whether the composition of windows may change while the set runs."""
    replan_gain: float = 0.15
    """The share of the cost of shared tables, trees and slices that a change must save."""
    replan_slices: int = Field(default=3, ge=1)
    """Slices in a row for which the gain must last."""
    replan_seconds: Seconds = 60.0
    """The least time from one change to the next."""
    replan_core: float = 0.05
    """The share of one core that planning may use."""
    replan_least_core: float = 1e-5
    """The share of one core below which the slices of windows are not worth a change."""
    replan_sample_tuples: int = Field(default=4096, ge=1)
    """Tuples that all tasks of a micro-batch sample together."""
    replan_sample_seconds: Seconds = 2.0
    """The least time from one sample to the next."""
    replan_least_tuples: int = 256
    """A slice with fewer sampled tuples is judged together with the next."""

    @property
    def compiled(self) -> bool:
        """Whether generated kernels are machine code; else numpy runs them."""
        return self.kernels == "numba"

    def changed(self, **given: Any) -> Config:
        """The same settings with some changes.

        Raises:
            ConfigError: one of them is unknown, or its value makes no sense.
        """
        return checked(Config, {**dict(self), **given})


def load_config(path: Path | None = None, **flags: Any) -> Config:
    """Settings from file, environment and flags; None among the flags means not given.

    Raises:
        ConfigError: the file is missing or says something unknown.
    """
    if path is not None and not path.is_file():
        raise ConfigError(f"no such configuration file: '{path}'")
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return checked(Config, dict(checked(read_from(path), given)))
    except ValueError as mistake:
        raise ConfigError(f"'{path}' is not valid TOML: {mistake}") from mistake


@lru_cache(maxsize=16)
def read_from(path: Path | None) -> type[Config]:
    """Settings that a file is read for. To make a class takes longer than to read the file."""

    class FromFile(Config):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            *others: Any,
            **more: Any,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, path)

    return FromFile


def checked(kind: type[Config], values: dict[str, Any]) -> Config:
    """Raises:
    ConfigError: a setting is unknown, or its value makes no sense.
    """
    try:
        return kind(**values)
    except ValidationError as mistake:
        first = mistake.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"setting '{where}': {first['msg'].lower()}") from mistake
