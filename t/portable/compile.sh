#!/bin/bash
#
# t/portable/compile.sh CC [angie]: compiles what users build, all C sources but
# the tests', with the compiler CC, with warnings as errors, without output
# files.  gcc has some warnings only when it optimises, which takes minutes:
# those of its builds suffice.  The module needs a configured nginx: LLM_OBJS,
# or objs, has one after a build.
# "angie": only the source that differs for Angie, see angie.h.
# CC of musl-gcc: the engine with musl's headers, as its libraries' are taken from
# the system, which has no nginx with musl.

set -eu

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ROOT=$PWD
CC=$1
JOBS=${JOBS:-$(nproc)}
OBJS=${LLM_OBJS:-$PWD/objs}

FLAGS=(-std=gnu11 -Wall -Wextra -Werror -D_GNU_SOURCE= -DLLM_INTERFACE=1u
       -DLLM_FFMPEG=0 -pthread -I"$PWD" -fsyntax-only)

case $("$CC" --version) in
    *clang*) CLANG=1 ;;
    *)       CLANG=  ;;
esac


# compile FLAGS < FILES.  clang takes longer to start than to check a file, and
# its driver starts it once per file.  With -Xclang, files are passed to one
# clang without the driver, which itself needs a file, too: /dev/null.

compile() {
    if [ -n "$CLANG" ]; then
        sed 's/^/-Xclang /' |
            xargs -r -P "$JOBS" -n 128 "$CC" "${FLAGS[@]}" "$@" -x c /dev/null
    else
        xargs -r -P "$JOBS" -n 1 "$CC" "${FLAGS[@]}" "$@"
    fi
}


# compiles in nginx's folder, as nginx's Makefile does

compile_module() {
    local dir incs=()

    if [ ! -e "$OBJS/nginx/ngx_auto_config.h" ]; then
        echo "the module is not compiled: no nginx is configured in $OBJS"
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
        compile_module -include "$ROOT/t/portable/angie.h"
    exit
fi

# links to the headers of the libraries and of Linux: the folder that they are in
# has the C library's, too

if [[ $CC = *musl* ]]; then
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    mkdir "$dir/openssl"

    for from in /usr/include "/usr/include/$(cc -print-multiarch)"; do
        for name in asm asm-generic linux cjson pcre2.h zlib.h zconf.h; do
            [ ! -e "$from/$name" ] || ln -sf "$from/$name" "$dir/"
        done

        for name in "$from"/openssl/*.h; do
            [ ! -e "$name" ] || ln -sf "$name" "$dir/openssl/"
        done
    done

    # without images and sound, whose libraries may be missing anywhere

    find engine kernels -name '*.c' | compile -idirafter "$dir"
    exit
fi

find engine kernels -name '*.c' | compile

find "$ROOT/http" "$ROOT/ngx_http_llm_module.c" -name '*.c' |
    compile_module
