#!/bin/bash
#
# Tests and measurements on a GPU, in short calls, each useful alone: a machine
# with a GPU may be available for minutes only.
#
#   t/gpu/run.sh pack       here: collects what the machine with the GPU may
#                           lack in objs/gpu.tar.xz (carry it with the tree)
#   t/gpu/run.sh check      here: is that archive whole, and from these sources?
#                           (pack does this, too)
#
# on the machine with the GPU, three runs, and the calls that they consist of:
#
#   t/gpu/run.sh first      bandwidth bits parity twice speed
#   t/gpu/run.sh kernels    time by kernel (PyTorch's profiler), and counters (ncu)
#   t/gpu/run.sh rest       sanitize sticky; speed of Q4_K and fp8; http torch
#
#   t/gpu/run.sh build      builds what the others need; they call it
#                           themselves
#   t/gpu/run.sh bandwidth  copies, reads, and with cuBLAS matrix products
#   t/gpu/run.sh bits       how tensor cores add; cublasLt's products by shape
#   t/gpu/run.sh parity [S] unit tests of t/unit in parallel, and their results
#                           after at most S seconds (30)
#   t/gpu/run.sh torch      small models against PyTorch
#   t/gpu/run.sh speed [SHAPE TYPE [FP8]]
#                           cublasLt against our kernels (shape, rows, the same
#                           bits or not, milliseconds of both), then tokens a
#                           second at 1, 64 and 512 streams, and first tokens
#                           of prompts of 128, 2048 and 8192
#   t/gpu/run.sh http [SHAPE TYPE]
#                           the same, served by nginx
#   t/gpu/run.sh twice      the same prompt by four processes, right after
#                           loading
#   t/gpu/run.sh sanitize [TOOL]
#                           compute-sanitizer: memcheck (racecheck, ...)
#   t/gpu/run.sh sticky     a sticky error under a served model, and recovery
#   t/gpu/run.sh CALL ARGUMENT -- CALL -- ...
#                           several calls; after a failed one the others go on
#
# Each call writes files of its own to $OUT, in one archive a run, or to
# t/gpu/results, and its exit status says whether it succeeded.
# LLM_GPU_DEVICE=emu: on the emulator, with small numbers, without a GPU.
# LLM_GPU_SECONDS: most seconds of all calls together (420).
#
# Where there is no cuBLAS, programs without it are taken from the archive, and
# our own kernels compute all products.  Python, PyTorch and
# compute-sanitizer are used if they are installed; a call that lacks one says
# what it leaves out.  t/gpu/README.md explains the results.

set -u

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ROOT=$PWD
GPU=${LLM_GPU_PACK:-$ROOT/objs/gpu}
WORK=${LLM_GPU_WORK:-$ROOT/objs/gpu-work}
DEVICE=${LLM_GPU_DEVICE:-cuda}
BEGAN=$SECONDS
LIMIT=${LLM_GPU_SECONDS:-420}

say() { printf '== %3d s  %s\n' $((SECONDS - BEGAN)) "$*"; }

die() { printf 'run.sh: %s\n' "$*" >&2; exit 1; }

. kernels/cuda/toolkit.sh
. t/gpu/build.sh
. t/gpu/calls.sh


begin() {
    unpack
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
        RESULTS=${OUT:-$ROOT/t/gpu/results}
        SHAPE=qwen3-8b TYPE=bf16 BENCH="1,64,512 128,2048,8192"
        STREAMS="1 64 512" TOKENS=128 PROMPTS="128 2048 8192"
        blas_there
    fi

    NAME=$NAME-$(date -u +%Y-%m-%d)
    mkdir -p "$RESULTS"
    [ ! -d "$GPU/fixtures" ] || export LLM_FIXTURES=$GPU/fixtures
}


# prints the function of a call, and its arguments

function_of() {
    local name=${1:-}

    shift

    case $name in
        torch)   name=against_torch ;;
        http)    name=over_http ;;
        kernels) name=by_kernel ;;
        first|rest|bandwidth|bits|parity|speed|twice|sanitize|sticky) ;;
        *)       die "usage: see the head of this file" ;;
    esac

    printf '%s' "$name $*"
}


[ $# != 0 ] || die "usage: see the head of this file"

case $1 in
    pack)  pack; exit ;;
    check) check; exit ;;
    build) begin; build; exit ;;
esac

wanted=()
one=

for word in "$@" --; do
    if [ "$word" = -- ]; then
        # shellcheck disable=SC2086
        name=$(function_of $one) || exit 1
        wanted+=("$name")
        one=
    else
        one="$one $word"
    fi
done

begin
build
calls "${wanted[@]}"
rc=$?
archive "$1"
exit "$rc"
