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
    rc=0
    node t/portable/minute.mjs "http://127.0.0.1:$PORT/" 1800 || rc=$?

    # nginx is not a child of this shell, but has its folder's pid

    kill -QUIT "$(cat "$dir/root/clone/objs/run/$PORT/logs/nginx.pid")" || :
    wait "$system" || :
    rm -rf --one-file-system "$dir"

    [ "$rc" -eq 0 ] || exit "$rc"
done
