#!/bin/bash
#
# t/portable/run.sh [SUITE ...]: tests a clone of this commit in fresh Debian
# systems (bookworm, trixie, sid), as a new user would: "./build.sh run" and a
# request, then all C sources with the system's gcc and clang, with warnings as
# errors.  Run by hand, as root, with debootstrap; each system takes ten minutes
# and 2 GB.
#
# TEST=1: also "./build.sh test", which takes another 4 GB and an hour.
# MIRROR: server of packages (http://deb.debian.org/debian).  The systems are
# made in WORK (objs/portable), and reused if they exist.

set -eu

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ROOT=$PWD
WORK=${WORK:-$ROOT/objs/portable}
MIRROR=${MIRROR:-http://deb.debian.org/debian}
PORT=${LLM_PORT:-18080}
FAILED=

say() { printf '== %s\n' "$*"; }


make_system() {
    local suite=$1 dir=$WORK/$1

    [ ! -e "$dir/made" ] || return 0

    say "$suite: debootstrap"

    rm -rf --one-file-system "$dir"
    mkdir -p "$dir"
    debootstrap --variant=minbase --include=ca-certificates,git,curl \
        "$suite" "$dir" "$MIRROR" > "$WORK/$suite.debootstrap" 2>&1
    touch "$dir/made"
}


# runs a command in a system, without the environment of this machine

inside() {
    local dir=$WORK/$1

    # name server and certificates of this machine
    cp /etc/resolv.conf "$dir/etc/resolv.conf"
    cp /etc/ssl/certs/ca-certificates.crt "$dir/etc/ssl/certs/"

    # in a mount namespace, so that the mounts end with the command
    unshare --mount --fork --kill-child bash -eu -c '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        exec chroot "$1" env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
            PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
            SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
            NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
            bash -eu -c "$2"' _ "$dir" "$2"
}


# starts "run", runs the curl command that it prints, then stops it

SERVE='
cd /root/clone
apt-get update -qq
mkfifo /root/said
LLM_PORT=@ ./build.sh run > /root/said 2>&1 &
pid=$!

while IFS= read -r line; do
    printf "%s\n" "$line"
    case $line in
        "curl -N "*) answer=$(eval "$line" || :); break ;;
    esac
done < <(cat /root/said)

printf "%s\n" "${answer:-no answer}"
kill -QUIT "$pid"
case ${answer:-} in *DONE*) ;; *) exit 1 ;; esac
'

COMPILE='
cd /root/clone
apt-get install -qq -y --no-install-recommends clang > /dev/null
for cc in gcc clang; do
    $cc --version | head -n 1
    t/portable/compile.sh $cc
done
'


try() {
    local suite=$1 what=$2

    if inside "$suite" "$3" > "$WORK/$suite.$what" 2>&1; then
        say "$suite: $what: ok"
    else
        say "$suite: $what: FAILED, see $WORK/$suite.$what"
        FAILED="$FAILED $suite/$what"
    fi
}


mkdir -p "$WORK"

for suite in ${*:-bookworm trixie sid}; do
    make_system "$suite"

    rm -rf --one-file-system "$WORK/$suite/root/clone" "$WORK/$suite/root/said"
    git clone -q "$ROOT" "$WORK/$suite/root/clone"

    try "$suite" run "${SERVE/@/$PORT}"
    try "$suite" compile "$COMPILE"

    if [ -n "${TEST:-}" ]; then
        try "$suite" test 'cd /root/clone; ./build.sh test < /dev/null'
    fi
done

[ -z "$FAILED" ] || { say "failed:$FAILED"; exit 1; }
