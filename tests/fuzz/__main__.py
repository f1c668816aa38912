"""`make fuzz`: python -m tests.fuzz CASES. Exits with 1 after a failed check, a 5xx or too few requests."""

import asyncio
import sys
import tempfile
from pathlib import Path

from roost.core import log
from tests.fuzz.runner import fuzz


def main(cases: int) -> int:
    log.configure_logging("error")
    examples = max(1, (cases - 4000) // 88)  # 4,600 requests do not depend on it; 91 belong to each example
    with tempfile.TemporaryDirectory() as folder:
        result = asyncio.run(fuzz(Path(folder), "--max-examples", str(examples), show=True))
    print(f"{result.requests.total()} requests by status: {dict(sorted(result.requests.items()))}")
    return 0 if result.passed and not result.server_errors and result.requests.total() >= cases else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
