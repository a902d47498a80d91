# Configures an nginx source tree, builds the module for it, and installs it in
# the system's nginx.  Sourced by build.sh, whose functions are used here.

# Debian's nginx has a patched connection structure: a module for it must be
# built with the headers of Debian's source package.
DEBIAN_SRC=/usr/share/nginx/src


# Prints the folder of the source that the distribution has a package of:
# Debian's nginx-dev, or nginx-mod-devel of Fedora and RHEL.

distribution_src() {
    local dir

    for dir in "$DEBIAN_SRC" /usr/src/nginx-[0-9]*; do
        if [ -d "$dir/src/core" ]; then
            echo "$dir"
            return
        fi
    done

    echo "$DEBIAN_SRC"
}


# Sets NGX_CONF_FLAGS: Debian's flags for Debian's nginx, or else only the flags
# that a module needs.

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


# Runs nginx's configure in a folder of links to the source tree, as it writes a
# Makefile to its folder, and the tree must not change.

configure() {
    local objs=$1 links=$1/nginx-src entry stamp

    nginx_flags "$objs"

    stamp="$NGINX_SRC $(stat -c %Y "$NGINX_SRC/src/core/nginx.h" config config.make | tr '\n' ' ') $(echo http/*/*.[ch]) ${NGX_CONF_FLAGS[*]}"

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

    # they are in NGX_CONF_FLAGS; nginx's configure would add them again

    if ! (unset CPPFLAGS CFLAGS LDFLAGS
          cd "$links" && LLM_OBJS=$objs $entry "${NGX_CONF_FLAGS[@]}") \
        > "$objs/configure.log" 2>&1
    then
        tail -n 20 "$objs/configure.log" >&2
        die "nginx's configure failed, see $objs/configure.log"
    fi

    printf '%s' "$stamp" > "$objs/nginx.stamp"
}


# dies if the folder is no source tree of nginx

check_source() {
    [ -d "$1/src/core" ] || die "no nginx source in $1, which has no src/core" \
        "(NGINX_SRC is the folder that nginx's source was unpacked to)"
}


module() {
    local objs=$1

    NGINX_SRC=${NGINX_SRC:-$(distribution_src)}
    check_source "$NGINX_SRC"
    NGINX_SRC=$(cd "$NGINX_SRC" && pwd)

    configure "$objs"

    compile 'the module' -C "$objs/nginx-src" -f "$objs/nginx/Makefile" modules

    cmp -s "$objs/nginx/ngx_http_llm_module.so" \
           "$objs/ngx_http_llm_module.so" ||
        install -m 644 "$objs/nginx/ngx_http_llm_module.so" "$objs/"
}


# prints a path of the system's nginx; argument: prefix, modules-path or
# conf-path

nginx_place() {
    PATH=$PATH:/usr/sbin nginx -V 2>&1 |
        sed -n "s/.*--$1=\([^ ]*\).*/\1/p"
}


# installs objs/llm as nginx-llm, as another tool is called llm

install_all() {
    local dest=${DESTDIR:-} modules conf prefix

    aside build

    prefix=$(nginx_place prefix)
    prefix=${prefix:-/usr/local/nginx}
    modules=$(nginx_place modules-path)
    conf=$(nginx_place conf-path)
    [ -n "$modules" ] || die "nginx -V has no --modules-path"
    [ -n "$conf" ] || die "nginx -V has no --conf-path"
    conf=${conf%/*}

    install -d "$dest$modules" "$dest$conf" "$dest/usr/local/bin"
    install -m 644 "$OBJS/ngx_http_llm_module.so" "$dest$modules/"

    if [ -e "$OBJS/llm_cuda.so" ]; then
        install -m 644 "$OBJS/llm_cuda.so" "$dest$modules/"
    fi

    # the module looks for them beside itself, the command in ../libexec

    install -m 755 "$OBJS/llm-media" "$OBJS/llm-media-ffmpeg" "$dest$modules/"
    install -d "$dest/usr/local/libexec/nginx-llm"
    install -m 755 "$OBJS/llm-media" "$OBJS/llm-media-ffmpeg" \
        "$dest/usr/local/libexec/nginx-llm/"

    install -m 755 "$OBJS/llm" "$dest/usr/local/bin/nginx-llm"
    install_conf conf/llm_errors.conf "$dest$conf/llm_errors.conf"
    install_conf conf/llm_page.conf "$dest$conf/llm_page.conf"

    # where llm_page.conf looks for the page's files

    rm -rf "$dest$prefix/llm_page"
    install -d "$dest$prefix/llm_page"
    install -m 644 web/* "$dest$prefix/llm_page/"

    if [ -d "$dest$conf/modules-enabled" ]; then
        echo 'load_module modules/ngx_http_llm_module.so;' \
            > "$dest$conf/modules-enabled/50-mod-http-llm.conf"
        say "enabled in $conf/modules-enabled; now add an llm_model" \
            "(docs/directives.md) and reload nginx"
    else
        say "installed; put 'load_module modules/ngx_http_llm_module.so;'" \
            "first in nginx.conf"
    fi
}


# installs a file, unless the existing one was changed

install_conf() {
    if [ ! -e "$2" ]; then
        install -m 644 "$1" "$2"
    elif ! cmp -s "$1" "$2"; then
        say "$2 stays as it is; it differs from $1"
    fi
}
