"""`python -m terascope.execute.compile_worker`: compiles kernels for another process.

In: one kernel in each line, as `written_kernel` writes it. Out: machine code in the cache on disk,
and a line for each kernel that is compiled.
"""

from __future__ import annotations

import json
import sys

from terascope.execute.prepare import make, read_kernel
from terascope.kernels.codegen.compilers import DONE


def main() -> None:
    for line in sys.stdin:
        make(*read_kernel(json.loads(line)))
        sys.stdout.write(DONE)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
