# Runs a bench by its name: the file t/bench/NAME.pl or NAME.py, with the
# arguments after the name.  Sourced by build.sh, whose functions are used here.

bench_usage() {
    cat << END
usage: ./build.sh bench [NAME [ARGUMENT ...]]

  (none)    the engine's speed alone and over HTTP
  streams   10,000 concurrent streams on one worker
  bodies    times of /health while clients post large bodies
  keys      memory and times with files of 100,000 API keys
  chats     1 to 64 chats with one system prompt, with and without the prefix
            cache (LLAMA_SERVER=path: also llama-server)
  hop       what a proxy before llama-server costs (LLAMA_SERVER=path)
  mix       long prompts, long answers, and both (LLAMA_SERVER=path)
  overload  three times as many requests as can be served
  two       two models of one process, and a load of one during an answer of
            the other (BEFORE=path: compared with the objs/ of another build)
  beside    what others wait while images are decoded, or a long rerank is read
  gap       the longest gap of a stream while an image of another client is encoded
  flood     waiting time of a tenant while another one sends expensive schemas
  speculate what speculate=ngram gains, for text that repeats and for other text
  masks     JSON Schemas: how exact the masks are, and how fast
  agent     an agent's conversation, all but the last result from the cache
            (LLAMA_SERVER=path: also by a llama-server)
  shapes    shapes of real models with random weights (LLAMA_BENCH=path: also
            llama-bench; BEFORE=path: also the objs/llm of another build)
  media     transcriptions and encoders of images in real shapes
            (WHISPER_CLI=path: also whisper.cpp; TOWER_PEER=command: also an
            encoder; BEFORE=path: also the objs/llm of another build)
END
}


bench() {
    local name=${1:-}

    case $name in
        '')     set -- ;;
        help)   bench_usage; return ;;
        *[!a-z]*|mkmodel)
                die "unknown bench: $name (./build.sh bench help lists them)" ;;
        *)      [ -e "t/bench/$name.pl" ] || [ -e "t/bench/$name.py" ] ||
                    die "unknown bench: $name (./build.sh bench help lists them)"
                shift ;;
    esac

    aside build
    aside library "$OBJS" load

    export LLM_OBJS=$OBJS

    if [ -z "$name" ]; then
        exec t/bench/run.sh
    fi

    if [ "$name" = streams ]; then
        # built with a generator of tokens instead of a model
        export LLM_OBJS=$OBJS/synthetic

        LLM_TEST=1 aside library "$LLM_OBJS" lib load
        LLM_TEST=1 aside module "$LLM_OBJS"
    fi

    if [ -e "t/bench/$name.pl" ]; then
        exec perl -It/lib "t/bench/$name.pl" "$@"
    fi

    exec python3 "t/bench/$name.py" "$@"
}
