#!/bin/bash
#
# t/portable/chroot.sh BASE OLD NEW: runs packages.sh in a copy of the system in
# the folder BASE, which stays as it is; as root.

set -eu

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. t/portable/system.sh

BASE=$1
WORK=$(mktemp -d)

trap 'rm -rf --one-file-system "$WORK"' EXIT

copy_system "$BASE" "$WORK/system"
cp -r "$2" "$WORK/system/root/old"
cp -r "$3" "$WORK/system/root/new"
cp t/portable/packages.sh "$WORK/system/root/"

inside "$WORK/system" '
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends ca-certificates curl \
        iproute2 > /root/apt 2>&1 || { cat /root/apt; exit 1; }
    LLM_SCRATCH=1 /root/packages.sh /root/old /root/new'
