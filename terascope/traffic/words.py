"""A profile in one line, as the location of a generated source.

In: `rate=10000,seed=1,duration=60,scenario=syn_flood`, the words of `terascope generate`. Out: a
`Profile` and how it is to run. `victim`, `start`, `length` and `intensity` say how the scenarios
before them go; `link=K` takes one of several `links`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

from terascope.diagnostic import SourceError
from terascope.traffic.profile import WORDS_OF_SCENARIO, Profile, ProfileError, Scenario
from terascope.units import scaled_number

ENDLESS_SECONDS: Final = 30 * 86_400.0
"""What a source without an end is planned for: its rate is even over this time."""
ENDLESS_START, ENDLESS_LENGTH = 10.0, 20.0
"""When a scenario of such a source begins, and how long it lasts, unless it is said."""

WHOLE: Final = frozenset({"packets", "seed", "links", "hosts", "servers", "snaplen"})


@dataclass(frozen=True)
class Wanted:
    """What to generate, live."""

    settings: tuple[tuple[str, Any], ...]
    endless: bool
    link: int | None
    starts: bool
    """Whether it says when the first packet is sent; else it is now."""

    def profile(self, start_time: float) -> Profile:
        """The profile, with the start it has by itself or this one."""
        return Profile(**({"start_time": start_time} | dict(self.settings)))


def parse_words(location: str) -> Wanted:
    """Read the words of a location.

    Raises:
        SourceError: a word is unknown, or its value makes no sense.
    """
    settings: dict[str, Any] = {}
    scenarios: list[dict[str, Any]] = []
    link: int | None = None
    known = {field.name for field in fields(Profile)} - {"scenarios"}
    for word in filter(None, (part.strip() for part in location.split(","))):
        name, equals, value = (part.strip() for part in word.partition("="))
        name = name.replace("-", "_")
        if not equals or not value:
            raise SourceError(f"'{word}' of a generate source is not NAME=VALUE")
        if name == "scenario":
            scenarios.append({"name": value.lower().replace("-", "_")})
        elif name in WORDS_OF_SCENARIO:
            if not scenarios:
                raise SourceError(f"{name} says how a scenario goes: write scenario=NAME before")
            scenarios[-1][WORDS_OF_SCENARIO[name]] = (
                value if name == "victim" else number(name, value)
            )
        elif name == "link":
            link = int(number(name, value))
        elif name in known:
            settings[name] = int(number(name, value)) if name in WHOLE else number(name, value)
        else:
            listed = ", ".join(sorted(known | {"scenario", "link", *WORDS_OF_SCENARIO}))
            raise SourceError(f"unknown word '{name}' of a generate source; known: {listed}")
    return _wanted(settings, scenarios, link)


def _wanted(settings: dict[str, Any], scenarios: list[dict[str, Any]], link: int | None) -> Wanted:
    endless = "duration" not in settings and "packets" not in settings
    if endless:
        settings["duration"] = ENDLESS_SECONDS
        for one in scenarios:
            one.setdefault("start", ENDLESS_START)
            one.setdefault("duration", ENDLESS_LENGTH)
    try:
        if scenarios:
            settings["scenarios"] = tuple(Scenario(**one) for one in scenarios)
        wanted = Wanted(tuple(settings.items()), endless, link, "start_time" in settings)
        links = wanted.profile(0.0).links
    except ProfileError as mistake:
        raise SourceError(f"generate source: {mistake}") from None
    if link is not None and not 0 <= link < links:
        raise SourceError(f"a generate source with links={links} has no link={link}")
    return wanted


def number(name: str, text: str) -> float:
    """10000, 10k, 2.5M."""
    try:
        return scaled_number(text)
    except ValueError:
        raise SourceError(f"{name}={text} of a generate source is not a number") from None
