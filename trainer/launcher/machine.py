"""Facts about this machine, found without installing anything."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from trainer.launcher.container import memory_limits


def num_cores() -> int:
    """Cores this process may use, which in a container can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_by_default() -> int:
    """All cores but one, so that the machine stays usable."""
    return max(1, num_cores() - 1)


def threads(text: str) -> int:
    """The value of --threads. Raises argparse.ArgumentTypeError, in words, below 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"{text} is no number of threads that could train: give 1 or more, or leave it out"
        )
    return int(text)


# what the processes of a group split among them; the trainer's engine says how
SPLITS = ("optimizer", "gradients", "parameters", "offload")


class Processes(NamedTuple):
    """That share the training of a device, and what they split."""

    number: int = 1
    split: str = SPLITS[0]


def processes(text: str) -> Processes:
    """The value of --processes, "2" or "2:parameters".

    Raises argparse.ArgumentTypeError, in words, when it is neither.
    """
    number, colon, split = text.partition(":")
    if not number.isdecimal() or int(number) < 1:
        raise argparse.ArgumentTypeError(
            f"{text} is no number of processes: give 1 or more, or leave it out"
        )
    if not colon:
        return Processes(int(number))
    if split not in SPLITS or number == "1":
        raise argparse.ArgumentTypeError(
            f"{text} does not say how several processes split the work: give 2 or more, and one of "
            f"{', '.join(SPLITS)}, as in 2:{SPLITS[2]}"
        )
    return Processes(int(number), split)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What a device lends; the launcher and the agent ask the same."""
    parser.add_argument("--threads", type=threads, default=None, help="default: all cores but one")
    parser.add_argument(
        "--processes",
        type=processes,
        default=Processes(),
        metavar="N[:SPLIT]",
        help=f"that share the training, and what they split: {', '.join(SPLITS)}",
    )


def is_started_by_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


def memory_bytes() -> int:
    """Physical memory, or the container's limit where that is lower; 0: unknown."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0
    return min([physical, *(limit.bytes for limit in memory_limits())])


def gpu_name() -> str:
    """Name of the first NVIDIA GPU that its own driver lists, or an empty text."""
    if not shutil.which("nvidia-smi"):
        return ""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=15, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    names = done.stdout.strip().splitlines()
    return names[0].strip() if done.returncode == 0 and names else ""


def processor_name() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def facts() -> dict[str, Any]:
    """What the site is told: the keys of `trainer.wire.Machine`."""
    return {
        "system": f"{platform.system()} {platform.release()}"[:300],
        "processor": processor_name()[:300],
        "accelerator": (gpu_name() or "CPU")[:300],
        "num_cores": num_cores(),
        "memory_bytes": memory_bytes(),
        "python": platform.python_version(),
    }
