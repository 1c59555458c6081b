"""From nothing to the files of the built-in model: data, tokenizer, training, export, card.

    nice -n 19 python -m acceptance.tiny                    # about an hour on two CPU cores
    python -m acceptance.tiny --small --work build/small --out build/small/model    # some minutes

Progress goes to stdout. The run is kept under --work every two minutes and goes on from there when
the command is given again; it may run in the background. The test set is looked at by --test alone.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

# Big blocks that are given back to the system at every step cost a third of the time here.
_ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(2**33),
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
    "MALLOC_TOP_PAD_": str(2**28),
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Parse the command line and do it."""
    arguments = _arguments()
    if any(name not in os.environ for name in _ALLOCATOR):
        environment = {**_ALLOCATOR, **os.environ}
        command = [sys.executable, "-m", "acceptance.tiny", *sys.argv[1:]]
        os.execve(sys.executable, command, environment)
    from acceptance.tiny import work

    def say(text: str) -> None:
        print(time.strftime("%H:%M:%S"), text, flush=True)

    if arguments.what in ("train", "all"):
        work.train_model(arguments.size, arguments.seed, arguments.steps, arguments.work,
                         arguments.threads, say)  # fmt: skip
    if arguments.what in ("export", "all"):
        work.export_model(arguments.work, arguments.out, say)
    if arguments.what in ("card", "export", "all"):
        split = "test" if arguments.test else "development"
        to = arguments.to or arguments.out / "README.md"
        work.write_card(arguments.out, to, arguments.each, split, say)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m acceptance.tiny",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "what", nargs="?", default="all", choices=("all", "train", "export", "card"),
        help="all (default); train: only train; export: the newest checkpoint and its card; "
        "card: measure what --out holds",
    )  # fmt: skip
    parser.add_argument("--small", dest="size", action="store_const", const="small",
                        default="shipped", help="a smaller model and a short run")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, help="length of the run; the default is the size's")
    parser.add_argument("--threads", type=int, default=2, help="cores to use")
    parser.add_argument("--each", type=int, default=200, help="rows a family and level in the card")
    parser.add_argument("--test", action="store_true", help="measure on the test set, once")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "tiny", help="checkpoints")
    parser.add_argument("--to", type=Path, help="the card's file; default: README.md in --out")
    parser.add_argument("--out", type=Path, default=ROOT / "semif_engine" / "builtin")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
