#!/bin/bash
#
# t/portable/compile.sh CC [angie]: all of the C with this compiler, warnings as
# errors, without making anything of it.  gcc finds some of its warnings only
# while it optimises; the vector kernels take minutes then, and tests are not
# worth it.  The module needs a configured nginx: LLM_OBJS, or objs, has one
# after a build.  "angie": only what is not the same there, see angie.h.

set -eu

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ROOT=$PWD
CC=$1
JOBS=${JOBS:-$(nproc)}
OBJS=${LLM_OBJS:-$PWD/objs}

FLAGS=(-std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE= -DLLM_INTERFACE=1u
       -pthread -I"$PWD")

case $("$CC" --version) in
    *clang*) CLANG=1 ALL=(-fsyntax-only) ;;
    *)       CLANG=  ALL=(-O2 -S -o /dev/null) ;;
esac


# compile FLAGS < FILES.  clang takes longer to start than to check a file, and
# its driver starts it for each: behind the driver's back (-Xclang) it takes as
# many as there are.  What is in front has to be a file, too.

compile() {
    if [ -n "$CLANG" ]; then
        sed 's/^/-Xclang /' |
            xargs -r -P "$JOBS" -n 128 "$CC" "${FLAGS[@]}" "$@" -x c /dev/null
    else
        xargs -r -P "$JOBS" -n 1 "$CC" "${FLAGS[@]}" "$@"
    fi
}


# in nginx's folder, as its Makefile does

compile_module() {
    local dir incs=()

    if [ ! -e "$OBJS/nginx/ngx_auto_config.h" ]; then
        echo "without the module: no nginx is configured in $OBJS"
        return
    fi

    cd "$OBJS/nginx-src"

    for dir in src/core src/event src/event/modules src/event/quic src/os/unix \
               src/http src/http/modules src/http/v2 src/http/v3 \
               "$OBJS/nginx"
    do
        [ ! -d "$dir" ] || incs+=(-I "$dir")
    done

    compile -Wno-unused-parameter "${incs[@]}" "$@"
}


if [ "${2:-}" = angie ]; then
    echo "$ROOT/http/conf/ngx_http_llm_uri_check.c" |
        compile_module "${ALL[@]}" -include "$ROOT/t/portable/angie.h"
    exit
fi

find engine kernels/*.c t/bench -name '*.c' | compile "${ALL[@]}"

# the table of rows has definitions of its own, see engine/Makefile
find kernels/cpu t/unit t/fuzz -name '*.c' ! -name rows.c |
    compile -fsyntax-only

find "$ROOT/http" "$ROOT/ngx_http_llm_module.c" -name '*.c' |
    compile_module "${ALL[@]}"
