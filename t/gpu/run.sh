#!/bin/bash
#
# All that a GPU has to show, in one call of at most ten minutes:
#
#   t/gpu/run.sh pack      here: what the machine with the GPU may lack, to
#                          objs/gpu (carry this folder with the tree)
#   t/gpu/run.sh           there: build, parity, figures, compute-sanitizer;
#                          results to $OUT, or to t/bench/results
#
# LLM_GPU_DEVICE=emu runs all of it on the emulator, with small numbers, where
# there is no GPU: to try the script and what was packed.
#
# There nvcc, cuBLAS, gcc and make are taken as they are; Python with numpy,
# PyTorch and transformers, compute-sanitizer and nsys where they are.  What
# is left out for want of one of them says so.  README.md beside this file
# tells what the results mean.

set -u

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ROOT=$PWD
GPU=$ROOT/objs/gpu
WORK=${TMPDIR:-/tmp}/llm-gpu
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
    cp /usr/include/pcre2.h "$GPU/deps/include/"

    for lib in libcjson.so.1 libpcre2-8.so.0; do
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

    die "no cuBLAS: CUBLAS_HOME says where it is"
}


# what is the same for a GPU and for the emulator

compile() {
    local libs="-lcjson -lpcre2-8" flags="-O2 -g"

    if [ -d "$GPU/deps" ]; then
        flags="$flags -I$GPU/deps/include"
        libs="-L$GPU/deps/lib -l:libcjson.so.1 -l:libpcre2-8.so.0 -Wl,-rpath,$GPU/deps/lib"
    fi

    libs="$libs -lpthread -ldl -lm"

    make -s -j "$(nproc)" -f engine/Makefile OBJS="$WORK" CFLAGS="$flags" \
        LIBS="$libs" lib cli load "$WORK/t/emu" "$WORK/t/emu_fp8" \
        "$WORK/t/emu_sample" "$WORK/t/emu_ahead" "$WORK/t/logits" &&
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
    local lib arch

    NVCC=${CUDA_HOME:+$CUDA_HOME/bin/}nvcc
    command -v "$NVCC" > /dev/null || NVCC=/usr/local/cuda/bin/nvcc
    NVCC=$(command -v "$NVCC") || die "no nvcc"
    find_cublas

    for lib in "$CUBLAS_HOME"/{lib64,lib}/libcublasLt.so.*; do
        [ ! -e "$lib" ] || break
    done

    [ -e "$lib" ] || die "no libcublasLt.so in $CUBLAS_HOME"

    arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader |
        head -n 1 | tr -d .)

    make -s -j "$(nproc)" -f kernels/cuda/Makefile OBJS="$WORK" \
        NVCC="$NVCC" CUBLAS_INC="$CUBLAS_HOME/include" CUBLAS_LIB="$lib" \
        CUDA_ARCH="$arch" cuda &&
    "$NVCC" -O2 -arch="sm_$arch" -I"$CUBLAS_HOME/include" -o "$WORK/peak" \
        t/gpu/peak.cu -L"${lib%/*}" -l:"${lib##*/}" \
        -Xlinker -rpath="${lib%/*}"
}


# a test's TAP: how many, and which failed

parity() {
    local log=$RESULTS/$NAME-$1.tap

    LLM_GPU_DEVICE=$DEVICE LLM_OBJS=$WORK limited "$2" "$WORK/t/$1" \
        > "$log" 2>&1
    say "$1: $(grep -c '^ok' "$log") right, $(grep -c '^not ok' "$log")" \
        "wrong, $(tail -n 1 "$log")"
    grep '^not ok' "$log" | head -n 20
}


against_torch() {
    if ! python3 -c 'import numpy, torch, transformers' 2> /dev/null; then
        say "torch: no PyTorch or transformers here"
        return
    fi

    limited 120 python3 t/gpu/parity.py "$WORK" --device "$DEVICE" \
        > "$RESULTS/$NAME-torch.txt" 2>&1
    say "torch: exit status $?"
    cat "$RESULTS/$NAME-torch.txt"
}


sanitizer() {
    local tool log=$RESULTS/$NAME-sanitizer.txt

    if [ "$DEVICE" = emu ]; then
        say "compute-sanitizer: not for the emulator"
        return
    fi

    if ! command -v compute-sanitizer > /dev/null; then
        say "compute-sanitizer: not here"
        return
    fi

    for tool in memcheck racecheck; do
        echo 1 2 3 4 5 6 7 8 | limited 60 compute-sanitizer --tool "$tool" \
            "$WORK/llm" logits models/demo.gguf --device "$DEVICE" --ctx 64 \
            > "$WORK/out" 2> "$log.$tool"
        grep -a 'ERROR SUMMARY\|RACECHECK SUMMARY' "$WORK/out" \
            "$log.$tool" | sed 's/.*=========/==/'
        cat "$log.$tool" >> "$log"
        rm -f "$log.$tool"
    done
}


# the engine alone on a file of this shape and type; its share of the rates

alone() {
    local shape=$1 type=$2 file=$3

    LLM_BENCH_FP8=${4:-} limited 150 "$WORK/bench" "$file" "$DEVICE" \
        "$WORK" $BENCH > "$WORK/bench.out"
    python3 t/gpu/shares.py "$RESULTS/$NAME.jsonl" "$shape" "$type" \
        < "$WORK/bench.out" > "$WORK/shares.out"
    tee -a "$RESULTS/$NAME.jsonl" < "$WORK/shares.out"
}


over_http() {
    packed || { say "HTTP: no pack of these sources"; return; }
    cp "$GPU/nginx/ngx_http_llm_module.so" "$WORK/"

    say "HTTP"
    limited 150 t/gpu/http.sh "$1" "$DEVICE" "$WORK" "$STREAMS" "$TOKENS" \
        "$PROMPTS" | tee -a "$RESULTS/$NAME.jsonl"
}


by_kernel() {
    if [ "$DEVICE" = emu ] || ! command -v nsys > /dev/null; then
        say "time by kernel: no nsys here, or no GPU"
        return
    fi

    limited 60 nsys profile -o "$WORK/prof" --force-overwrite true \
        --cuda-graph-trace=node "$WORK/bench" "$1" "$DEVICE" "$WORK" \
        1,64 2048 > /dev/null 2>&1
    limited 30 nsys stats -r cuda_gpu_kern_sum "$WORK/prof.nsys-rep" \
        > "$RESULTS/$NAME-kernels.txt" 2>&1
    head -n 30 "$RESULTS/$NAME-kernels.txt"
}


figures() {
    local shape=$1 type=$2 file=$WORK/$1-$2.gguf

    limited 120 python3 t/bench/mkmodel.py "$shape" "$type" "$file" || return
    say "$shape $type"
    alone "$shape" "$type" "$file"

    if [ "$type" = bf16 ]; then
        over_http "$file"
        by_kernel "$file"
        say "$shape, weights in fp8, then KV too"
        alone "$shape" "$type" "$file" weights
        alone "$shape" "$type" "$file" weights,kv
    fi

    rm -f "$file"
}


measure() {
    local device shape

    mkdir -p "$WORK"

    if [ "$DEVICE" = emu ]; then
        device=emulator
        RESULTS=${OUT:-$WORK/results}
        shape=tiny
        PARITY=200
        BENCH="1,2 8"
        STREAMS="1 4" TOKENS=6 PROMPTS="16 48"
        export PROMPT=16 LLM_GPU_KV=64m LLM_BENCH_KV=67108864

    else
        command -v nvidia-smi > /dev/null || die "no NVIDIA driver here"
        nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv
        device=$(nvidia-smi --query-gpu=name --format=csv,noheader |
            head -n 1 | tr 'A-Z ' 'a-z-')
        RESULTS=${OUT:-$ROOT/t/bench/results}
        shape=qwen3-8b
        PARITY=90
        BENCH=""
        STREAMS="1 8 64 256 512" TOKENS=128 PROMPTS="128 2048 8192"
    fi

    mkdir -p "$RESULTS"
    NAME=$device-$(date -u +%Y-%m-%d)

    packed || say "objs/gpu is missing or of other sources: no HTTP figures"
    say "building"
    compile || die "it does not build"

    if [ "$DEVICE" = emu ]; then
        say "peak: the emulator has none"
        echo '{"device": "emulator"}' > "$RESULTS/$NAME.jsonl"
    else
        say "peak"
        "$WORK/peak" | tee "$RESULTS/$NAME.jsonl"
    fi

    [ ! -d "$GPU/fixtures" ] || export LLM_FIXTURES=$GPU/fixtures
    parity emu "$PARITY"
    parity emu_fp8 "$PARITY"
    parity emu_sample "$PARITY"
    parity emu_ahead "$PARITY"
    parity logits "$PARITY"
    against_torch
    figures "$shape" bf16
    sanitizer
    figures "$shape" q4_k
    say "done: $RESULTS/$NAME.jsonl and others"
}


case ${1:-} in
    '')   measure ;;
    pack) pack ;;
    *)    die "unknown: $1 (nothing, or pack)" ;;
esac
