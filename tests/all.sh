#!/usr/bin/env bash
# All tests, in invocations whose closing lines add up: a browser test keeps an event loop running
# in the main thread, which asyncio tests of the same process cannot stand. Swarms mostly wait, so
# they run beside the others, and behind them where the machine is busy.
# Usage: tests/all.sh "MARKERS" (for example "not soak")
set -uo pipefail
cd "$(dirname "$0")/.."
chosen=$1
failed=0
LONGEST_S=1800 # of one step: what hangs shall fail
step() {
    echo "== $1"
    shift
    timeout --foreground -k 10 "$LONGEST_S" "$@" || failed=1
}
set -m # groups of their own for what runs beside, to be ended whole
said=$(mktemp -d)
beside=()
run_beside() {
    ("$1" && exit $failed) >"$said/${#beside[@]}" 2>&1 &
    beside+=($!)
}
swarms() {
    renice -n 5 "$BASHPID" >/dev/null
    step "real swarms" \
        python -m pytest -q --durations=8 -m "swarm and ($chosen)" --ignore-glob '*/test_site_*.py'
    step "the site again, PostgreSQL" \
        python -m tests.postgres python -m pytest -q \
        -m "not browser and not swarm and not heavy and ($chosen)" tests/web tests/live
}
sites() {
    step "a real site with real agents" \
        python -m pytest -q --durations=8 -m "swarm and ($chosen)" tests/swarm/test_site_*.py
    step "in the browser" python -m pytest -q -m "browser and ($chosen)"
}
run_beside swarms
run_beside sites
set +m
trap 'for group in "${beside[@]}"; do kill -TERM -- "-$group" 2>/dev/null; done; rm -rf "$said"' EXIT
trap 'exit 130' INT TERM
step "style, types, borders" make -s lint
step "site, agent and launcher, SQLite" \
    python -m pytest -q --durations=8 -m "not browser and not swarm and ($chosen)"
for number in "${!beside[@]}"; do
    wait "${beside[$number]}" || failed=1
    cat "$said/$number"
done
exit $failed
