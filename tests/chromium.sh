#!/usr/bin/env bash
# Sees that there is a Chromium for the browser tests: CHROMIUM names one, else it is looked for.
set -euo pipefail
for program in "${CHROMIUM:-}" /usr/bin/chromium "$(command -v chromium || true)"; do
    if [ -n "$program" ] && [ -x "$program" ]; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
    exit 0
fi
echo "The browser tests need Chromium: apt install chromium, or set CHROMIUM=/path/to/chromium." >&2
exit 1
