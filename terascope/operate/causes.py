"""The causes that keep a query's window open, with remedies.

In: a `Status`. Out: `Cause`s, the input with the earliest watermark first. A window closes when the
watermark of every input has passed its end; so one input is enough to hold it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from terascope.operate.notices import callback_text, replay_text, waiting_text
from terascope.operate.status import THE_END, Hold, QueryStatus, SourceStatus, Status
from terascope.units import (
    NANOSECONDS,
    SECONDS,
    readable_bytes,
    readable_moment,
    readable_seconds,
)

Kind: TypeAlias = Literal[
    "away",
    "stalled",
    "mute",
    "replay",
    "silent",
    "backlog",
    "disorder",
    "stream",
    "flush",
    "callback",
    "other",
]

SILENT_HEARTBEATS: Final = 3
"""The number of heartbeats without a tuple after which a source is silent."""


@dataclass(frozen=True)
class Cause:
    """One cause and its remedy. `input` is None when no input holds the window back."""

    kind: Kind
    input: str | None
    watermark: str | None
    behind_seconds: float | None
    what: str
    advice: str


def causes(status: Status, query: QueryStatus) -> tuple[Cause, ...]:
    """All causes that keep the query's window open; empty when there are none."""
    held = tuple(cause_of(hold, status) for hold in query.holds)
    return slow_callback(status) or held or slow_flush(status, query)


def cause_of(hold: Hold, status: Status) -> Cause:
    """The cause that the watermark of one input is not later."""
    source = status.source(hold.input)
    if source is not None:
        kind, what, advice = source_cause(source, hold, status)
    elif status.query(hold.input) is not None:
        kind = "stream"
        what = "is computed by this set, and is not closed further"
        advice = f"see what holds it back: terascope why {hold.input}"
    else:
        kind, what, advice = "other", "has no later watermark", "terascope status shows all inputs"
    if kind in ("other", "stream") and hold.reason:
        what = hold.reason  # the run knows more than the status
    return Cause(kind, hold.input, hold.watermark, hold.behind_seconds, what, advice)


def source_cause(source: SourceStatus, hold: Hold, status: Status) -> tuple[Kind, str, str]:
    """The most likely cause first: a stalled source may have a backlog, a silent one may not."""
    name, beat, behind = source.name, status.run.heartbeat_seconds, hold.behind_seconds
    if source.away:
        what = f"cannot be read: {source.stalled}"
        return "away", what, f"see to {name}; {waiting_text(source)} (--liveness)"
    if source.stalled is not None:
        advice = f"see to {name}; the window closes as soon as it gives tuples or heartbeats"
        return "stalled", f"is stalled: {source.stalled}", advice
    if source.backlog_bytes:
        what = f"has {readable_bytes(source.backlog_bytes)} that are not read yet"
        advice = "it is being read: wait, or give the run more cores if the backlog grows"
        return "backlog", what, advice
    if not beat:
        what = "has given no later tuple, and heartbeats are off: silence closes no window"
        advice = "give it tuples, or run with --heartbeat 1s: then the silence of"
        return "mute", what, f"{advice} {name}, too, closes windows"
    if source.replay:
        advice = f"the next tuples of {name} close the window, or --until-idle when all is there;"
        skew = "--skew if it is a live source that is this far behind"
        return "replay", replay_text(source), f"{advice} {skew}"
    if source.silent_seconds > SILENT_HEARTBEATS * patience(status):
        what = f"has been silent for {readable_seconds(source.silent_seconds)}"
        if source.clock:
            advice = f"nothing: the clock moves its watermark on within {readable_seconds(beat)}"
            return "silent", what, f"{advice} and its declared disorder"
        advice = f"declare clock() on the time column in the PROTOCOL of {name}:"
        what += ", and none of its columns is a clock"
        return "silent", what, f"{advice} then silence, too, closes windows"
    disorder = declared_seconds(source)
    if disorder and behind is not None and behind <= disorder + patience(status):
        what = f"may give tuples that are up to {readable_seconds(disorder)} late"
        seen = f"{source.disorder_observed:g} {source.disorder_unit} is what was seen so far"
        return "disorder", what, f"nothing, or declare less disorder for {name}: {seen}"
    advice = "nothing, if it is behind for less than a window: the next tuples close it"
    return "other", "has no later watermark", advice


def patience(status: Status) -> float:
    """The usual age of a watermark."""
    return max(status.run.heartbeat_seconds, status.run.trigger_seconds, status.run.batch_seconds)


def declared_seconds(source: SourceStatus) -> float | None:
    """The declared disorder of a source in seconds; None when its unit is not one of time."""
    unit = SECONDS.get(source.disorder_unit)
    return None if unit is None else source.disorder_declared * unit


def slow_callback(status: Status) -> tuple[Cause, ...]:
    """The callback as a cause: no batch begins before it returns, whatever the watermarks."""
    call = status.run.callback
    if call is None or call.seconds <= SILENT_HEARTBEATS * patience(status):
        return ()
    advice = (
        "make the callback faster, or follow the query with subscribe() instead, in another process"
        " if need be: that holds no run up"
    )
    return (Cause("callback", None, None, call.seconds, callback_text(call), advice),)


def slow_flush(status: Status, query: QueryStatus) -> tuple[Cause, ...]:
    """The run itself as a cause: all watermarks have passed the end of the window."""
    lag = query.lag_seconds or 0.0
    if not query.flushing or lag <= SILENT_HEARTBEATS * patience(status):
        return ()
    slices = f"{query.open_slices:,} slice{' is' if query.open_slices == 1 else 's are'}"
    what = f"{slices} complete and not written yet; batches take"
    what += f" {readable_seconds(status.run.batch_seconds)}"
    advice = "give the run more cores, a longer --trigger, or fewer queries"
    return (Cause("flush", None, None, lag, what, advice),)


def expectation(status: Status, query: QueryStatus) -> str:
    """The time at which the next window of a query closes, if nothing holds it back."""
    if query.closed_until == THE_END:
        return "all sources have ended, and all its rows are written"
    if status.run.batch < 0:
        return "its first micro-batch is not done yet"
    sources = [s for name in query.inputs if (s := status.source(name)) is not None]
    names = " and ".join(s.name for s in sources) or "its inputs"
    if not any(s.begun for s in sources) and sources:
        return f"there is no window yet: {names} has given no tuple"
    end = query.closes_ns
    if end is None:
        return "nothing holds it back: its window closes with the time it covers"
    window = f"nothing holds it back: its next window ends at {readable_moment(end)}"
    band = max((declared_seconds(s) or 0.0 for s in sources), default=0.0)
    due_ns = end + round((band + status.run.skew_seconds) * NANOSECONDS)
    if not status.run.heartbeat_seconds:
        return (
            f"{window}, and closes with a tuple of {names} of then or later; heartbeats are off, so"
            " that silence does not close it: run with --heartbeat 1s if it shall"
        )
    own = [s.name for s in sources if s.replay]
    if own:
        return (
            f"{window}, and closes with a tuple of {' and '.join(own)} of then or later: a replay"
            " goes by its own clock, and --until-idle closes what is left"
        )
    words = f"{window}, and closes at about {readable_moment(due_ns)}"
    parts = [f"the skew of {readable_seconds(status.run.skew_seconds)}"]
    if band:
        parts.append(f"the declared disorder of {readable_seconds(band)}")
    return f"{words}, after {' and '.join(parts)}, with the next heartbeat"
