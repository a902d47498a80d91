#!/bin/bash
#
# All that a GPU has to show, in one call of at most ten minutes:
#
#   t/gpu/run.sh pack      here: what the machine with the GPU may lack, to
#                          objs/gpu (carry this folder with the tree)
#   t/gpu/run.sh           there: build, parity, compute-sanitizer, figures;
#                          results to $OUT, or to t/bench/results
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
NAME=gpu-$(date -u +%Y-%m-%d)
BEGAN=$SECONDS
LIMIT=${LLM_GPU_SECONDS:-570}

say() { printf '== %3d s  %s\n' $((SECONDS - BEGAN)) "$*"; }

die() { printf 'run.sh: %s\n' "$*" >&2; exit 1; }


# ---- here ----

pack() {
    local lib

    mkdir -p "$GPU/deps/include/cjson" "$GPU/deps/lib"
    cp /usr/include/cjson/cJSON.h "$GPU/deps/include/cjson/"
    cp /usr/include/pcre2.h "$GPU/deps/include/"

    for lib in libcjson.so.1 libpcre2-8.so.0; do
        cp -L "$(ldconfig -p | sed -n "s/.*\\b$lib .* => //p" | head -n 1)" \
            "$GPU/deps/lib/$lib"
    done

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


compile() {
    local lib libs="-lcjson -lpcre2-8"

    NVCC=${CUDA_HOME:+$CUDA_HOME/bin/}nvcc
    command -v "$NVCC" > /dev/null || NVCC=/usr/local/cuda/bin/nvcc
    NVCC=$(command -v "$NVCC") || die "no nvcc"
    find_cublas

    for lib in "$CUBLAS_HOME"/{lib64,lib}/libcublasLt.so.*; do
        [ ! -e "$lib" ] || break
    done

    [ -e "$lib" ] || die "no libcublasLt.so in $CUBLAS_HOME"

    FLAGS="-O2 -g"

    if [ -d "$GPU/deps" ]; then
        FLAGS="$FLAGS -I$GPU/deps/include"
        libs="-L$GPU/deps/lib -l:libcjson.so.1 -l:libpcre2-8.so.0 -Wl,-rpath,$GPU/deps/lib"
    fi

    LIBS="$libs -lpthread -ldl -lm"
    ARCH=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader |
        head -n 1 | tr -d .)

    make -s -j "$(nproc)" -f engine/Makefile OBJS="$WORK" CFLAGS="$FLAGS" \
        LIBS="$LIBS" lib cli "$WORK/t/emu" "$WORK/t/logits" &&
    make -s -j "$(nproc)" -f kernels/cuda/Makefile OBJS="$WORK" \
        NVCC="$NVCC" CUBLAS_INC="$CUBLAS_HOME/include" CUBLAS_LIB="$lib" \
        CUDA_ARCH="$ARCH" cuda &&
    # shellcheck disable=SC2086
    cc -std=gnu11 $FLAGS -D_GNU_SOURCE= -I. -o "$WORK/bench" \
        t/gpu/bench.c "$WORK/libllm.a" $LIBS &&
    "$NVCC" -O2 -o "$WORK/peak" t/gpu/peak.cu
}


# a test's TAP: how many, and which failed

parity() {
    local log=$RESULTS/$NAME-$1.tap

    LLM_GPU_DEVICE=cuda LLM_OBJS=$WORK limited "$2" "$WORK/t/$1" \
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

    limited 120 python3 t/gpu/parity.py "$WORK" \
        > "$RESULTS/$NAME-torch.txt" 2>&1
    say "torch: exit status $?"
    cat "$RESULTS/$NAME-torch.txt"
}


sanitizer() {
    local tool log=$RESULTS/$NAME-sanitizer.txt

    if ! command -v compute-sanitizer > /dev/null; then
        say "compute-sanitizer: not here"
        return
    fi

    for tool in memcheck racecheck; do
        echo 1 2 3 4 5 6 7 8 | limited 60 compute-sanitizer --tool "$tool" \
            "$WORK/llm" logits models/demo.gguf --device cuda --ctx 64 \
            > "$WORK/out" 2> "$log.$tool"
        grep -a 'ERROR SUMMARY\|RACECHECK SUMMARY' "$WORK/out" \
            "$log.$tool" | sed 's/.*=========/==/'
        cat "$log.$tool" >> "$log"
        rm -f "$log.$tool"
    done
}


figures() {
    local type file

    for type in bf16 q4_k; do
        file=$WORK/qwen3-8b-$type.gguf
        limited 120 python3 t/bench/mkmodel.py qwen3-8b "$type" "$file" ||
            continue
        say "qwen3-8b $type"
        limited 150 "$WORK/bench" "$file" cuda "$WORK" |
            tee -a "$RESULTS/$NAME.jsonl"

        if command -v nsys > /dev/null && [ "$type" = bf16 ]; then
            limited 60 nsys profile -o "$WORK/prof" --force-overwrite true \
                --cuda-graph-trace=node "$WORK/bench" "$file" cuda "$WORK" \
                1,64 2048 > /dev/null 2>&1
            limited 30 nsys stats -r cuda_gpu_kern_sum "$WORK/prof.nsys-rep" \
                > "$RESULTS/$NAME-kernels.txt" 2>&1
            head -n 30 "$RESULTS/$NAME-kernels.txt"
        fi

        rm -f "$file"
    done
}


measure() {
    RESULTS=${OUT:-$ROOT/t/bench/results}
    mkdir -p "$RESULTS" "$WORK"

    command -v nvidia-smi > /dev/null || die "no NVIDIA driver here"
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv

    say "building"
    compile || die "it does not build"

    say "peak"
    "$WORK/peak" | tee "$RESULTS/$NAME.jsonl"

    [ ! -d "$GPU/fixtures" ] || export LLM_FIXTURES=$GPU/fixtures
    parity emu 90
    parity logits 90
    against_torch
    sanitizer
    figures
    say "done"
}


case ${1:-} in
    '')   measure ;;
    pack) pack ;;
    *)    die "unknown: $1 (nothing, or pack)" ;;
esac
