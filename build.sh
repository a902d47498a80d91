#!/bin/bash
#
# The commands for a clone: run, build, test, bench, install, clean.  Outside
# the clone, only missing packages of the distribution are installed, and what
# "install" is for.  Nothing is downloaded if nothing is missing.

set -eu

cd "$(dirname "${BASH_SOURCE[0]}")"

case $PWD in
    *[[:space:]]*)
        echo "build.sh: make and nginx's configure do not work in a folder" \
             "whose path has a space: $PWD" >&2
        exit 1 ;;
esac

ROOT=$PWD
OBJS=$ROOT/objs
CC=${CC:-cc}
JOBS=${JOBS:-$(nproc)}

usage() {
    cat << END
usage: ./build.sh COMMAND

  run      build, then serve the demo model on 127.0.0.1:8080 (LLM_PORT)
  build    objs/ngx_http_llm_module.so, objs/llm and the CUDA backend ("run"
           builds the CUDA backend only if there is a GPU)
  module   the same without the CUDA backend
  test     all tests; "test asan", "test tsan" under a sanitizer; "test ptx":
           the CUDA kernels that nvcc compiles, run without a GPU
  bench    the engine's speed alone and over HTTP; "bench help" lists the others
  install  the module into the system's nginx, objs/llm as nginx-llm
           (DESTDIR is honoured)
  deb      Debian packages for the system's nginx, in objs/deb
  clean    remove what was built

NGINX_SRC=dir builds for the nginx of that source tree, CC=clang with clang.
CUDA_HOME and CUBLAS_HOME are the folders of the CUDA toolkit and of cuBLAS.
CPPFLAGS, CFLAGS, CXXFLAGS and LDFLAGS are used; with WERROR=1 the compiler's
warnings are errors.
END
}


say() { printf '%s\n' "build.sh: $*"; }

die() { printf '%s\n' "build.sh: $*" >&2; exit 1; }


# Dies with one message, instead of one per file, if a folder cannot be written.

writable() {
    local dir bad

    for dir in "$@"; do
        if [ ! -e "$dir" ]; then
            dir=$ROOT
        fi

        bad=$(find "$dir" -maxdepth 0 ! -writable)

        if [ "$dir" != "$ROOT" ] && [ -z "$bad" ]; then
            bad=$(find "$dir/" ! -type l ! -user "$(id -u)" ! -writable \
                -print -quit 2> /dev/null || :)
        fi

        [ -z "$bad" ] || die "$(id -un) may not write to $bad, which is" \
            "$(stat -c %U "$bad")'s: build in a clone of your own, or have" \
            "its owner remove what was built (./build.sh clean)"
    done
}


# Runs a command with temporary files in the clone, unless the caller has set
# TMPDIR: compilers and installers write hundreds of megabytes, and /tmp may be
# small.  Tests use /tmp, as the paths of sockets have to be short.

aside() {
    local TMPDIR=${TMPDIR:-$OBJS/tmp}

    writable "$OBJS"

    export TMPDIR
    mkdir -p "$TMPDIR"

    "$@"
}


# ---- build ----

# Runs make, with a progress report, as compiling takes minutes.  A line of its
# output with " -c " is the start of a file.

compile() {
    local what=$1 total

    shift
    set -- --no-print-directory -j "$JOBS" "$@"
    total=$(make -n "$@" 2> /dev/null | grep -c -e ' -c ' || :)

    if [ "$total" = 0 ]; then
        make -s "$@"
    else
        (set -o pipefail; make "$@" | progress "$what" "$total")
    fi
}


# On a terminal, one line that is updated; otherwise a line per tenth of the
# files.

progress() {
    local what=$1 total=$2 n=0 line text

    while IFS= read -r line; do
        case $line in
            *' -c '*) n=$((n + 1)) ;;
            *)        continue ;;
        esac

        text="build.sh: compiling $what: $n of $total files"

        if [ -t 1 ]; then
            printf '\r%s' "$text"
        elif [ $((n * 10 / total)) != $(((n - 1) * 10 / total)) ] ||
             [ "$n" = 1 ]
        then
            printf '%s\n' "$text"
        fi
    done

    [ ! -t 1 ] || printf '\n'
}


library() {
    local what='the engine'

    [ -z "${SAN:-}" ] || what="$what ($SAN)"

    compile "$what" -f engine/Makefile \
        OBJS="$1" CC="$CC" SAN="${SAN:-}" LLM_TEST="${LLM_TEST:-}" "${@:2}"
}


# The CUDA backend is a separate shared object: the module does not change with
# it, and runs on the CPU without it.  The emulated backend needs no GPU.

backends() {
    local nvcc

    compile "the GPU's emulator" -f kernels/cuda/Makefile OBJS="$OBJS" emu

    if ! nvcc=$(nvcc_path); then
        say "built without CUDA: no nvcc${CUDA_HOME:+ in $CUDA_HOME/bin};" \
            "nvcc is part of NVIDIA's CUDA Toolkit, set CUDA_HOME to the" \
            "toolkit's folder"
        return
    fi

    if ! cublas "$nvcc"; then
        say "building CUDA without cuBLAS, with our own kernels only: no" \
            "cuBLAS found${CUBLAS_HOME:+ in $CUBLAS_HOME}; to install it:" \
            "pip install --target DIR -r t/gpu/requirements.txt, then set" \
            "CUBLAS_HOME=DIR/nvidia/cu13"
        CUBLAS_INC='' CUBLAS_LIB=''
    fi

    compile 'the CUDA backend' -f kernels/cuda/Makefile \
        OBJS="$OBJS" NVCC="$nvcc" CUBLAS_INC="$CUBLAS_INC" \
        CUBLAS_LIB="$CUBLAS_LIB" cuda
}


# Dies if the compiler is not there.  CC may have flags, or ccache before it.

check_compiler() {
    command -v "${CC%% *}" > /dev/null ||
        die "there is no compiler ${CC%% *}, which CC names: install it, or" \
            "unset CC for the system's cc"
}


module_and_command() {
    # what is wrong with the environment is said before minutes of compiling

    [ -z "${NGINX_SRC:-}" ] || check_source "$NGINX_SRC"
    need "$BUILD_NEEDS"
    check_compiler
    need_media

    mkdir -p "$OBJS"

    library "$OBJS" lib cli
    module "$OBJS"
}


build() {
    module_and_command
    backends
}


# The CUDA backend takes minutes to compile, so "run" builds it only if there is
# a GPU (/dev/dxg: under WSL).

build_to_run() {
    module_and_command

    if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then
        backends
    fi
}


# ---- run ----

# Does a process listen on this port?

taken() { (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }


check_port() {
    case $1 in
        ''|*[!0-9]*|??????*) die "LLM_PORT is not a port number: $1" ;;
    esac

    [ "$1" -ge 1 ] && [ "$1" -le 65535 ] ||
        die "LLM_PORT is not a port number: $1"

    ! taken "$1" ||
        die "port $1 is in use, perhaps by another run: choose another one" \
            "(LLM_PORT=9090 ./build.sh run)"
}


# Waits until /health reports that the model is ready, then prints a request to
# try; returns without it if nginx ends before.

say_serving() {
    local pid=$1 port=$2 line

    while kill -0 "$pid" 2> /dev/null; do
        line=$( (exec 3<> "/dev/tcp/127.0.0.1/$port" &&
                 printf 'GET /health HTTP/1.0\r\n\r\n' >&3 &&
                 head -n 1 <&3) 2> /dev/null || :)

        case $line in
            *' 200 '*) break ;;
        esac

        sleep 0.2
    done

    kill -0 "$pid" 2> /dev/null || return 0

    say "serving on http://127.0.0.1:$port/ (a page for your browser) until" \
        "you press Ctrl-C; or try"
    cat << END

curl -N http://127.0.0.1:$port/v1/chat/completions -H 'Content-Type: application/json' -d '{"model": "demo", "stream": true, "temperature": 0, "messages": [{"role": "user", "content": "What is 2 + 2?"}]}'

END
}


run() {
    local port=${LLM_PORT:-8080} dir user=''

    check_port "$port"

    say "this installs missing packages" \
        "($(names "$BUILD_NEEDS$MEDIA_NEEDS")), builds the" \
        "module into objs/, and serves models/demo.gguf on" \
        "127.0.0.1:$port until you press Ctrl-C"

    aside build_to_run

    export PATH=$PATH:/usr/sbin

    command -v nginx > /dev/null ||
        die "no nginx in PATH: add the folder of the nginx of $NGINX_SRC"

    # again, as the build may have taken minutes
    check_port "$port"

    # each port has a folder with its logs, pid file and configuration; the
    # configuration refers to the model as ../models/demo.gguf

    dir=$OBJS/run/$port
    mkdir -p "$dir/logs" "$dir/temp"
    ln -sfn "$OBJS" "$dir/modules"
    ln -sfn "$ROOT/web" "$dir/llm_page"
    ln -sfn "$ROOT/conf/llm_page.conf" "$dir/llm_page.conf"
    ln -sfn "$ROOT/models" "$OBJS/run/models"
    sed "s/127\.0\.0\.1:8080/127.0.0.1:$port/" conf/nginx.conf \
        > "$dir/nginx.conf"

    # started by root, nginx would run its workers as another user, which may
    # not be able to read this folder
    [ "$(id -u)" != 0 ] || user="user $(id -un);"

    # in the background of a subshell, so that it is not a child of nginx, which
    # takes over this process by exec
    (say_serving $$ "$port" &)

    exec nginx -p "$dir/" -c "$dir/nginx.conf" -g "daemon off; $user"
}


# ---- other commands, by subject ----

. contrib/needs.sh
. contrib/deb.sh
. http/nginx.sh
. kernels/cuda/toolkit.sh
. t/setup.sh
. t/run.sh
. t/bench/bench.sh


case ${1:-} in
    run)     run ;;
    build)   aside build ;;
    module)  aside module_and_command ;;
    test)    run_tests "${2:-}" ;;
    bench)   bench "${@:2}" ;;
    install) install_all ;;
    deb)     deb ;;
    clean)   writable "$OBJS" "$ROOT/.deps" && rm -rf objs .deps ;;
    *)       usage; [ "${1:-}" = help ] || exit 1 ;;
esac
