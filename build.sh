#!/bin/bash
#
# Everything that is done with a clone: serve, build, test, measure, install.
# Nothing is written outside the clone but distribution packages (and what
# "install" is for); nothing is downloaded when nothing is missing.

set -eu

cd "$(dirname "${BASH_SOURCE[0]}")"

case $PWD in
    *[[:space:]]*)
        echo "build.sh: neither make nor nginx's configure works in a folder" \
             "whose path has a space: $PWD" >&2
        exit 1 ;;
esac

ROOT=$PWD
OBJS=$ROOT/objs
CC=${CC:-cc}
JOBS=${JOBS:-$(nproc)}

# Debian's nginx is built with a patched connection structure: a module for
# it must be built from its own source package's headers.
DEBIAN_SRC=/usr/share/nginx/src

# package, and the file or command that shows it is there
BUILD_NEEDS='
gcc               gcc
g++               g++
make              make
libc6-dev         /usr/include/stdio.h
libcjson-dev      /usr/include/cjson/cJSON.h
libpcre2-dev      /usr/include/pcre2.h
libssl-dev        /usr/include/openssl/evp.h
zlib1g-dev        /usr/include/zlib.h
'

# another nginx may be where it likes

if [ -z "${NGINX_SRC:-}" ]; then
    BUILD_NEEDS="$BUILD_NEEDS
nginx             nginx
nginx-dev         /usr/share/nginx/src/configure
"
fi

TEST_NEEDS='
perl              prove
clang             clang
libclang-rt-dev   clang-fuzzer
python3           python3
python3-venv      python-venv
nodejs            node
npm               npm
curl              curl
openssl           openssl
'


usage() {
    cat << END
usage: ./build.sh COMMAND

  run      build, then serve the demo model on 127.0.0.1:8080 (LLM_PORT)
  build    objs/ngx_http_llm_module.so, objs/llm and the CUDA backend (which
           "run" builds where there is a GPU)
  test     all tests; "test asan", "test tsan" under a sanitizer
  bench    the engine's speed alone and over HTTP;
           "bench streams": 10,000 streams at once on one worker;
           "bench bodies": /health beside clients that post large bodies;
           "bench keys": /health while files of 100,000 API keys are read;
           "bench chats": 1 to 64 chats with one system prompt, with and
           without the prefix cache (LLAMA_SERVER=path: beside llama-server);
           "bench mix": long prompts, long answers, and both (LLAMA_SERVER);
           "bench overload": three times as many requests as can be served;
           "bench flood": a tenant's expensive schemas, and what another waits;
           "bench masks": JSON Schemas, how exact and how fast;
           "bench shapes": shapes of real models, random weights
           (LLAMA_BENCH=path: beside llama-bench; BEFORE=path: beside the
           objs/llm of another build)
  install  the module into the system's nginx, objs/llm as nginx-llm
           (DESTDIR is honoured)
  clean    remove what was built

NGINX_SRC=dir builds against that nginx source tree, CC=clang with clang,
CUDA_HOME and CUBLAS_HOME say where the CUDA toolkit is.  CPPFLAGS, CFLAGS,
CXXFLAGS and LDFLAGS are used; WERROR=1 makes the compiler's warnings errors.
END
}


say() { printf '%s\n' "build.sh: $*"; }

die() { printf '%s\n' "build.sh: $*" >&2; exit 1; }


# ---- what has to be there ----

has() {
    case $1 in
        /*)           [ -e "$1" ] ;;
        clang-fuzzer) command -v clang > /dev/null &&
                      [ -e "$(clang -print-runtime-dir)/libclang_rt.fuzzer-x86_64.a" ] ||
                      ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a > /dev/null 2>&1 ;;
        python-venv)  python3 -c 'import ensurepip, venv' 2> /dev/null ;;
        nginx)        command -v nginx > /dev/null || [ -x /usr/sbin/nginx ] ;;
        *)            command -v "$1" > /dev/null ;;
    esac
}


names() {
    local package probe all=''

    while read -r package probe; do
        all="$all${package:+${all:+, }$package}"
    done <<< "$1"

    printf '%s' "$all"
}


need() {
    local missing='' package probe sudo=''

    while read -r package probe; do
        if [ -n "$package" ] && ! has "$probe"; then
            missing="$missing $package"
        fi
    done <<< "$1"

    [ -n "$missing" ] || return 0

    # a test must not install anything
    [ -z "${LLM_NO_INSTALL:-}" ] || die "not installed:$missing"

    command -v apt-get > /dev/null || die "please install:$missing"

    if [ "$(id -u)" != 0 ]; then
        command -v sudo > /dev/null || die "please install (as root):$missing"
        sudo=sudo
    fi

    say "installing from the distribution:$missing"

    $sudo apt-get update -q
    # shellcheck disable=SC2086
    $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends $missing
}


# One message instead of one for each file.

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


# What compilers and installers put aside is hundreds of megabytes, and /tmp may
# be a small disk: in the clone, unless the caller says where.  What tests make
# stays in /tmp, as the names of sockets have to be short.

aside() {
    local TMPDIR=${TMPDIR:-$OBJS/tmp}

    writable "$OBJS"

    export TMPDIR
    mkdir -p "$TMPDIR"

    "$@"
}


# ---- build ----

# Compiling takes minutes: how many of the files it has come to.  Each command
# of make's begins with a line that has " -c ".

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


# On a terminal one line that changes; otherwise a line for every tenth.

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


# Debian's flags for Debian's nginx; otherwise only what a module needs.

nginx_flags() {
    local san='' flags

    mapfile -t flags < <(make -s -f engine/flags.mk SAN="${SAN:-}" \
        --eval='show: ; @printf "%s\n" "$(NGINX_CC)" "$(NGINX_LD)"' show)

    [ -z "${SAN:-}" ] || san="-fsanitize=address,undefined -fno-omit-frame-pointer"

    NGX_CONF_FLAGS=(--with-compat)

    if [ -e "$NGINX_SRC/conf_flags" ]; then
        # shellcheck disable=SC1091
        . "$NGINX_SRC/conf_flags"

    elif grep -qs 'define NGX_THREADS' "$NGINX_SRC/objs/ngx_auto_config.h"
    then
        NGX_CONF_FLAGS+=(--with-threads)
    fi

    NGX_CONF_FLAGS+=(
        --with-cc="$CC"
        --with-cc-opt="${flags[0]} $san${LLM_TEST:+ -DLLM_TEST}"
        --with-ld-opt="${flags[1]} $san"
        --add-dynamic-module="$ROOT"
        --builddir="$1/nginx"
    )
}


# nginx's configure writes a Makefile to where it runs: a folder of links to
# the source tree, so that the tree stays as it is.

configure() {
    local objs=$1 links=$1/nginx-src entry stamp

    nginx_flags "$objs"

    stamp="$NGINX_SRC $(stat -c %Y "$NGINX_SRC/src/core/nginx.h" config config.make | tr '\n' ' ') ${NGX_CONF_FLAGS[*]}"

    if [ "$(cat "$objs/nginx.stamp" 2> /dev/null)" = "$stamp" ]; then
        return
    fi

    say "configuring with the nginx source in $NGINX_SRC"

    rm -rf "$links" "$objs/nginx" "$objs/nginx.stamp"
    mkdir -p "$links" "$objs/nginx"

    for entry in "$NGINX_SRC"/*; do
        case ${entry##*/} in
            objs|Makefile) ;;
            *) ln -s "$(readlink -f "$entry")" "$links/" ;;
        esac
    done

    if [ -x "$links/configure" ]; then
        entry=./configure
    else
        entry=auto/configure
    fi

    # nginx's would take these a second time

    if ! (unset CPPFLAGS CFLAGS LDFLAGS
          cd "$links" && LLM_OBJS=$objs $entry "${NGX_CONF_FLAGS[@]}") \
        > "$objs/configure.log" 2>&1
    then
        tail -n 20 "$objs/configure.log" >&2
        die "nginx's configure failed, see $objs/configure.log"
    fi

    printf '%s' "$stamp" > "$objs/nginx.stamp"
}


module() {
    local objs=$1

    NGINX_SRC=${NGINX_SRC:-$DEBIAN_SRC}
    [ -d "$NGINX_SRC/src/core" ] || die "no nginx source in $NGINX_SRC"
    NGINX_SRC=$(cd "$NGINX_SRC" && pwd)

    configure "$objs"

    compile 'the module' -C "$objs/nginx-src" -f "$objs/nginx/Makefile" modules

    cmp -s "$objs/nginx/ngx_http_llm_module.so" \
           "$objs/ngx_http_llm_module.so" ||
        install -m 644 "$objs/nginx/ngx_http_llm_module.so" "$objs/"
}


# Where cuBLAS is: where CUBLAS_HOME says, or in the toolkit, or where the
# tests' set-up put it.  Headers and shared objects may lie apart.

cublas() {
    local nvcc=$1 home lib places

    if [ -n "${CUBLAS_HOME:-}" ]; then
        places=$CUBLAS_HOME
    else
        places="$(nvcc_top "$nvcc") /usr $ROOT/.deps/cublas/nvidia/cu13"
    fi

    for home in $places; do
        for lib in "$home"/{lib64,lib,lib/x86_64-linux-gnu}/libcublasLt.so.*
        do
            if [ -e "$lib" ] && [ -e "$home/include/cublasLt.h" ]; then
                CUBLAS_INC=$(cd "$home/include" && pwd)
                CUBLAS_LIB=$(cd "${lib%/*}" && pwd)/${lib##*/}
                return 0
            fi
        done
    done

    return 1
}


nvcc_top() {
    local top

    top=$("$1" --dryrun -x cu /dev/null -o /dev/null 2>&1 |
        sed -n 's/^#\$ TOP=//p')
    (cd "${top:-/usr}" && pwd)
}


nvcc_path() {
    if [ -n "${CUDA_HOME:-}" ]; then
        command -v "$CUDA_HOME/bin/nvcc"
    else
        command -v nvcc || command -v /usr/local/cuda/bin/nvcc
    fi
}


# The CUDA backend is a shared object of its own: without it the module is
# the same, and runs on the CPU.  The emulator's twin needs no GPU.

backends() {
    local nvcc

    compile "the GPU's emulator" -f kernels/cuda/Makefile OBJS="$OBJS" emu

    if ! nvcc=$(nvcc_path); then
        say "without CUDA: no nvcc ${CUDA_HOME:+in $CUDA_HOME/bin; }(it is" \
            "in NVIDIA's CUDA Toolkit; CUDA_HOME says where that is)"
        return
    fi

    if ! cublas "$nvcc"; then
        say "CUDA without cuBLAS, with our own kernels alone: none" \
            "${CUBLAS_HOME:+in $CUBLAS_HOME }(pip install --target DIR -r" \
            "t/gpu/requirements.txt, then CUBLAS_HOME=DIR/nvidia/cu13)"
        CUBLAS_INC='' CUBLAS_LIB=''
    fi

    compile 'the CUDA backend' -f kernels/cuda/Makefile \
        OBJS="$OBJS" NVCC="$nvcc" CUBLAS_INC="$CUBLAS_INC" \
        CUBLAS_LIB="$CUBLAS_LIB" cuda
}


module_and_command() {
    need "$BUILD_NEEDS"

    mkdir -p "$OBJS"

    library "$OBJS" lib cli
    module "$OBJS"
}


build() {
    module_and_command
    backends
}


# The CUDA backend takes minutes to compile: who only wants to see an answer
# waits for it where there is a GPU that will use it (/dev/dxg: under WSL).

build_to_run() {
    module_and_command

    if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then
        backends
    fi
}


# ---- run ----

# is somebody listening there?

taken() { (exec 3<> "/dev/tcp/127.0.0.1/$1") 2> /dev/null; }


check_port() {
    case $1 in
        ''|*[!0-9]*|??????*) die "LLM_PORT is not a number of a port: $1" ;;
    esac

    [ "$1" -ge 1 ] && [ "$1" -le 65535 ] ||
        die "LLM_PORT is not a number of a port: $1"

    ! taken "$1" ||
        die "port $1 is in use, perhaps by another run: choose another one" \
            "(LLM_PORT=9090 ./build.sh run)"
}


# Once /health says that the model is there: how to ask it.  Until then, or
# until nginx is gone.

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

    say "serving on http://127.0.0.1:$port until you press Ctrl-C; try"
    cat << END

curl -N http://127.0.0.1:$port/v1/chat/completions -H 'Content-Type: application/json' -d '{"model": "demo", "stream": true, "temperature": 0, "messages": [{"role": "user", "content": "What is 2 + 2?"}]}'

END
}


run() {
    local port=${LLM_PORT:-8080} dir user=''

    check_port "$port"

    say "this installs missing packages ($(names "$BUILD_NEEDS")), builds the" \
        "module into objs/, and serves models/demo.gguf on" \
        "127.0.0.1:$port until you press Ctrl-C"

    aside build_to_run

    export PATH=$PATH:/usr/sbin

    command -v nginx > /dev/null ||
        die "there is no nginx in PATH: put the one of $NGINX_SRC there"

    # minutes may have gone by
    check_port "$port"

    # each port has its logs, its pid file and its configuration, which names
    # the model by ../models

    dir=$OBJS/run/$port
    mkdir -p "$dir/logs" "$dir/temp"
    ln -sfn "$OBJS" "$dir/modules"
    ln -sfn "$ROOT/models" "$OBJS/run/models"
    sed "s/127\.0\.0\.1:8080/127.0.0.1:$port/" conf/nginx.conf \
        > "$dir/nginx.conf"

    # as root nginx gives its workers to another user, who may not be able to
    # read this folder
    [ "$(id -u)" != 0 ] || user="user $(id -un);"

    # no child of nginx's, which has this process' id
    (say_serving $$ "$port" &)

    exec nginx -p "$dir/" -c "$dir/nginx.conf" -g "daemon off; $user"
}


# ---- test ----

# What a lock file names; no package gets to run a script.  "npm ci" asks for
# more: that optional packages of other systems are there, too.

node_packages() {
    local from=$1 to=$2

    ! cmp -s "$from/package-lock.json" "$to/package-lock.json" || return 0

    rm -rf "$to" "$to.new" &&
        mkdir -p "$to.new" &&
        cp "$from/package.json" "$from/package-lock.json" "$to.new/" &&
        (cd "$to.new" && npm install --silent --no-save --no-audit \
            --no-fund --ignore-scripts --omit=optional \
            --cache "$TMPDIR/npm") &&
        rm -rf "$TMPDIR/npm" &&
        mv "$to.new" "$to"
}


# The oldest and the newest gcc-N and clang-N of the distribution, which
# t/portable compiles with.  CI asks for them; others wait minutes less.

test_compilers() {
    local name of

    for name in gcc clang; do
        of=$(apt-cache pkgnames "$name-" | grep -x "$name-[0-9]*" | sort -V)
        of=$(printf '%s\n' "$of" | sed -n '1p;$p' | sort -u)

        need "$(printf '%s\n' "$of" | sed 's/.*/& &/')"
    done
}


test_tools() {
    need "$TEST_NEEDS"
    [ -z "${LLM_COMPILERS:-}" ] || test_compilers
    # neither uv nor npm writes to the home directory
    export UV_NO_CACHE=1 UV_NO_CONFIG=1 UV_PYTHON_DOWNLOADS=never

    if [ ! -e .deps/agents ] || [ ! -e .deps/clients ]; then
        say "fetching what the tests need into .deps: agents and clients as" \
            "programs, 3.5 GB (./build.sh clean removes them)"
    fi

    if ! cmp -s t/requirements.txt .deps/requirements.txt; then
        rm -rf .deps/venv
        python3 -m venv .deps/venv
        .deps/venv/bin/pip install -qq --disable-pip-version-check \
            --no-cache-dir -r t/requirements.txt
        cp t/requirements.txt .deps/requirements.txt
    fi

    node_packages t/sdk .deps/node

    # a gigabyte that one test needs
    node_packages t/agents .deps/agents ||
        say "without the agents: npm could not install them"

    test_clients
    test_cublas
    test_promtool
}


# The Python clients of t/sdk/clients: each list is an environment of its own,
# because the lists pin other versions of the same packages.  uv, because pip
# takes minutes.  What cannot be had is skipped by its test.

test_clients() {
    local list name

    for list in t/sdk/clients/*.txt; do
        name=.deps/clients/$(basename "$list" .txt)

        if cmp -s "$list" "$name/requirements.txt"; then
            continue
        fi

        rm -rf "$name"

        if .deps/venv/bin/uv venv -q -p .deps/venv/bin/python "$name" &&
           .deps/venv/bin/uv pip install -q --no-deps \
               -p "$name/bin/python" -r "$list"
        then
            cp "$list" "$name/requirements.txt"
        else
            say "$list cannot be installed: its clients are not tested"
        fi
    done
}


# A toolkit without cuBLAS gets one, so that the CUDA backend is built and
# linked wherever there is an nvcc.

test_cublas() {
    local nvcc

    nvcc=$(nvcc_path) || return 0

    cmp -s t/gpu/requirements.txt .deps/cublas/requirements.txt ||
        rm -rf .deps/cublas

    if [ -n "${CUBLAS_HOME:-}" ] || cublas "$nvcc"; then
        return
    fi

    say "fetching cuBLAS (423 MB) into .deps/cublas"

    rm -rf .deps/cublas.new
    .deps/venv/bin/uv pip install -q --no-deps \
        -p .deps/venv/bin/python --target .deps/cublas.new \
        -r t/gpu/requirements.txt
    cp t/gpu/requirements.txt .deps/cublas.new/
    mv .deps/cublas.new .deps/cublas
}


# Prometheus' tool that reads metrics and rules, out of the distribution's
# package, which in Debian 12 is the server's: that would be started here.

test_promtool() {
    local to=.deps/promtool package=promtool

    if [ -x "$to/promtool" ] || command -v promtool > /dev/null; then
        return
    fi

    rm -rf "$to.new"
    mkdir -p "$to.new"

    apt-cache show "$package" > /dev/null 2>&1 || package=prometheus

    if (cd "$to.new" && apt-get download -qq "$package" &&
            dpkg-deb --fsys-tarfile "$package"_*.deb |
            tar -x --strip-components=3 ./usr/bin/promtool &&
            rm -f "$package"_*.deb) > /dev/null 2>&1
    then
        rm -rf "$to"
        mv "$to.new" "$to"
    else
        rm -rf "$to.new"
        say "without promtool: its checks of the metrics are skipped"
    fi
}


# The fuzz targets need clang whatever the rest is built with.

test_build() {
    local objs=$1

    library "$objs" lib cli unit load fuzz-http

    if [ "${SAN:-}" != tsan ]; then
        module "$objs"
        CC=clang SAN=fuzz library "$OBJS/fuzzing" fuzz KERNELS="$OBJS"
    fi
}


# What the tests use is fetched while the compiler runs; CUDA comes last, as it
# may need the cuBLAS among it.

build_beside_tools() {
    local tools

    test_tools &
    tools=$!
    # shellcheck disable=SC2064
    trap "kill $tools 2> /dev/null || :" EXIT

    module_and_command
    test_build "$OBJS"

    wait "$tools" || die "the tests' tools could not be installed"
    trap - EXIT

    backends
}


run_tests() {
    local tests=(t/unit/emulator.t t/unit/unit.t t/fuzz/fuzz.t
                 t/portable/portable.t t/sdk/clients.t t/http/fuzz.t
                 t/http/reload.t t/agents/agents.t t/http/cluster.t
                 t/http/health.t -r t/)

    case $1 in
        '')
            writable "$OBJS" "$ROOT/.deps"
            need "$BUILD_NEEDS$TEST_NEEDS"
            aside build_beside_tools
            export LLM_OBJS=$OBJS
            ;;
        asan)
            need "$BUILD_NEEDS"
            aside test_tools
            aside build
            SAN=asan aside test_build "$OBJS/asan"
            export LLM_OBJS=$OBJS/asan LLM_SAN=asan
            ;;
        tsan)
            need "$BUILD_NEEDS$TEST_NEEDS"
            SAN=tsan aside test_build "$OBJS/tsan"
            export LLM_OBJS=$OBJS/tsan LLM_SAN=tsan
            tests=(t/unit)
            ;;
        *)
            die "unknown kind of test: $1"
            ;;
    esac

    export LLM_ROOT=$ROOT
    export PATH=$PATH:/usr/sbin

    # four at a time, as many of them wait more than they compute; the longest
    # first

    prove -It/lib --timer -j4 "${tests[@]}"
}


# ---- bench, install, clean ----

bench() {
    aside build
    aside library "$OBJS" load

    export LLM_OBJS=$OBJS

    case $1 in
        '')
            exec t/bench/run.sh
            ;;
        bodies)
            exec perl -It/lib t/bench/bodies.pl "${@:2}"
            ;;
        keys)
            exec perl -It/lib t/bench/keys.pl "${@:2}"
            ;;
        chats)
            exec perl -It/lib t/bench/chats.pl "${@:2}"
            ;;
        mix)
            exec perl -It/lib t/bench/mix.pl "${@:2}"
            ;;
        overload)
            exec perl -It/lib t/bench/overload.pl "${@:2}"
            ;;
        flood)
            exec perl -It/lib t/bench/flood.pl "${@:2}"
            ;;
        masks)
            exec python3 t/bench/masks.py "${@:2}"
            ;;
        shapes)
            exec python3 t/bench/shapes.py "${@:2}"
            ;;
        streams)
            # with the generator in the place of a model
            export LLM_OBJS=$OBJS/synthetic

            LLM_TEST=1 aside library "$LLM_OBJS" lib load
            LLM_TEST=1 aside module "$LLM_OBJS"

            exec perl -It/lib t/bench/streams.pl "${@:2}"
            ;;
        *)
            die "unknown bench: $1"
            ;;
    esac
}


# where the system's nginx has something: modules, conf

nginx_place() {
    PATH=$PATH:/usr/sbin nginx -V 2>&1 |
        sed -n "s/.*--$1-path=\([^ ]*\).*/\1/p"
}


# "llm" is another tool's name: outside of the clone it is nginx-llm

install_all() {
    local dest=${DESTDIR:-} modules conf

    aside build

    modules=$(nginx_place modules)
    conf=$(nginx_place conf)
    [ -n "$modules" ] || die "this nginx has no folder for modules"
    [ -n "$conf" ] || die "this nginx has no place for its nginx.conf"
    conf=${conf%/*}

    install -d "$dest$modules" "$dest$conf" "$dest/usr/local/bin"
    install -m 644 "$OBJS/ngx_http_llm_module.so" "$dest$modules/"

    if [ -e "$OBJS/llm_cuda.so" ]; then
        install -m 644 "$OBJS/llm_cuda.so" "$dest$modules/"
    fi

    install -m 755 "$OBJS/llm" "$dest/usr/local/bin/nginx-llm"
    install_conf conf/llm_errors.conf "$dest$conf/llm_errors.conf"

    if [ -d "$dest$conf/modules-enabled" ]; then
        echo 'load_module modules/ngx_http_llm_module.so;' \
            > "$dest$conf/modules-enabled/50-mod-http-llm.conf"
        say "enabled in $conf/modules-enabled; now add an llm_model" \
            "(README.md) and reload nginx"
    else
        say "installed; put 'load_module modules/ngx_http_llm_module.so;'" \
            "first in nginx.conf"
    fi
}


# what somebody has changed stays

install_conf() {
    if [ ! -e "$2" ]; then
        install -m 644 "$1" "$2"
    elif ! cmp -s "$1" "$2"; then
        say "$2 stays as it is; $1 is not the same"
    fi
}


case ${1:-} in
    run)     run ;;
    build)   aside build ;;
    test)    run_tests "${2:-}" ;;
    bench)   bench "${2:-}" "${@:3}" ;;
    install) install_all ;;
    clean)   writable "$OBJS" "$ROOT/.deps" && rm -rf objs .deps ;;
    *)       usage; [ "${1:-}" = help ] || exit 1 ;;
esac
