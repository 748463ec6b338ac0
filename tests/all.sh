#!/usr/bin/env bash
# All tests, in invocations whose closing lines add up: a browser test keeps an event loop running
# in the main thread, which asyncio tests of the same process cannot stand.
# Usage: tests/all.sh "MARKERS" (for example "not soak")
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
step() {
    echo "== $1"
    shift
    "$@" || failed=1
}
step "style, types, borders" make -s lint
step "everything but the browser, SQLite" python -m pytest -q -m "not browser and ($1)"
step "the site again, PostgreSQL" \
    python -m tests.postgres python -m pytest -q -m "not browser and not swarm and ($1)" tests/web tests/live
step "in the browser" python -m pytest -q -m "browser and ($1)"
exit $failed
