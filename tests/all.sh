#!/usr/bin/env bash
# All tests, in invocations whose closing lines add up: a browser test keeps an event loop running
# in the main thread, which asyncio tests of the same process cannot stand. Swarms mostly wait, so
# they run beside the others, and behind them where the machine is busy. What failed in such company
# is run once more without it, and says so: a fault of the code fails again.
# Usage: tests/all.sh "MARKERS" (for example "not soak")
set -uo pipefail
cd "$(dirname "$0")/.."
chosen=$1
failed=0
alone=false
kept=$(mktemp -d) # what was said beside, and by invocation which tests failed
LONGEST_S=1800    # of one step: what hangs shall fail
TESTS_FAILED=1    # as pytest ends; it keeps their names

limited() {
    timeout --foreground -k 10 "$LONGEST_S" "$@"
}
step() {
    echo "== $1"
    shift
    limited "$@" || failed=1
}
tests() {
    local title=$1 cache="$kept/$1"
    local failures="$cache/v/cache/lastfailed"
    shift
    set -- "$@" -o addopts=--strict-markers -o "cache_dir=$cache"
    if ! $alone; then
        echo "== $title"
        limited "$@" || { [ $? -eq "$TESTS_FAILED" ] && [ -e "$failures" ]; } || failed=1
    elif [ -e "$failures" ]; then
        step "once more, alone: $title" "$@" --last-failed --last-failed-no-failures none
    fi
}
units() {
    tests "site, agent and launcher, SQLite" \
        python -m pytest -q --durations=8 -m "not browser and not swarm and ($chosen)"
}
modest_swarms() {
    renice -n 5 "$BASHPID" >/dev/null
    swarms
}
swarms() {
    tests "real swarms" \
        python -m pytest -q --durations=8 -m "swarm and ($chosen)" --ignore-glob '*/test_site_*.py'
    tests "the site again, PostgreSQL" \
        python -m tests.postgres python -m pytest -q \
        -m "not browser and not swarm and not heavy and ($chosen)" tests/web tests/live
}
sites() {
    tests "a real site with real agents" \
        python -m pytest -q --durations=8 -m "swarm and ($chosen)" tests/swarm/test_site_*.py
    tests "in the browser" python -m pytest -q -m "browser and ($chosen)"
}
set -m # groups of their own for what runs beside, to be ended whole
beside=()
run_beside() {
    ("$1"; exit $failed) >"$kept/said-${#beside[@]}" 2>&1 &
    beside+=($!)
}
run_beside modest_swarms
run_beside sites
set +m
trap 'for group in "${beside[@]}"; do kill -TERM -- "-$group" 2>/dev/null; done; rm -rf "$kept"' EXIT
trap 'exit 130' INT TERM
step "style, types, borders" make -s lint
units
for number in "${!beside[@]}"; do
    wait "${beside[$number]}" || failed=1
    cat "$kept/said-$number"
done
alone=true
units
swarms
sites
exit $failed
