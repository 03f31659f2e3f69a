"""`terascope check`: is a query set right, and what does it give?"""

from __future__ import annotations

import typer
from rich.text import Text

from terascope.cli.binding import Binding, Files, loaded


def check(
    files: Files,
    binding: Binding,
) -> None:
    """Look for mistakes in a query set, and list its queries with their columns.

    Needs neither Spark nor a source. With --source, that the sources are there and have the columns
    is checked, too.
    """
    from terascope.display import stdout_console
    from terascope.explain import picture
    from terascope.units import plural

    queries = loaded(binding.session(), files)
    queries.check()
    boxes = [b for b in picture(queries.compiled, "plan").boxes if b.kind == "stream"]
    visible = sum("internal" not in box.marks for box in boxes)
    typer.echo(f"ok: {plural(visible, 'query', 'queries')} in {queries.source.name}")
    width = max((len(box.name) for box in boxes), default=0)
    console = stdout_console()
    for box in boxes:
        style = "dim" if "internal" in box.marks else "bold"
        columns = ", ".join(map(str, box.columns))
        console.print(
            Text.assemble("  ", (f"{box.name:<{width}}", style), "  ", columns), soft_wrap=True
        )
