#!/bin/bash
#
# t/portable/run.sh [SUITE | FOLDER ...]: tests this commit in fresh systems of
# Debian (bookworm, trixie, sid) and Ubuntu (noble), and with other sources of
# nginx.  Run by hand, as root, with debootstrap; each system takes a quarter of
# an hour and 3 GB.
#
# SUITE:   in a fresh system, as a new user would: "./build.sh run" in a clone
#          and a request; all C sources with the system's gcc and clang, with
#          warnings as errors; "./build.sh deb" in an archive without .git; these
#          packages installed, upgraded, removed and purged in another one.
# FOLDER:  a source tree of nginx, freenginx, Angie or OpenResty's nginx, built
#          there (objs/nginx or objs/angie): "./build.sh module" for it, and a
#          request to it.  On this machine, in a clone that all of them share.
#
# What was seen goes into the table of docs/builds.md, a row for each.
#
# TEST=1: also "./build.sh test", which takes another 4 GB and an hour.
# MIRROR: server of packages (http://deb.debian.org/debian); UBUNTU: the other
# one's (http://archive.ubuntu.com/ubuntu), for which debootstrap needs the keys
# of its package ubuntu-keyring in /usr/share/keyrings.  The systems are copies
# of WORK/base-SUITE, which debootstrap makes unless they are there; WORK is
# objs/portable.

set -eu

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ROOT=$PWD
WORK=${WORK:-$ROOT/objs/portable}
MIRROR=${MIRROR:-http://deb.debian.org/debian}
PORT=${LLM_PORT:-18080}
FAILED=

. t/portable/system.sh

say() { printf '== %s\n' "$*"; }


# starts "run", runs the curl command that it prints, then stops it

SERVE='
cd /root/clone
apt-get update -qq
apt-get install -qq -y --no-install-recommends ca-certificates curl > /dev/null
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

# two versions of the packages, the second without compiling again

PACKAGES='
set -o pipefail
cd /root/archive
./build.sh deb
version=$(dpkg-deb -f objs/deb/libnginx-*.deb Version)
DEB_DIR=/root/newer DEB_VERSION=$version+b1 ./build.sh deb
apt-get install -qq -y --no-install-recommends lintian > /dev/null
lintian --allow-root --fail-on none -I objs/deb/*.deb | tee /root/tags

# an override is of words that only some compilers leave in a program
! grep -v "mismatched-override spelling-error-in-binary" /root/tags |
    grep "^[EW]:"
'

INSTALL='
apt-get update -qq
apt-get install -qq -y --no-install-recommends ca-certificates curl iproute2 \
    > /dev/null
LLM_SCRATCH=1 /root/packages.sh /root/deb /root/newer
'


# try NAME WHAT COMMAND...

try() {
    local name=$1 what=$2

    if "${@:3}" > "$WORK/$name.$what" 2>&1; then
        say "$name: $what: ok"
        DONE="$DONE${DONE:+, }$what"
    else
        say "$name: $what: FAILED, see $WORK/$name.$what"
        FAILED="$FAILED $name/$what"
    fi
}


# row NAME SYSTEM NGINX COMPILERS: what try() has seen of it

row() {
    mkdir -p "$WORK/rows"
    printf '| %s | %s | %s | %s |\n' "$2" "$3" "$4" "${DONE:-nothing}" \
        > "$WORK/rows/$1"
}


# ---- a Debian ----

debian() {
    local suite=$1 dir=$WORK/$1 fresh=$WORK/$1.fresh compilers nginx

    DONE=

    base_system "$suite"
    copy_system "$suite" "$dir"

    git clone -q "$ROOT" "$dir/root/clone"
    mkdir "$dir/root/archive"
    git archive HEAD | tar -x -C "$dir/root/archive"

    try "$suite" run inside "$dir" "${SERVE/@/$PORT}"
    try "$suite" compile inside "$dir" "$COMPILE"
    try "$suite" deb inside "$dir" "$PACKAGES"

    copy_system "$suite" "$fresh"
    cp -r "$dir/root/archive/objs/deb" "$dir/root/newer" \
        t/portable/packages.sh "$fresh/root/"

    try "$suite" install inside "$fresh" "$INSTALL"
    rm -rf --one-file-system "$fresh"

    try "$suite" image t/portable/image.sh "$WORK/base-$suite" \
        "$dir/root/archive/objs/deb"

    if [ -n "${TEST:-}" ]; then
        try "$suite" test inside "$dir" \
            'cd /root/clone; ./build.sh test < /dev/null'
    fi

    compilers=$(inside "$dir" 'printf "gcc %s" "$(gcc -dumpfullversion)"
        printf ", clang %s" "$(clang -dumpversion)"')
    nginx=$(inside "$dir" 'nginx -v 2>&1 | sed "s/^nginx version: //"')

    row "1-$(inside "$dir" '. /etc/os-release; echo "${VERSION_ID:-99}"')" \
        "$(inside "$dir" '. /etc/os-release; printf "%s %s" "$NAME" \
            "$(case $ID in debian) cat /etc/debian_version ;;
               *) echo "$VERSION_ID" ;; esac)"') ($suite)" \
        "${nginx/\// }" "$compilers"
}


# ---- a source tree of nginx ----

# Serves the demo model with a tree's own program.

serve_with() {
    local nginx=$1 clone=$WORK/clone dir answer pid

    dir=$clone/objs/run/$PORT
    mkdir -p "$dir/logs" "$dir/temp"
    ln -sfn "$clone/objs" "$dir/modules"
    ln -sfn "$clone/models" "$clone/objs/run/models"

    [ ! -d "$clone/web" ] || ln -sfn "$clone/web" "$dir/llm_page"
    [ ! -e "$clone/conf/llm_page.conf" ] ||
        ln -sfn "$clone/conf/llm_page.conf" "$dir/llm_page.conf"

    sed "s/127\.0\.0\.1:8080/127.0.0.1:$PORT/" "$clone/conf/nginx.conf" \
        > "$dir/nginx.conf"

    "$nginx" -p "$dir/" -c "$dir/nginx.conf" -g "user root; daemon off;" &
    pid=$!

    for _ in $(seq 600); do
        ! curl -sf "http://127.0.0.1:$PORT/health" > /dev/null || break
        kill -0 "$pid" || return 1
        sleep 0.1
    done

    answer=$(curl -s "http://127.0.0.1:$PORT/v1/chat/completions" \
        -H 'Content-Type: application/json' \
        -d '{"messages": [{"role": "user", "content": "What is 2 + 2?"}],
             "temperature": 0}')
    printf '%s\n' "$answer"
    kill -QUIT "$pid"
    wait "$pid"
    case $answer in *'"2 + 2 = 4."'*) ;; *) return 1 ;; esac
}


tree() {
    local tree=$1 name nginx version

    DONE=
    name=$(basename "$tree")
    nginx=$(ls -d "$tree"/objs/nginx "$tree"/objs/angie 2> /dev/null | head -n 1)

    if [ -z "$nginx" ]; then
        say "$tree: there is no objs/nginx"
        FAILED="$FAILED $name"
        return
    fi

    if [ ! -e "$WORK/clone" ]; then
        git clone -q "$ROOT" "$WORK/clone"
    fi

    try "$name" module env NGINX_SRC="$tree" CUDA_HOME=/none \
        "$WORK/clone/build.sh" module
    try "$name" run serve_with "$nginx"

    version=$("$nginx" -v 2>&1 | sed -n 's/^[A-Za-z]* version: //p')

    row "2-$name" "$(. /etc/os-release; echo "$PRETTY_NAME")" \
        "${version/\// }, from source" "gcc $(gcc -dumpfullversion)"
}


# ---- the table ----

# the rows of the page's first table

table() {
    local page=docs/builds.md

    awk -v rows="$WORK/rows" '
        /^\| system \| nginx \|/ { print; getline; print
                                  system("cat " rows "/*"); skip = 1; next }
        skip && /^\|/           { next }
                                { skip = 0; print }' "$page" > "$WORK/page"
    cp "$WORK/page" "$page"
}


mkdir -p "$WORK"

for what in ${*:-bookworm trixie sid noble}; do
    case $what in
        /*) tree "$what" ;;
        *)  debian "$what" ;;
    esac
done

table

[ -z "$FAILED" ] || { say "failed:$FAILED"; exit 1; }
