#!/usr/bin/env bash
# All tests, in invocations whose closing lines add up: a browser test keeps an event loop running
# in the main thread, which asyncio tests of the same process cannot stand. Swarms mostly wait, so
# those without a site run beside the others.
# Usage: tests/all.sh "MARKERS" (for example "not soak")
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
LONGEST_S=1500 # of one step: what hangs shall fail
step() {
    echo "== $1"
    shift
    timeout --foreground -k 10 "$LONGEST_S" "$@" || failed=1
}
set -m # a group of its own for what runs beside, to be ended whole
said=$(mktemp)
timeout --foreground -k 10 "$LONGEST_S" python -m pytest -q -m "swarm and ($1)" --ignore tests/swarm/test_site_swarm.py >"$said" 2>&1 &
swarm=$!
set +m
trap 'kill -TERM -- -$swarm 2>/dev/null; rm -f "$said"' EXIT
trap 'exit 130' INT TERM
step "style, types, borders" make -s lint
step "site, agent and launcher, SQLite" python -m pytest -q -m "not browser and not swarm and ($1)"
step "the site again, PostgreSQL" \
    python -m tests.postgres python -m pytest -q -m "not browser and not swarm and ($1)" tests/web tests/live
step "in the browser" python -m pytest -q -m "browser and ($1)"
step "a real site with real agents" python -m pytest -q -m "swarm and ($1)" tests/swarm/test_site_swarm.py
echo "== real swarms (beside the others)"
wait "$swarm" || failed=1
cat "$said"
exit $failed
