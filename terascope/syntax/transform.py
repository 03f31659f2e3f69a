"""From what the grammar matched to the Script's nodes: all rules of gsql.lark together."""

from __future__ import annotations

from terascope.syntax.transform_declarations import DeclarationRules
from terascope.syntax.transform_expressions import ExpressionRules
from terascope.syntax.transform_queries import QueryRules


class ToScript(ExpressionRules, QueryRules, DeclarationRules):
    """The callbacks of the parser; it holds no state, so that one serves every parse."""
