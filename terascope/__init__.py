"""Terascope: sets of GSQL queries over network traffic, computed by Apache Spark.

    import terascope

    with terascope.Session() as ts:
        ts.source("eth0=pcap:trace.pcap")
        results = ts.query("SELECT tb, count(*) FROM TCP GROUP BY time/60 AS tb").run()
        results["query1"].show()

Importing this package imports neither Spark nor anything else that is slow: names are looked up
when they are used. To read the code, begin with terascope/pipeline.py.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from terascope.version import VERSION

if TYPE_CHECKING:
    from terascope.config import Config as Config
    from terascope.config import ConfigError as ConfigError
    from terascope.config import load_config as load_config
    from terascope.diagnostic import Diagnostic as Diagnostic
    from terascope.diagnostic import OutputError as OutputError
    from terascope.diagnostic import QueryError as QueryError
    from terascope.diagnostic import SourceError as SourceError
    from terascope.diagnostic import StreamError as StreamError
    from terascope.functions.base import FunctionMistake as FunctionMistake
    from terascope.functions.base import ValueMistake as ValueMistake
    from terascope.functions.bounds import ErrorBound as ErrorBound
    from terascope.functions.scratchpads import Kernels as Kernels
    from terascope.functions.udaf import udaf as udaf
    from terascope.functions.user import aggregate as aggregate
    from terascope.functions.user import scalar as scalar
    from terascope.operate.subscription import Subscription as Subscription
    from terascope.operate.subscription import subscribe as subscribe
    from terascope.results import MalformedInput as MalformedInput
    from terascope.results import Result as Result
    from terascope.results import Results as Results
    from terascope.results import SessionClosed as SessionClosed
    from terascope.session import QuerySet as QuerySet
    from terascope.session import Session as Session

_NAMES = {
    "terascope.config": ("Config", "ConfigError", "load_config"),
    "terascope.diagnostic": (
        "Diagnostic",
        "OutputError",
        "QueryError",
        "SourceError",
        "StreamError",
    ),
    "terascope.functions.base": ("FunctionMistake", "ValueMistake"),
    "terascope.functions.bounds": ("ErrorBound",),
    "terascope.functions.scratchpads": ("Kernels",),
    "terascope.functions.udaf": ("udaf",),
    "terascope.functions.user": ("aggregate", "scalar"),
    "terascope.operate.subscription": ("Subscription", "subscribe"),
    "terascope.results": ("MalformedInput", "Result", "Results", "SessionClosed"),
    "terascope.session": ("QuerySet", "Session"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_HOMES]
__version__ = VERSION


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'terascope' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
