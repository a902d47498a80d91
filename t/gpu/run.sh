#!/bin/bash
#
# What a GPU has to show, in short calls, each below ten minutes and of use
# alone: a machine with a GPU may be there for as long only.
#
#   t/gpu/run.sh pack       here: what the machine with the GPU may lack, to
#                           objs/gpu (carry this folder with the tree)
#   t/gpu/run.sh build      there: all that the others take; each of them does
#                           it where it was not done
#   t/gpu/run.sh bandwidth  copies, and matrix products where cuBLAS is
#   t/gpu/run.sh parity [S] the tables of t/unit side by side, and what they
#                           have said after S seconds (30)
#   t/gpu/run.sh torch      small models against PyTorch
#   t/gpu/run.sh plans      what cublasLt offers: shape, rows, the same bits or
#                           not, milliseconds, and ours
#   t/gpu/run.sh speed [SHAPE TYPE [FP8]]
#                           tokens a second at 1, 64 and 512 streams, first
#                           tokens of 128, 2048 and 8192
#   t/gpu/run.sh http [SHAPE TYPE]
#                           the same, served by nginx
#   t/gpu/run.sh kernels    time by kernel (nsys)
#   t/gpu/run.sh twice      the same prompt twice, right after loading
#   t/gpu/run.sh sanitize [TOOL]
#                           compute-sanitizer: memcheck (racecheck, ...)
#   t/gpu/run.sh sticky     an error that sticks, and the way back
#   t/gpu/run.sh all        one after another; a failed one stops no other
#
# Each writes a file of its own to $OUT, or to t/bench/results, as it goes, and
# its exit status says whether it was done.  LLM_GPU_DEVICE=emu: on the
# emulator, with small numbers, where there is no GPU.
#
# Without cuBLAS our own kernels do all products.  Python, PyTorch,
# compute-sanitizer and nsys are taken where they are; what is left out for want
# of one of them says so.  README.md beside this file tells what results mean.

set -u

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ROOT=$PWD
GPU=$ROOT/objs/gpu
WORK=${LLM_GPU_WORK:-$ROOT/objs/gpu-work}
DEVICE=${LLM_GPU_DEVICE:-cuda}
BEGAN=$SECONDS
LIMIT=${LLM_GPU_SECONDS:-570}

say() { printf '== %3d s  %s\n' $((SECONDS - BEGAN)) "$*"; }

die() { printf 'run.sh: %s\n' "$*" >&2; exit 1; }


# what the module and the backends agree on is in these

sources() {
    find engine kernels -name '*.[ch]' | LC_ALL=C sort | xargs cat | cksum
}

packed() { [ "$(cat "$GPU/nginx/sources" 2> /dev/null)" = "$(sources)" ]; }


# ---- here ----

# nginx, and of its libraries those that are not the C library's

pack_nginx() {
    local nginx lib

    nginx=$(PATH=$PATH:/usr/sbin command -v nginx) || die "no nginx here"
    mkdir -p "$GPU/nginx/lib"
    cp -L "$nginx" objs/ngx_http_llm_module.so "$GPU/nginx/"
    sources > "$GPU/nginx/sources"

    for lib in $(ldd "$nginx" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p'); do
        case ${lib##*/} in
            libc.so.*|libm.so.*|libdl.so.*|libpthread.so.*) ;;
            *) cp -L "$lib" "$GPU/nginx/lib/" ;;
        esac
    done
}


pack() {
    local lib

    ./build.sh build || die "it does not build"
    rm -rf "$GPU"
    mkdir -p "$GPU/deps/include/cjson" "$GPU/deps/lib"
    cp /usr/include/cjson/cJSON.h "$GPU/deps/include/cjson/"
    cp -r /usr/include/openssl "$GPU/deps/include/"
    cp -r "/usr/include/$(cc -print-multiarch)/openssl" "$GPU/deps/include/"
    cp /usr/include/pcre2.h "$GPU/deps/include/"

    for lib in libcjson.so.1 libpcre2-8.so.0 libcrypto.so.3; do
        cp -L "$(ldconfig -p | sed -n "s/.*\\b$lib .* => //p" | head -n 1)" \
            "$GPU/deps/lib/$lib"
    done

    pack_nginx

    if [ -d "${LLM_FIXTURES:-$ROOT/../shared/fixtures}/logits" ]; then
        mkdir -p "$GPU/fixtures"
        cp -r "${LLM_FIXTURES:-$ROOT/../shared/fixtures}/logits" \
            "$GPU/fixtures/"
        cp "${LLM_FIXTURES:-$ROOT/../shared/fixtures}/README.md" \
            "$GPU/fixtures/"
    fi

    du -sh "$GPU"
}


# ---- there ----

# the rest of the time, but no more than $1 seconds

limited() {
    local most=$1 left=$((LIMIT - (SECONDS - BEGAN)))

    shift
    [ "$left" -gt 5 ] || { say "no time left for: $*"; return 1; }
    timeout -k 5 $((left < most ? left : most)) "$@"
}


find_cublas() {
    local dir

    if [ -n "${CUBLAS_HOME:-}" ]; then
        return
    fi

    for dir in "$(dirname "$(dirname "$(readlink -f "$NVCC")")")" \
        /usr/local/cuda \
        $(python3 -c 'import site; print(*(p + "/nvidia/cu13"
            for p in site.getsitepackages()))' 2> /dev/null)
    do
        if [ -e "$dir/include/cublasLt.h" ]; then
            CUBLAS_HOME=$dir
            return
        fi
    done

    say "no cuBLAS (CUBLAS_HOME says where it is): our own kernels alone"
    CUBLAS_HOME=
}


# what is the same for a GPU and for the emulator

compile() {
    local libs="-lcjson -lpcre2-8 -lcrypto" flags="-O2 -g"

    if [ -d "$GPU/deps" ]; then
        flags="$flags -I$GPU/deps/include"
        libs="-L$GPU/deps/lib -l:libcjson.so.1 -l:libpcre2-8.so.0 -l:libcrypto.so.3 -Wl,-rpath,$GPU/deps/lib"
    fi

    libs="$libs -lpthread -ldl -lm"

    make -s -j "$(nproc)" -f engine/Makefile OBJS="$WORK" CFLAGS="$flags" \
        LIBS="$libs" lib cli load "$WORK/t/emu" "$WORK/t/emu_fp8" \
        "$WORK/t/emu_sample" "$WORK/t/emu_broken" "$WORK/t/emu_ahead" \
        "$WORK/t/emu_dense" "$WORK/t/emu_experts" "$WORK/t/emu_latent" \
        "$WORK/t/recurrent" "$WORK/t/logits" &&
    # shellcheck disable=SC2086
    cc -std=gnu11 $flags -D_GNU_SOURCE= -I. -o "$WORK/bench" \
        t/gpu/bench.c "$WORK/libllm.a" $libs || return 1

    if [ "$DEVICE" = emu ]; then
        make -s -j "$(nproc)" -f kernels/cuda/Makefile OBJS="$WORK" emu
    else
        compile_cuda
    fi
}


compile_cuda() {
    local lib='' arch blas

    NVCC=${CUDA_HOME:+$CUDA_HOME/bin/}nvcc
    command -v "$NVCC" > /dev/null || NVCC=/usr/local/cuda/bin/nvcc
    NVCC=$(command -v "$NVCC") || die "no nvcc"
    find_cublas

    if [ -n "$CUBLAS_HOME" ]; then
        for lib in "$CUBLAS_HOME"/{lib64,lib}/libcublasLt.so.*; do
            [ ! -e "$lib" ] || break
        done
    fi

    arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader |
        head -n 1 | tr -d .)
    blas=(-DPEAK_COPY_ONLY)

    if [ -e "$lib" ]; then
        blas=("-I$CUBLAS_HOME/include" "-L${lib%/*}" "-l:${lib##*/}"
            -Xlinker "-rpath=${lib%/*}")
    else
        lib=''
    fi

    make -s -j "$(nproc)" -f kernels/cuda/Makefile OBJS="$WORK" \
        NVCC="$NVCC" CUBLAS_INC="${lib:+$CUBLAS_HOME/include}" \
        CUBLAS_LIB="$lib" CUDA_ARCH="$arch" cuda &&
    "$NVCC" -O2 -arch="sm_$arch" -o "$WORK/peak" t/gpu/peak.cu "${blas[@]}" &&
    "$NVCC" -O2 -arch="sm_$arch" -shared -Xcompiler -fPIC \
        -o "$WORK/break.so" t/gpu/break.cu
}


# ---- the calls ----

# where a call's results go, and what it takes; LIMIT seconds are its own

results() { printf '%s/%s-%s' "$RESULTS" "$NAME" "$1"; }


begin() {
    mkdir -p "$WORK"

    if [ "$DEVICE" = emu ]; then
        RESULTS=${OUT:-$WORK/results}
        NAME=emulator
        SHAPE=tiny TYPE=bf16 BENCH="1,2 8"
        STREAMS="1 4" TOKENS=6 PROMPTS="16 48"
        export PROMPT=16 LLM_GPU_KV=64m LLM_BENCH_KV=67108864
    else
        command -v nvidia-smi > /dev/null || die "no NVIDIA driver here"
        NAME=$(nvidia-smi --query-gpu=name --format=csv,noheader |
            head -n 1 | tr 'A-Z ' 'a-z-')
        RESULTS=${OUT:-$ROOT/t/bench/results}
        SHAPE=qwen3-8b TYPE=bf16 BENCH="1,64,512 128,2048,8192"
        STREAMS="1 64 512" TOKENS=128 PROMPTS="128 2048 8192"
    fi

    NAME=$NAME-$(date -u +%Y-%m-%d)
    mkdir -p "$RESULTS"
    [ ! -d "$GPU/fixtures" ] || export LLM_FIXTURES=$GPU/fixtures
}


# what was built of these sources stays; another call goes on at once

build() {
    local all

    all=$(find engine kernels t/unit t/gpu -type f | LC_ALL=C sort |
        xargs cat | cksum)

    [ "$(cat "$WORK/built" 2> /dev/null)" != "$all" ] || return 0

    say "building"
    compile > "$(results build.txt)" 2>&1 ||
        { tail -n 20 "$(results build.txt)"; die "it does not build"; }
    printf '%s' "$all" > "$WORK/built"
    say "built"
}


bandwidth() {
    if [ "$DEVICE" = emu ]; then
        echo '{"device": "emulator"}' > "$(results peak.jsonl)"
    else
        limited 60 "$WORK/peak" > "$(results peak.jsonl)"
    fi && cat "$(results peak.jsonl)"
}


# the tables at once, each with its TAP; the verdict when the time is over

parity() {
    local seconds=${1:-30} name log i=0 pid pids=() ends=()
    local names="emu emu_fp8 emu_sample emu_broken emu_ahead emu_dense
        emu_experts emu_latent recurrent logits"

    for name in $names; do
        LLM_GPU_DEVICE=$DEVICE LLM_OBJS=$WORK timeout -k 5 "$seconds" \
            "$WORK/t/$name" > "$(results "$name.tap")" 2>&1 &
        pids+=($!)
    done

    for pid in "${pids[@]}"; do
        wait "$pid"
        ends+=($?)
    done

    for name in $names; do
        log=$(results "$name.tap")
        say "$name: $(grep -c '^ok' "$log") right, $(grep -c '^not ok' \
            "$log") wrong, $(ended "${ends[i]}" "$log" "$seconds")"
        grep '^not ok' "$log" | head -n 20
        i=$((i + 1))
    done | tee "$(results parity.txt)"

    ! grep -q '^not ok\|ended early' "$(results parity.txt)"
}


# how a table ended: exit status, TAP, seconds that it had

ended() {
    if [ "$1" = 0 ] || { [ "$1" = 1 ] && grep -q '^1\.\.' "$2"; }; then
        echo all of it
    elif [ "$1" = 124 ] || [ "$1" = 137 ]; then
        echo "cut after $3 s"
    else
        echo "ended early, exit status $1"
    fi
}


against_torch() {
    if ! python3 -c 'import numpy, torch, transformers' 2> /dev/null; then
        say "no PyTorch or transformers here"
        return
    fi

    limited 300 python3 t/gpu/parity.py "$WORK" --device "$DEVICE" \
        > "$(results torch.txt)" 2>&1
    set -- $?
    cat "$(results torch.txt)"

    return "$1"
}


# a model of this shape and type, made once

model() {
    FILE=$WORK/$1-$2.gguf
    [ -e "$FILE" ] || {
        limited 200 python3 t/bench/mkmodel.py "$1" "$2" "$FILE.new" &&
            mv "$FILE.new" "$FILE"
    }
}


plans() {
    model "$SHAPE" bf16 || return
    rm -f "$(results plans.jsonl)"
    LLM_BLAS_TABLE=$(results plans.jsonl) limited 300 "$WORK/bench" "$FILE" \
        "$DEVICE" "$WORK" 1 8 > "$WORK/out" 2>&1 ||
        { cat "$WORK/out"; return 1; }

    if [ -e "$(results plans.jsonl)" ]; then
        cat "$(results plans.jsonl)"
    else
        say "no table: there is no cuBLAS in this build"
    fi
}


speed() {
    local shape=${1:-$SHAPE} type=${2:-$TYPE} fp8=${3:-} to

    to=$(results "speed-$shape-$type${fp8:+-fp8-${fp8/,/-}}.jsonl")
    model "$shape" "$type" || return

    # shellcheck disable=SC2086
    LLM_BENCH_FP8=$fp8 limited 400 "$WORK/bench" "$FILE" "$DEVICE" "$WORK" \
        $BENCH > "$WORK/bench.out"
    set -- $?

    # what is there is kept, whatever became of the rest

    [ -e "$(results peak.jsonl)" ] || bandwidth > "$WORK/out"
    python3 t/gpu/shares.py "$(results peak.jsonl)" "$shape" "$type" \
        < "$WORK/bench.out" > "$to" || cp "$WORK/bench.out" "$to"
    cat "$to"

    return "$1"
}


over_http() {
    packed || { say "no pack of these sources"; return 1; }
    cp "$GPU/nginx/ngx_http_llm_module.so" "$WORK/"
    model "${1:-$SHAPE}" "${2:-$TYPE}" || return

    limited 400 t/gpu/http.sh "$FILE" "$DEVICE" "$WORK" "$STREAMS" \
        "$TOKENS" "$PROMPTS" | tee "$(results http.jsonl)"
    [ -s "$(results http.jsonl)" ]
}


by_kernel() {
    if [ "$DEVICE" = emu ] || ! command -v nsys > /dev/null; then
        say "no nsys here, or no GPU"
        return
    fi

    model "$SHAPE" "$TYPE" || return
    limited 200 nsys profile -o "$WORK/prof" --force-overwrite true \
        --cuda-graph-trace=node "$WORK/bench" "$FILE" "$DEVICE" "$WORK" \
        1,64 2048 > /dev/null 2>&1
    limited 100 nsys stats -r cuda_gpu_kern_sum "$WORK/prof.nsys-rep" \
        > "$(results kernels.txt)" 2>&1
    head -n 30 "$(results kernels.txt)"
}


# logits of the same prompt by two processes, each right after loading, and
# twice in each: what is not ordered behind the load shows here

twice() {
    local i

    for i in 1 2 3 4; do
        echo 11 12 13 14 15 16 17 18 | limited 60 "$WORK/llm" logits \
            models/demo.gguf --device "$DEVICE" --ctx 64 > "$WORK/twice.$i" 2>&1 || { cat "$WORK/twice.$i"
            return 1; }
    done

    cksum "$WORK"/twice.[1-4] | tee "$(results twice.txt)"
    [ "$(cksum < "$WORK/twice.1")" = "$(cksum < "$WORK/twice.2")" ] &&
        cmp "$WORK/twice.2" "$WORK/twice.3" &&
        cmp "$WORK/twice.3" "$WORK/twice.4"
}


sanitize() {
    local tool=${1:-memcheck} log

    log=$(results "sanitizer-$tool.txt")

    if [ "$DEVICE" = emu ] || ! command -v compute-sanitizer > /dev/null; then
        say "no compute-sanitizer here, or no GPU"
        return
    fi

    echo 1 2 3 4 5 6 7 8 | limited 500 compute-sanitizer --tool "$tool" \
        "$WORK/llm" logits models/demo.gguf --device "$DEVICE" --ctx 64 \
        > "$WORK/out" 2> "$log"
    grep -a 'SUMMARY' "$WORK/out" "$log" | sed 's/.*=========/==/'
}


# break.so, loaded before nginx, makes a kernel of the worker's write where
# there is nothing when the file LLM_GPU_BREAK comes to be

sticky() {
    if [ "$DEVICE" = emu ]; then
        say "the emulator's way back is t/http/device.t"
        return
    fi

    packed || { say "no pack of these sources"; return 1; }
    cp "$GPU/nginx/ngx_http_llm_module.so" "$WORK/"

    LLM_GPU_BREAK=$WORK/break limited 200 t/gpu/http.sh models/demo.gguf \
        "$DEVICE" "$WORK" 1 8 "" 2>&1 | tee "$(results sticky.txt)"
    grep 'context is lost\|is ready\|device_lost' \
        "$WORK/site/logs/error.log" | tee -a "$(results sticky.txt)"
    grep -q 'this worker is started again' "$(results sticky.txt)"
}


call() {
    local rc

    say "$*"
    "$@"
    rc=$?
    say "$1: exit status $rc"

    return "$rc"
}


every() {
    local rc=0 one

    for one in bandwidth parity twice plans speed against_torch over_http \
        sanitize by_kernel sticky
    do
        call "$one" || rc=1
    done

    return "$rc"
}


case ${1:-} in
    pack)      pack; exit ;;
    build)     begin; build; exit ;;
    bandwidth|parity|plans|speed|twice|sanitize|sticky)
               one=$1 ;;
    torch)     one=against_torch ;;
    http)      one=over_http ;;
    kernels)   one=by_kernel ;;
    all)       one=every ;;
    *)         die "usage: see the head of this file" ;;
esac

shift
begin
build
call "$one" "$@"
