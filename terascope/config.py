"""All settings in one immutable value, handed down; there are no globals.

In: a TOML file (`--config`), `TERASCOPE_...` environment variables, flags; a flag wins over the
environment, which wins over the file. Out: a `Config`.
"""

from __future__ import annotations

import os
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


def task_memory() -> int:
    """A third of the machine, shared by its cores: the JVM and the page cache need the rest."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        total = 8 << 30
    return max(256 << 20, min(4 << 30, total // 3 // (os.cpu_count() or 1)))


class ConfigError(Exception):
    """A configuration file or variable that makes no sense; one clear line."""


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
    """

    model_config = SettingsConfigDict(env_prefix="TERASCOPE_", frozen=True, extra="forbid")

    master: str = DEFAULT_MASTER
    engine: Literal["local", "spark", "auto"] = "auto"
    """What runs a batch: this process (local), or Spark. auto: this process, where Spark would take
    longer to start than the work takes, unless a master was given. Streams always run in Spark."""
    shuffle_partitions: int | None = Field(default=None, ge=1)
    split_bytes: int | None = Field(default=None, ge=1)
    """How much of a file is read at a time; by default 4 MB, up to 16 MB of large ones."""
    sources: dict[str, str] = {}
    """Interface -> KIND:LOCATION."""
    source_options: dict[str, dict[str, str]] = {}
    """Interface -> options of its connector, such as a CSV delimiter."""
    sets: dict[str, list[str]] = {}
    params: dict[str, str] = {}
    functions: list[Path] = []
    """Python files with user-defined scalars and aggregates."""
    host: Literal["compiled_host", "plain_decoder", "capture_filter"] = "compiled_host"
    """What can be shipped to the sources: the capability profile of their host."""
    costs: dict[str, float] = {}
    """Function -> nanoseconds for a call; wins over what `terascope calibrate` measured."""
    measured_costs: dict[str, float] = {}
    """The same as `terascope calibrate` measured it; a session reads that from its file."""
    low_budget_ns: float = Field(default=800, ge=0)
    """What a predicate, a key or a computed column may cost a tuple next to its source."""
    query_files: list[Path] | None = None
    """Folders with files that a query may name (watch lists, tables of getlpmid). By default any,
    and none where the query file belongs to another user."""
    outputs: Literal["private", "shared"] = "private"
    """Who may read results in files: their owner alone, or whoever the umask admits. A checkpoint
    is always private."""
    strict: bool = False
    """Malformed tuples are an error."""
    low: Literal["native", "catalyst", "auto"] = "auto"
    """Who runs the low level: compiled kernels where the source is read, or Spark's operators."""
    memory_bytes: int = Field(default_factory=task_memory, ge=1 << 20)
    """What a task may use: tuples that wait, groups, dictionaries, parts being written. Groups that
    do not fit wait on disk. By default a share of the machine's memory."""
    table: Literal["open", "direct_mapped", "second_chance", "lru"] = "open"
    """How the low level keeps groups (paper 1, section 6; paper 4, III-C)."""
    flush: Literal["eager", "lazy"] = "eager"
    """How they leave a table of fixed size when an epoch ends."""
    kernels: Literal["numba", "numpy"] = "numba"
    """What runs the generated kernels."""
    share_windows: Literal["cost", "unshared", "paired", "paned"] = "cost"
    """Which windows are put together from the same slices (paper 0): those for which that costs
    least; none; all, of paired or of paned slices."""
    share_tables: Literal["cost", "never", "always"] = "cost"
    """Which aggregations with the same keys and different conditions have one table."""
    share_trees: Literal["time", "operations", "never"] = "time"
    """Whether aggregations are made of others (paper 4): where that saves time; where it saves hash
    operations, in tables of a fixed memory; or never."""
    share_sample: Literal["cost", "always", "never"] = "cost"
    """Whether a source of a batch is sampled before the queries share by cost: where what could be
    saved pays for that, always, or never."""
    tree_memory: Size | None = None
    """What the tables of trees may use, such as 8MB, where trees save operations; by default the
    cache that a core has."""
    tree_leaves: Literal["bounded", "free"] = "bounded"
    """Whether that is for the tables of the queries, too: groups that do not fit leave for the
    exchange early, which is part of the cost; or for the tables above them only, as in paper 4."""
    sample_tuples: int = Field(default=1 << 16, ge=1)
    """Tuples of a source that its statistics are made of, at most."""
    sample_seconds: Seconds = 1.0
    """How long a source is read for them."""
    speed: str | None = None
    """Of a stream: 1x, 10x, max: what is there is replayed. None: sources are followed."""
    until_idle: bool = False
    """Of a stream: it stops when all that is there was read; windows close then, as in a batch."""
    late: Path | None = None
    """Of a stream: a folder for tuples that come when their slice is closed."""
    tasks: int = Field(default_factory=lambda: os.cpu_count() or 2, ge=1)
    """Of a stream: the tasks that run at once in every micro-batch."""
    heartbeat: SecondsOrOff = 1.0
    """Of a stream: how often silent sources say how late it is, such as 500ms; off: never."""
    skew: Seconds | None = None
    """How far a silent source may be behind the clock; by default 2s live, and nothing in a replay,
    to which nothing comes."""
    replay_limit: SecondsOrNever = 60.0
    """A followed source whose first tuples are further from the clock than this and the skew is a
    replay: it keeps its own clock; off: no source is."""
    replay: list[str] = []
    """Sources that are replays whatever their first tuples say; `all`: every one."""
    liveness: SecondsOrNever = 300.0
    """How long other sources wait for one that cannot be read, or for a replay that gives nothing;
    off: for ever."""
    trigger: Seconds = 1.0
    """A micro-batch begins so long after the one before, or when that is done."""
    batch_bytes: Size = 256_000_000
    """What a micro-batch reads at most, such as 64MB."""
    port: int | None = Field(default=0, ge=0, le=65535)
    """Of /status and /metrics on this machine; 0: any that is free. None: there is no server, and
    `terascope status` and the other commands do not find the set."""
    status_hosts: list[str] = []
    """What the Host of a request for them may be besides 127.0.0.1, localhost and [::1] with that
    port, such as the name and port of a proxy."""
    replan_windows: bool = True
    """Of a stream: whether its windows may be composed of other slices than at first."""
    replan_gain: float = 0.15
    """What shared tables, trees and slices cost must fall by more than this part of it."""
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
        """The same with other settings.

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

    class FromFile(Config):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            file = TomlConfigSettingsSource(settings_cls, path) if path else None
            return (init_settings, env_settings, *((file,) if file else ()))

    given = {name: value for name, value in flags.items() if value is not None}
    try:
        return checked(Config, dict(checked(FromFile, given)))
    except ValueError as mistake:
        raise ConfigError(f"'{path}' is not valid TOML: {mistake}") from mistake


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
