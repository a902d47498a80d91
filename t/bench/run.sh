#!/bin/bash
#
# The engine's speed alone and over HTTP, and the machine's read bandwidth:
#
#   t/bench/run.sh [FILE.gguf] [SHAPE TYPE]
#
# The default file has the shape SHAPE, the type TYPE (qwen3-0.6b q8_0) and
# random weights; it is made in objs/bench.  objs/llm bench measures the read
# bandwidth, pp512, tg128 and 16 sequences at once; then nginx serves the file on
# a free port, and objs/load asks for LLM_BENCH_TOKENS tokens in 1, 4 and 16
# concurrent streams, the median of LLM_BENCH_REPS runs each.  LLAMA_BENCH=path
# also runs llama.cpp's llama-bench.

set -eu

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ROOT=$PWD
OBJS=${LLM_OBJS:-$ROOT/objs}
WORK=$OBJS/bench
TOKENS=${LLM_BENCH_TOKENS:-64}
REPS=${LLM_BENCH_REPS:-3}
SHAPE=${2:-qwen3-0.6b}
TYPE=${3:-q8_0}
MODEL=${1:+$(realpath "$1")}

. t/bench/site.sh

mkdir -p "$WORK/logs" "$WORK/temp"

if [ -z "$MODEL" ]; then
    MODEL=$WORK/$SHAPE-$TYPE.gguf
    [ -e "$MODEL" ] || t/bench/mkmodel.py "$SHAPE" "$TYPE" "$MODEL"
fi

echo "== $(basename "$MODEL"), the engine alone"
"$OBJS/llm" bench "$MODEL" --rows 16

if [ -n "${LLAMA_BENCH:-}" ]; then
    echo "== llama-bench"
    "$LLAMA_BENCH" -m "$MODEL" -t "$(nproc)" -p 512 -n 128 -r "$REPS"
fi


free_port() {
    perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(
        Listen => 1, LocalAddr => "127.0.0.1")->sockport'
}


serve() {
    PORT=$(free_port)

    site_conf "$OBJS/ngx_http_llm_module.so" "$PORT" \
        "$MODEL ctx=4096 parallel=16" > "$WORK/nginx.conf"

    PATH=$PATH:/usr/sbin nginx -p "$WORK/" -c "$WORK/nginx.conf" &
    NGINX_PID=$!

    for _ in $(seq 600); do
        curl -sf "http://127.0.0.1:$PORT/health" > /dev/null && return
        sleep 0.1
    done

    tail -n 3 "$WORK/logs/error.log" >&2
    exit 1
}


# prints the run with the median of tokens per second

median() {
    sort -t= -k2 -g | sed -n "$(( (REPS + 1) / 2 ))p" | cut -d' ' -f2-
}


serve
echo "== over HTTP: $TOKENS tokens a stream, median of $REPS runs"

for streams in 1 4 16; do
    for _ in $(seq "$REPS"); do
        out=$("$OBJS/load" -u "127.0.0.1:$PORT" -c "$streams" -o "$TOKENS")
        echo "k=$(sed 's/.* \([0-9.]*\) tok\/s.*/\1/' <<< "$out") $out"
    done | median
done
