"""`python -m tests.gateway.attack_table`: runs the whole attacks of `tests.gateway.attacks` and prints the table of docs/security.md."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.gateway.attacks import ATTACKS, run_attack
from tests.gateway.target import running

BESIDE = ("polls", "poll_median_ms", "poll_max_ms", "late_max_ms", "grown_mb", "most_mb")


def main() -> int:
    print("| attack | what it saw | a poller beside it: median, longest | memory: grew by, most |", "|---|---|---|---|", sep="\n")
    for name, (_, _, size) in ATTACKS.items():
        with tempfile.TemporaryDirectory(prefix="tailgate-attack-") as folder, running(Path(folder)) as target:
            figures = run_attack(name, target, size)
        saw = ", ".join(f"{key.replace('_', ' ')} {value:.4g}" for key, value in figures.items() if key not in BESIDE)
        beside = f"{figures['poll_median_ms']:.1f} ms, {figures['poll_max_ms']:.0f} ms"
        print(f"| {name} | {saw} | {beside} | {figures['grown_mb']:.0f} MB, {figures['most_mb']:.0f} MB |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
