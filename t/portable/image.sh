#!/bin/bash
#
# t/portable/image.sh BASE DEBS: follows the last stage of
# contrib/docker/Dockerfile in a copy of the Debian in the folder BASE, with the
# packages in the folder DEBS, then runs what a container would run: as its user,
# with a root that is read-only, asks for an answer and for its health, and ends
# it.  As root, where there is no docker.

set -eu

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. t/portable/system.sh

BASE=$1
DEBS=$2
WORK=$(mktemp -d)
DIR=$WORK/image
USERSPEC=
START=
HEALTH=

trap 'rm -rf --one-file-system "$WORK"' EXIT

die() { printf 'FAILED: %s\n' "$*"; exit 1; }


# ["a", "b"] as words

words() { tr -d '[]",' <<< "$1"; }


# the instructions of the last stage, one a line

instructions() {
    sed -e ':a' -e '/\\$/N; s/ *\\\n */ /; ta' -e '/^#/d' -e '/^$/d' \
        contrib/docker/Dockerfile | sed -e '/^FROM /h; /^FROM /!H; $!d; x'
}


follow() {
    local what rest

    while read -r what rest <&3; do
        case $what in
            FROM|EXPOSE|STOPSIGNAL) ;;
            COPY)
                case $rest in
                    --from=build*.deb\ /tmp/) cp "$DEBS"/*.deb "$DIR/tmp/" ;;
                    --*) die "COPY $rest" ;;
                    *)   mkdir -p "$DIR${rest##* }"
                         # shellcheck disable=SC2086
                         cp ${rest% *} "$DIR${rest##* }" ;;
                esac ;;
            RUN)         inside "$DIR" "$rest" > "$WORK/run" 2>&1 ||
                             { cat "$WORK/run"; die "RUN $rest"; } ;;
            USER)        USERSPEC=$rest ;;
            VOLUME)      mkdir -p "$DIR$rest" ;;
            HEALTHCHECK) HEALTH=$(words "${rest##*CMD }") ;;
            ENTRYPOINT)  START=$(words "$rest") ;;
            *)           die "$what is unknown here" ;;
        esac
    done 3< <(instructions)
}


# without a network, as the port may be in use outside; only /tmp can be written

SERVE='
    mount --bind "$1" "$1"
    mount -t tmpfs tmp "$1/tmp"
    chmod 1777 "$1/tmp"
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount -o remount,bind,ro "$1"
    ip link set lo up

    # the user of a container has its standard output, too
    touch "$4/said"
    chown "$2" "$4/said"
    chroot --userspec="$2" "$1" $3 >> "$4/said" 2>&1 &
    pid=$!

    for i in $(seq 600); do
        ! chroot --userspec="$2" "$1" $5 2> /dev/null || break
        kill -0 "$pid"
        sleep 0.1
    done

    chroot --userspec="$2" "$1" $5 || exit 1
    echo "healthy, as user $2"

    curl -s http://127.0.0.1:8080/v1/chat/completions \
        -H "Content-Type: application/json" \
        -d "{\"messages\": [{\"role\": \"user\", \"content\": \"What is 2 + 2?\"}],
             \"temperature\": 0}" > "$4/answer"
    curl -s http://127.0.0.1:8080/api/tags > "$4/tags"
    for file in "" llm_page/chat.js; do
        curl -s "http://127.0.0.1:8080/$file"
    done > "$4/page"
    kill -QUIT "$pid"
    wait "$pid"'

copy_system "$BASE" "$DIR"
rm -f "$DIR/etc/apt/apt.conf.d/docker"*
follow

[ -n "$USERSPEC" ] && [ -n "$START" ] && [ -n "$HEALTH" ] ||
    die "no USER, ENTRYPOINT or HEALTHCHECK"

unshare --mount --net --fork --kill-child bash -eu -c "$SERVE" _ \
    "$DIR" "$USERSPEC" "$START" "$WORK" "$HEALTH" ||
    { cat "$WORK/said"; die "it does not serve"; }

cat "$WORK/answer"
echo
grep -q '"content":"2 + 2 = 4\."' "$WORK/answer" || die "no answer"
grep -q '"name":"demo:latest"' "$WORK/tags" ||
    { cat "$WORK/tags"; die "no answer to Ollama's clients"; }

# the page at /, then one of its files
cat web/index.html web/chat.js | cmp - "$WORK/page" || die "no page"
