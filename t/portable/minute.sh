#!/bin/bash
#
# t/portable/minute.sh [SUITE ...]: a new user's first minutes, timed.  In a
# fresh system of Debian (trixie) this commit is cloned and "./build.sh run"
# called, while a browser of this machine, Chromium without a window, waits for
# the page, asks it, and reads the answer.  Needs root, debootstrap, node and
# Chromium.  WORK, MIRROR: as for run.sh; LLM_PORT: 18080.

set -eu

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ROOT=$PWD
WORK=${WORK:-$ROOT/objs/portable}
MIRROR=${MIRROR:-http://deb.debian.org/debian}
PORT=${LLM_PORT:-18080}

. t/portable/system.sh

# what README.md says, but for the address of the clone

MINUTE='
cd /root
apt-get update -qq
apt-get install -qq -y --no-install-recommends ca-certificates git > /dev/null
git clone -q source clone
cd clone
exec env LLM_PORT=@ ./build.sh run
'

mkdir -p "$WORK"

for suite in ${*:-trixie}; do
    dir=$WORK/$suite.minute

    base_system "$suite"
    copy_system "$suite" "$dir"
    git clone -q --bare "$ROOT" "$dir/root/source"

    inside "$dir" "${MINUTE/@/$PORT}" > "$WORK/$suite.minute.log" 2>&1 &
    system=$!
    node t/portable/minute.mjs "http://127.0.0.1:$PORT/" 1800 &
    browser=$!

    # the browser ends first, unless the system could not serve

    rc=0
    wait -n "$browser" "$system" || rc=$?
    pid=$(cat "$dir/root/clone/objs/run/$PORT/logs/nginx.pid" 2> /dev/null) ||
        { tail "$WORK/$suite.minute.log"; rc=1; }

    kill "$browser" 2> /dev/null || :
    [ -z "$pid" ] || kill -QUIT "$pid"
    wait "$system" || :
    rm -rf --one-file-system "$dir"

    [ "$rc" -eq 0 ] || exit "$rc"
done
