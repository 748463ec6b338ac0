"""Runs one benchmark and ends with one JSON line; without a name, lists them."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from pathlib import Path


def benchmarks() -> dict[str, str]:
    """{name: what it measures} of every file here that defines `main`; nothing is imported."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text())
        has_main = any(isinstance(it, ast.FunctionDef) and it.name == "main" for it in tree.body)
        if has_main and not path.stem.startswith("_"):
            text = ast.get_docstring(tree) or ""
            found[path.stem] = " ".join(text.split("\n\n")[0].split())
    return found


def run(arguments: list[str]) -> int:
    """The exit code: 0 when the goal was met, 1 when it was missed, 2: no such benchmark."""
    known = benchmarks()
    if not arguments:
        width = max(map(len, known))
        print("\n".join(f"{name:<{width}}  {text}" for name, text in known.items()))
        return 0
    name = arguments[0]
    if name not in known:
        print(f"There is no benchmark {name!r}: choose one of {', '.join(known)}", file=sys.stderr)
        return 2
    result = importlib.import_module(f"bench.{name}").main()
    print(json.dumps({"name": name, **result}), flush=True)
    return 0 if result["met"] else 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
