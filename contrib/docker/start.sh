#!/bin/sh
#
# What a container runs: writes what depends on the environment into /tmp/nginx,
# then becomes nginx.
#
#   LLM_MODEL    the GGUF file; by default the only one in /models, or the demo
#                model if there is none
#   LLM_NAME     the model's name for clients; by default that of the file
#   LLM_OPTIONS  more parameters of llm_model, such as "ctx=8192 parallel=8"
#   LLM_KEYS     a file of API keys, made by "nginx-llm key"; without it anybody
#                who reaches the port can use the model
#
# For anything else, mount a configuration over /etc/nginx-llm/nginx.conf.
# Arguments are nginx's: "-t" checks the configuration.

set -eu

MODELS=${MODELS:-/models}
DEMO=${DEMO:-/usr/share/nginx-llm/models/demo.gguf}
DIR=${DIR:-/tmp/nginx}
HERE=$(dirname "$0")


die() { echo "start.sh: $*" >&2; exit 1; }


# prints a value in quotes, as nginx reads it

quoted() {
    case $1 in
        *[\"\\]*) die "there must be no quote and no backslash in: $1" ;;
    esac

    printf '"%s"' "$1"
}


if [ -z "${LLM_MODEL:-}" ]; then
    n=0

    for file in "$MODELS"/*.gguf; do
        [ -e "$file" ] || continue
        LLM_MODEL=$file
        n=$((n + 1))
    done

    [ "$n" -le 1 ] || die "$MODELS has $n models: set LLM_MODEL to one of them"
fi

if [ -z "${LLM_MODEL:-}" ]; then
    LLM_MODEL=$DEMO
    echo "start.sh: no model in $MODELS: serving the demo model" >&2
fi

[ -e "$LLM_MODEL" ] || die "LLM_MODEL: there is no file $LLM_MODEL"

name=${LLM_NAME:-$(basename "$LLM_MODEL" .gguf)}

mkdir -p "$DIR"

echo "llm_model $(quoted "$name") $(quoted "$LLM_MODEL") default" \
     "${LLM_OPTIONS:-};" > "$DIR/model.conf"

if [ -n "${LLM_KEYS:-}" ]; then
    echo "llm_api_keys $(quoted "$LLM_KEYS");" > "$DIR/keys.conf"
else
    : > "$DIR/keys.conf"
fi

if [ -e /etc/nginx/llm_page.conf ]; then
    echo 'include /etc/nginx/llm_page.conf;' > "$DIR/page.conf"
else
    : > "$DIR/page.conf"
fi

exec nginx -e stderr -c "$HERE/nginx.conf" -g 'daemon off;' "$@"
