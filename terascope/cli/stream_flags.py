"""The flags of `terascope run --stream`.

In: words. Out: `StreamFlags`, and settings that win over those of the configuration. A flag that is
not of its form, or that makes no sense beside another, is a mistake of usage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import typer

T = TypeVar("T")
PANEL = "Streams"

Streaming = Annotated[
    bool,
    typer.Option(
        "--stream",
        help="Follow the sources as they grow and give rows as their windows close, until Ctrl-C.",
        rich_help_panel=PANEL,
    ),
]
CheckpointFolder = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="What is needed to go on after a stop or a failure; OUTPUT/.checkpoint by default.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
SpeedFlag = Annotated[
    str | None,
    typer.Option(
        "--speed",
        metavar="1x|10x|max",
        help="Replay what is there by the time in it, as fast as it came, faster, or at once.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
UntilIdle = Annotated[
    bool,
    typer.Option(
        "--until-idle",
        help="End when all that is there was read; windows that are open close then.",
        rich_help_panel=PANEL,
    ),
]
HeartbeatFlag = Annotated[
    str | None,
    typer.Option(
        "--heartbeat",
        metavar="1s|500ms|off",
        help="How often silent sources, too, say how late it is; 1s by default.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
SkewFlag = Annotated[
    str | None,
    typer.Option(
        "--skew",
        metavar="2s",
        help="How far a silent source may be behind the clock: 2s by default, 0s with --speed.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
ReplayLimit = Annotated[
    str | None,
    typer.Option(
        "--replay-limit",
        metavar="1m|off",
        help="A source whose first tuples are further from the clock (and the skew) is a replay and"
        " keeps its own clock: silence closes none of its windows; 1m by default.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
ReplayFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--replay",
        metavar="NAME|all",
        help="A source that is a replay whatever its first tuples say.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
LivenessFlag = Annotated[
    str | None,
    typer.Option(
        "--liveness",
        metavar="5m|off",
        help="How long others wait for a source that is gone, or for a replay that gives nothing;"
        " 5m by default.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
TriggerFlag = Annotated[
    str | None,
    typer.Option(
        "--trigger",
        metavar="1s",
        help="From one micro-batch to the next; 1s by default.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
BatchBytes = Annotated[
    str | None,
    typer.Option(
        "--batch-bytes",
        metavar="256MB",
        help="What a micro-batch reads at most.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
LateFolder = Annotated[
    Path | None,
    typer.Option(
        "--late",
        metavar="DIR",
        help="Keep tuples that come when their window is closed; otherwise they are only counted.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="N",
        help="Where /status and /metrics are served on this machine; any that is free by default.",
        min=0,
        max=65535,
        rich_help_panel=PANEL,
        show_default=False,
    ),
]


@dataclass(frozen=True)
class StreamFlags:
    """What only this run is to do; all else are settings."""

    checkpoint: Path | None = None
    speed: str | None = None
    until_idle: bool = False
    late: Path | None = None


def stream_settings(
    heartbeat: str | None,
    skew: str | None,
    trigger: str | None,
    batch_bytes: str | None,
    port: int | None,
    replay_limit: str | None = None,
    replay: list[str] | None = None,
    liveness: str | None = None,
) -> dict[str, object]:
    """By the names of the configuration; None: no flag was given."""
    from terascope.units import seconds, seconds_or_never, seconds_or_off, size

    return {
        "heartbeat": read("--heartbeat", heartbeat, seconds_or_off),
        "skew": read("--skew", skew, seconds),
        "trigger": read("--trigger", trigger, seconds),
        "batch_bytes": read("--batch-bytes", batch_bytes, size),
        "port": port,
        "replay_limit": read("--replay-limit", replay_limit, seconds_or_never),
        "replay": replay or None,
        "liveness": read("--liveness", liveness, seconds_or_never),
    }


def read(flag: str, text: str | None, parse: Callable[[object], T]) -> T | None:
    """The value of a flag."""
    try:
        return None if text is None else parse(text)
    except ValueError as mistake:
        raise typer.BadParameter(str(mistake), param_hint=flag) from None


def check_speed(speed: str | None) -> None:
    from terascope.connectors.live.settings import Speed
    from terascope.diagnostic import SourceError

    try:
        Speed.parse(speed)
    except SourceError as mistake:
        raise typer.BadParameter(str(mistake), param_hint="--speed") from None


def only_for_streams(given: Mapping[str, object]) -> None:
    """Flags that mean nothing without --stream."""
    for flag, value in given.items():
        if value not in (None, False):
            raise typer.BadParameter("is for streams: give --stream, too", param_hint=flag)


def not_for_streams(given: Mapping[str, tuple[object, str]]) -> None:
    """Flags that mean nothing with it, each with why."""
    for flag, (value, why) in given.items():
        if value not in (None, False):
            raise typer.BadParameter(why, param_hint=flag)
