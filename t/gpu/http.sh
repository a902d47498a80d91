#!/bin/bash
#
# The speed over HTTP, as JSON lines:
#
#   t/gpu/http.sh FILE.gguf DEVICE WORK STREAMS TOKENS PROMPTS
#
# WORK holds the module, the device's shared object, and load (t/bench/load.c).
# nginx and its libraries are those of objs/gpu (run.sh pack).
#
# For each number in STREAMS ("1 8 64"), that many requests at once, each with a
# prompt of 128 tokens (PROMPT) and TOKENS generated; for each number in
# PROMPTS, the first token of five prompts of that many tokens, one after
# another.  All prompts begin differently, so none is found in the cache.
# LLM_GPU_KV is kv_cache=.
#
# LLM_GPU_BREAK=NAME: creates the file NAME, on which break.so in WORK breaks
# the GPU's context, and measures again when the model is served again.

set -u

[ $# = 6 ] || { echo "usage: see the head of $0" >&2; exit 1; }

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

MODEL=$(realpath "$1")
DEVICE=$2
WORK=$(cd "$3" && pwd)
STREAMS=$4
TOKENS=$5
PROMPTS=$6
PROMPT=${PROMPT:-128}
GPU=$PWD/objs/gpu/nginx
SITE=$WORK/site

. t/bench/site.sh

die() { printf 'http.sh: %s\n' "$*" >&2; exit 1; }

largest() { printf '%s\n' "$@" | sort -n | tail -n 1; }


# succeeds if /health answers 200; bash only, as there may be no curl

health() {
    local line=''

    { exec 3<> "/dev/tcp/127.0.0.1/$PORT"; } 2> /dev/null || return 1
    printf 'GET /health HTTP/1.0\r\n\r\n' >&3
    read -r -t 5 line <&3
    exec 3>&-

    [[ $line == *" 200 "* ]]
}


serve() {
    PORT=$(python3 -c 'import socket; s = socket.socket()
s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    CTX=$(($(largest $PROMPTS $PROMPT) + TOKENS + 16))
    SEATS=$(largest $STREAMS)

    mkdir -p "$SITE/logs" "$SITE/temp"
    site_conf "$WORK/ngx_http_llm_module.so" "$PORT" "$MODEL ctx=$CTX
        parallel=$SEATS batch=2048 device=$DEVICE
        ${LLM_GPU_KV:+kv_cache=$LLM_GPU_KV}" > "$SITE/nginx.conf"
    : > "$SITE/logs/error.log"

    LD_PRELOAD=${LLM_GPU_BREAK:+$WORK/break.so} \
        LD_LIBRARY_PATH=$GPU/lib:$GPU/../deps/lib:${LD_LIBRARY_PATH:-} \
        "$GPU/nginx" -p "$SITE/" -c "$SITE/nginx.conf" -e "$SITE/logs/error.log" &
    NGINX_PID=$!

    while ! health; do
        if ! kill -0 "$NGINX_PID" 2> /dev/null ||
            grep -q 'model "bench": ' <(grep '\[error\]' \
                "$SITE/logs/error.log")
        then
            tail -n 5 "$SITE/logs/error.log" >&2
            die "the model is not served"
        fi

        sleep 0.1
    done
}


# makes a body with a prompt of $1 tokens: the run's number, the request's
# number (filled in by load), and others

RUN=0

body() {
    RUN=$((RUN + 1))

    awk -v n="$1" -v run="$RUN" 'BEGIN {
        printf "{\"prompt\":[%d,%%d", run + 1000
        for (i = 2; i < n; i++) printf ",%d", 100 + (i * 37 + run) % 1500
        printf "],\"max_tokens\":%%o,\"stream\":true,\"temperature\":0,"
        printf "\"ignore_eos\":true,"
        printf "\"stream_options\":{\"include_usage\":true}}"
    }' > "$SITE/body"
}


# prints load's line, with the name and the prompt's length added in front

load() {
    local name=$1 prompt=$2

    shift 2
    body "$prompt"
    "$WORK/load" -u "127.0.0.1:$PORT" -p /v1/completions -b "$SITE/body" \
        -j "$@" | sed "s/^{/{\"bench\": \"$name\", \"prompt_tokens\": $prompt, /"
}


figures() {
    for n in $STREAMS; do
        load warm "$PROMPT" -c "$n" -o 4 > /dev/null    # captures the steps
        load http "$PROMPT" -c "$n" -o "$TOKENS"
    done

    for n in $PROMPTS; do
        load http-prompt "$n" -c 1 -n 5 -o 2
    done
}


serve
figures

if [ -n "${LLM_GPU_BREAK:-}" ]; then
    : > "$LLM_GPU_BREAK"
    load broken "$PROMPT" -c 1 -o 400

    for ((i = 0; i < 600; i++)); do
        ! grep -q 'started again' "$SITE/logs/error.log" || break
        sleep 0.1
    done

    for ((i = 0; i < 600; i++)); do
        ! health || break
        sleep 0.1
    done

    figures
fi
