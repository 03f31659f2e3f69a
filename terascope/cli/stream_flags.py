"""The flags of `terascope run --stream`.

In: text. Out: `StreamFlags`, and settings that win over those of the configuration. A malformed
flag, or one that makes no sense beside another, is a mistake of usage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, TypeVar

import typer

from terascope.cli.command import FLAG, flag

T = TypeVar("T")


@dataclass(frozen=True)
class StreamFlags:
    """How a set runs as a stream."""

    PANEL: ClassVar = "Streams"
    stream: bool = flag(
        "--stream",
        default=False,
        help="Follow the sources as they grow and give rows as their windows close, until Ctrl-C.",
    )
    checkpoint: Path | None = flag(
        "--checkpoint",
        metavar="DIR",
        help="What is needed to go on after a stop or a failure; OUTPUT/.checkpoint by default.",
    )
    speed: str | None = flag(
        "--speed",
        metavar="1x|10x|max",
        help="Replay what is there by the time in it, as fast as it came, faster, or at once.",
    )
    until_idle: bool = flag(
        "--until-idle",
        default=False,
        help="End when all that is there was read; windows that are open close then.",
    )
    heartbeat: str | None = flag(
        "--heartbeat",
        metavar="1s|500ms|off",
        help="How often the clock moves the watermarks of silent sources; 1s by default.",
    )
    skew: str | None = flag(
        "--skew",
        metavar="2s",
        help="How far a silent source may be behind the clock: 2s by default, 0s with --speed.",
    )
    replay_limit: str | None = flag(
        "--replay-limit",
        metavar="1m|off",
        help="A source whose first tuples are further from the clock (and the skew) is a replay and"
        " keeps its own clock: silence closes none of its windows; 1m by default.",
    )
    replay: list[str] | None = flag(
        "--replay",
        metavar="NAME|all",
        help="A source that is a replay whatever its first tuples say.",
    )
    liveness: str | None = flag(
        "--liveness",
        metavar="5m|off",
        help="How long others wait for a source that is gone, or for a replay that gives nothing;"
        " 5m by default.",
    )
    trigger: str | None = flag(
        "--trigger", metavar="1s", help="From one micro-batch to the next; 1s by default."
    )
    batch_bytes: str | None = flag(
        "--batch-bytes", metavar="256MB", help="What a micro-batch reads at most."
    )
    late: Path | None = flag(
        "--late",
        metavar="DIR",
        help="Keep tuples that come when their window is closed; otherwise they are only counted.",
    )
    port: int | None = flag(
        "--port",
        metavar="N",
        help="Where /status and /metrics are served on this machine; any that is free by default.",
        min=0,
        max=65535,
    )

    def settings(self) -> dict[str, object]:
        """The settings that flags give, by the names of the configuration; None: not given."""
        from terascope.units import seconds, seconds_or_never, seconds_or_off, size

        return {
            "speed": self.speed,
            "until_idle": self.until_idle or None,
            "late": self.late,
            "heartbeat": read("--heartbeat", self.heartbeat, seconds_or_off),
            "skew": read("--skew", self.skew, seconds),
            "trigger": read("--trigger", self.trigger, seconds),
            "batch_bytes": read("--batch-bytes", self.batch_bytes, size),
            "port": self.port,
            "replay_limit": read("--replay-limit", self.replay_limit, seconds_or_never),
            "replay": self.replay or None,
            "liveness": read("--liveness", self.liveness, seconds_or_never),
        }

    def check(self) -> None:
        """Without --stream the other flags mean nothing; with it --speed must be a speed."""
        if self.stream:
            check_speed(self.speed)
            return
        for field in fields(self):
            if getattr(self, field.name) not in (None, False, []):
                name = field.metadata[FLAG].default
                raise typer.BadParameter("is for streams: give --stream, too", param_hint=name)


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
