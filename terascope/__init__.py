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

from terascope.version import VERSION as __version__

if TYPE_CHECKING:
    from terascope.config import Config, ConfigError, load_config
    from terascope.diagnostic import Diagnostic, QueryError, SourceError, StreamError
    from terascope.functions.base import FunctionMistake, ValueMistake
    from terascope.functions.user import aggregate, scalar
    from terascope.operate.subscription import Subscription, subscribe
    from terascope.results import MalformedInput, OutputError, Result, Results, SessionClosed
    from terascope.session import QuerySet, Session

_HOMES = {
    "Config": "terascope.config",
    "ConfigError": "terascope.config",
    "Diagnostic": "terascope.diagnostic",
    "FunctionMistake": "terascope.functions.base",
    "MalformedInput": "terascope.results",
    "OutputError": "terascope.results",
    "QueryError": "terascope.diagnostic",
    "QuerySet": "terascope.session",
    "Result": "terascope.results",
    "Results": "terascope.results",
    "Session": "terascope.session",
    "SessionClosed": "terascope.results",
    "SourceError": "terascope.connectors.base",
    "StreamError": "terascope.diagnostic",
    "Subscription": "terascope.operate.subscription",
    "ValueMistake": "terascope.functions.base",
    "aggregate": "terascope.functions.user",
    "load_config": "terascope.config",
    "scalar": "terascope.functions.user",
    "subscribe": "terascope.operate.subscription",
}

__all__ = [
    "Config",
    "ConfigError",
    "Diagnostic",
    "FunctionMistake",
    "MalformedInput",
    "OutputError",
    "QueryError",
    "QuerySet",
    "Result",
    "Results",
    "Session",
    "SessionClosed",
    "SourceError",
    "StreamError",
    "Subscription",
    "ValueMistake",
    "__version__",
    "aggregate",
    "load_config",
    "scalar",
    "subscribe",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'terascope' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
