# Read by run.sh: the calls.  Each writes its results as it goes, and its exit
# status says whether it succeeded.

# prints the path of a file of results

results() { printf '%s/%s-%s' "$RESULTS" "$NAME" "$1"; }


# limited SECONDS COMMAND: runs a command for at most SECONDS, and at most for
# what is left of LIMIT, the seconds of all calls together

limited() {
    local most=$1 left=$((LIMIT - (SECONDS - BEGAN)))

    shift
    [ "$left" -gt 5 ] || { say "no time left for: $*"; return 1; }
    timeout -k 5 $((left < most ? left : most)) "$@"
}


# within PERCENT CALL...: a call for at most a part of LIMIT, so that those
# behind it get some of the time, too

within() {
    local most=$((SECONDS - BEGAN + LIMIT * $1 / 100))
    local LIMIT=$((most < LIMIT ? most : LIMIT))

    shift
    call "$@"
}


without() { say "left out: no $1 here"; }


bandwidth() {
    if [ "$DEVICE" = emu ]; then
        echo '{"device": "emulator"}' > "$(results peak.jsonl)"
    else
        limited 60 "$WORK/peak" > "$(results peak.jsonl)"
    fi && cat "$(results peak.jsonl)"
}


bits() {
    [ "$DEVICE" != emu ] || { without GPU; return 0; }

    limited 60 "$WORK/bits" "$(results bits.bin)" > "$(results bits.jsonl)"
    set -- $?
    grep instruction "$(results bits.jsonl)"
    grep -v instruction "$(results bits.jsonl)" |
        sed 's/"candidates": .*\], //'

    return "$1"
}


# runs the unit tests in TABLES at once, each with a TAP file of its own; prints
# their results when all have ended or the time is over

parity() {
    local seconds=${1:-30} name log i=0 pid pids=() ends=()

    for name in $TABLES; do
        LLM_GPU_DEVICE=$DEVICE LLM_OBJS=$WORK timeout -k 5 "$seconds" \
            "$WORK/t/$name" > "$(results "$name.tap")" 2>&1 &
        pids+=($!)
    done

    for pid in "${pids[@]}"; do
        wait "$pid"
        ends+=($?)
    done

    for name in $TABLES; do
        log=$(results "$name.tap")
        say "$name: $(grep -c '^ok' "$log") right, $(grep -c '^not ok' \
            "$log") wrong, $(ended "${ends[i]}" "$log" "$seconds")"
        grep '^not ok' "$log" | head -n 20
        i=$((i + 1))
    done | tee "$(results parity.txt)"

    ! grep -q '^not ok\|ended early' "$(results parity.txt)"
}


# ended STATUS TAP SECONDS: prints how a unit test ended, which had SECONDS

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
        without 'PyTorch or transformers'
        return 0
    fi

    limited "${1:-300}" python3 t/gpu/parity.py "$WORK" --device "$DEVICE" \
        > "$(results torch.txt)" 2>&1
    set -- $?
    cat "$(results torch.txt)"

    return "$1"
}


# model SHAPE TYPE: sets FILE to a model, made at the first call, in memory if
# it fits; `making` waits for one that is made in the background

declare -A MAKERS=() FILES=()

model() {
    local left

    model_file "$1" "$2"

    if [ -n "${MAKERS[$FILE]:-}" ]; then
        left=$((LIMIT - (SECONDS - BEGAN)))
        timeout $((left > 1 ? left : 1)) tail -s 0.2 -f /dev/null \
            --pid "${MAKERS[$FILE]}" ||
            { say "no time left: $FILE is not made yet"; return 1; }
    fi

    [ -e "$FILE" ] || make_model "$1" "$2"
}


model_file() {
    local dir=$WORK need=${MODEL_GB:-20} name=$1-$2${LAYERS:+-$LAYERS}.gguf

    FILE=${FILES[$name]:-}          # there is less room while it is made
    [ -z "$FILE" ] || return 0

    if [ -w /dev/shm ] && [ "$DEVICE" != emu ] && {
        [ -e "/dev/shm/$name" ] ||
        [ "$(df -BG --output=avail /dev/shm | tail -n 1 | tr -dc 0-9)" \
            -gt "$need" ]; }
    then
        dir=/dev/shm
    fi

    FILE=$dir/$name
    FILES[$name]=$FILE
}


make_model() {
    limited 200 python3 t/bench/mkmodel.py "$1" "$2" "$FILE.new" \
        ${LAYERS:+--layers "$LAYERS"} && mv "$FILE.new" "$FILE"
}


# makes a model while other calls use the GPU

making() {
    model_file "$1" "$2"
    [ ! -e "$FILE" ] || return 0
    make_model "$1" "$2" > "$WORK/model-$2.out" 2>&1 &
    MAKERS[$FILE]=$!
}


# plans are written while the model is loaded; then its speed is measured

speed() {
    local shape=${1:-$SHAPE} type=${2:-$TYPE} fp8=${3:-} to table

    to=$(results "speed-$shape-$type${fp8:+-fp8-${fp8/,/-}}.jsonl")
    model "$shape" "$type" || return

    table=$(results "plans-$shape-$type${fp8:+-fp8-${fp8/,/-}}.jsonl")
    rm -f "$table"

    # shellcheck disable=SC2086
    LLM_BLAS_TABLE=$table LLM_BENCH_FP8=$fp8 limited 400 "$WORK/bench" "$FILE" "$DEVICE" "$WORK" \
        $BENCH > "$WORK/bench.out"
    set -- $?

    [ -e "$(results peak.jsonl)" ] || bandwidth > "$WORK/out"
    python3 t/gpu/shares.py "$(results peak.jsonl)" "$shape" "$type" \
        < "$WORK/bench.out" > "$to" || cp "$WORK/bench.out" "$to"
    cat "$to"

    return "$1"
}


over_http() {
    packed || { say "no objs/gpu.tar.xz of these sources"; return 1; }
    cp "$GPU/nginx/ngx_http_llm_module.so" "$WORK/"
    model "${1:-$SHAPE}" "${2:-$TYPE}" || return

    limited 400 t/gpu/http.sh "$FILE" "$DEVICE" "$WORK" "$STREAMS" \
        "$TOKENS" "$PROMPTS" | tee "$(results http.jsonl)"
    [ -s "$(results http.jsonl)" ]
}


# the time of each kernel, on a model with the shape's widths and two layers

by_kernel() {
    local LAYERS=2 streams prompts

    if [ "$DEVICE" = emu ] ||
        ! python3 -c 'import torch.profiler' 2> /dev/null
    then
        without 'PyTorch, or no GPU'
        return 0
    fi

    model "${1:-$SHAPE}" "${2:-$TYPE}" || return
    read -r streams prompts <<< "$BENCH"
    LLM_BENCH_TIMES=8 LLM_BENCH_KV=8589934592 limited 120 \
        python3 t/gpu/kernels.py "$WORK/bench.so" "$FILE" "$DEVICE" "$WORK" \
        "$streams" "$prompts" > "$(results kernels.txt)" 2>&1
    set -- $? "${1:-$SHAPE}-${2:-$TYPE}"
    cat "$(results kernels.txt)"

    # model.py knows this shape alone

    if [ "$2" = qwen3-8b-bf16 ] && [ -e "$(results peak.jsonl)" ]; then
        python3 t/gpu/model.py --beside "$(results kernels.txt)" \
            --peak "$(results peak.jsonl)" | tee "$(results predicted.txt)"
    fi

    counters

    return "$1"
}


# ncu's counters of the five kernels of ours that took the most, by kernels.txt:
# time, bytes of memory, and how busy the tensor cores were

COUNTERS=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum
COUNTERS+=,sm__inst_executed_pipe_tensor.sum
COUNTERS+=,sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active

counters() {
    local names to

    if ! command -v ncu > /dev/null; then
        without ncu
        return 0
    fi

    to=$(results counters.csv)
    names=$(sed -n 's/^ *\([0-9.]*\) % .*\(llm_k_[a-z0-9_]*\).*/\1 \2/p' \
        "$(results kernels.txt)" | sort -rn |
        awk '!seen[$2]++ { print $2 }' | head -n 5 | paste -sd '|')

    # shellcheck disable=SC2086
    limited 100 ncu --csv --kernel-name "regex:^($names)\$" \
        --launch-count 200 --metrics "$COUNTERS" \
        "$WORK/bench" "$FILE" "$DEVICE" "$WORK" $BENCH > "$to" 2>&1
    set -- $?

    if grep -q ERR_NVGPUCTRPERM "$to"; then
        rm -f "$to"
        say "left out: no right to read the GPU's counters"
        return 0
    fi

    return "$1"
}


# logits of the same prompt by four processes, each right after loading: they
# would differ if work did not wait for the load

twice() {
    local i

    for i in 1 2 3 4; do
        echo 11 12 13 14 15 16 17 18 | limited 60 "$WORK/llm" logits \
            models/demo.gguf --device "$DEVICE" --ctx 64 \
            > "$WORK/twice.$i" 2>&1 || { cat "$WORK/twice.$i"; return 1; }
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
        without 'compute-sanitizer, or no GPU'
        return 0
    fi

    echo 1 2 3 4 5 6 7 8 | limited "${2:-500}" compute-sanitizer \
        --tool "$tool" "$WORK/llm" logits models/demo.gguf \
        --device "$DEVICE" --ctx 64 > "$WORK/out" 2> "$log"
    cat "$WORK/out" >> "$log"
    grep -a 'ERROR SUMMARY: 0 errors\|RACECHECK SUMMARY: 0 hazards' "$log"
}


# break.so makes a kernel of the worker write to an invalid address when the
# file LLM_GPU_BREAK is created

sticky() {
    [ "$DEVICE" != emu ] ||
        { say "left out: t/http/device.t tests it on the emulator"; return 0; }

    packed || { say "no objs/gpu.tar.xz of these sources"; return 1; }
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


# several calls; after a failed one the others go on

calls() {
    local rc=0 one

    for one; do
        # shellcheck disable=SC2086
        call $one || rc=1
    done

    return "$rc"
}


first() {
    local rc=0

    making "$SHAPE" "$TYPE"
    calls bandwidth bits "parity 60" twice || rc=1
    call speed || rc=1

    return "$rc"
}


# what only a GPU shows comes first; most calls need less than their part

rest() {
    local rc=0

    making "$SHAPE" q4_k
    making "$SHAPE" bf16

    within 15 sanitize racecheck || rc=1
    within 15 sanitize memcheck || rc=1
    within 13 sticky || rc=1
    within 22 speed "$SHAPE" q4_k || rc=1
    within 22 speed "$SHAPE" bf16 weights,kv || rc=1
    within 25 over_http || rc=1
    call against_torch || rc=1

    return "$rc"
}


# packs a run's results in one archive in OUT, because there may be many

archive() {
    [ -n "${OUT:-}" ] && compgen -G "$RESULTS/$NAME-*" > /dev/null || return 0

    (cd "$RESULTS" && tar -czf "results-$1.tar.gz" "$NAME"-* &&
        rm -f "$NAME"-*)
}
