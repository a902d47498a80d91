#!/bin/bash
#
# t/portable/packages.sh OLD NEW: installs the packages in the folder OLD,
# serves the demo model, upgrades to those in the folder NEW, removes and purges
# them.  For a system that is thrown away, such as a debootstrap: LLM_SCRATCH=1
# says that it is one.  Needs apt's lists, iproute2 and curl.

set -eu

OLD=$1
NEW=$2
SAMPLE=/etc/nginx/conf.d/llm.conf
LINK=/etc/nginx/modules-enabled/50-mod-http-llm.conf
MADE=$(mktemp -d)

[ -n "${LLM_SCRATCH:-}" ] || { echo "not in a system that is used" >&2; exit 2; }

export DEBIAN_FRONTEND=noninteractive


die() { printf 'FAILED: %s\n' "$*"; exit 1; }

ok() { printf 'ok: %s\n' "$*"; }

apt() {
    apt-get -q -y -o Dpkg::Use-Pty=0 "$@" > "$MADE/apt" 2>&1 ||
        { cat "$MADE/apt"; die "$*"; }
}


# all files but what apt and dpkg keep for themselves, and caches

files() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp \
        -o -path /root -o -path /var/cache -o -path /var/log \
        -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path "$MADE" \) \
        -prune -o ! -name '__pycache__' ! -name '*.pyc' -print | sort
}


# starts nginx, runs a function, and stops nginx; without the network, as the
# port may be in use outside

serving() {
    export -f "$1" answers die ok apt
    export MADE NEW SAMPLE

    unshare --net bash -eu -c '
        ip link set lo up
        nginx
        for i in $(seq 300); do
            ! curl -sf http://127.0.0.1:8080/health > /dev/null || break
            sleep 0.1
        done
        "$1"
        kill -QUIT "$(cat /run/nginx.pid)"
        while [ -e /run/nginx.pid ]; do sleep 0.1; done' _ "$1"
}


answers() {
    local answer

    answer=$(curl -s http://127.0.0.1:8080/v1/chat/completions \
        -H 'Content-Type: application/json' \
        -d '{"messages": [{"role": "user", "content": "What is 2 + 2?"}],
             "temperature": 0}')

    case $answer in
        *'"content":"2 + 2 = 4."'*) ok "answers: 2 + 2 = 4." ;;
        *) tail -n 20 /var/log/nginx/error.log; die "no answer: $answer" ;;
    esac
}


upgrade() {
    answers
    apt install "$NEW"/*.deb
    nginx -t 2> "$MADE/check" || { cat "$MADE/check"; die 'upgraded: nginx -t'; }
    nginx -s reload
    ok 'upgraded while nginx serves'

    for i in $(seq 300); do
        [ "$(grep -c 'model "demo" is ready' /var/log/nginx/error.log)" -lt 2 ] ||
            break
        sleep 0.1
    done

    answers
}


# no service is started by packages in here, and only our port is used

printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod +x /usr/sbin/policy-rc.d

apt install --no-install-recommends nginx

# nginx's own folders, which it makes at its first start
unshare --net bash -eu -c 'ip link set lo up
    nginx
    nginx -s quit
    while [ -e /run/nginx.pid ]; do sleep 0.1; done'

rm -f /etc/nginx/sites-enabled/default
sed -i 's/^error_log .*;/error_log \/var\/log\/nginx\/error.log notice;/' \
    /etc/nginx/nginx.conf
nginx -t 2> "$MADE/check" || { cat "$MADE/check"; die 'nginx -t'; }

files > "$MADE/before"

# ---- installed ----

apt install "$OLD"/*.deb

[ -L "$LINK" ] || die 'the module is not enabled'
nginx -t 2> "$MADE/check" || { cat "$MADE/check"; die 'installed: nginx -t'; }
nginx-llm --version > "$MADE/version" || die 'nginx-llm does not run'
nginx-llm info /usr/share/nginx-llm/models/demo.gguf > /dev/null ||
    die 'nginx-llm info'
old=$(dpkg-query -W -f '${Version}' libnginx-mod-http-llm)
ok "installed, with $(dpkg-query -W -f '${Version}' nginx) of nginx"

# ---- the sample, without its comment signs; then upgraded ----

sed -i '/^#llm_model/,$s/^#//' "$SAMPLE"
cp "$SAMPLE" "$MADE/sample"
nginx -t 2> "$MADE/check" || { cat "$MADE/check"; die 'sample: nginx -t'; }

serving upgrade

new=$(dpkg-query -W -f '${Version}' libnginx-mod-http-llm)
dpkg --compare-versions "$new" gt "$old" || die "still $new after $old"
cmp -s "$SAMPLE" "$MADE/sample" || die 'the administrator'\''s file has changed'
ok 'the administrator'\''s file is kept'

# ---- removed, with the module's directives still there ----

apt remove libnginx-mod-http-llm nginx-llm
grep -q "^  $SAMPLE" "$MADE/apt" ||
    { cat "$MADE/apt"; die 'no word of directives that are left'; }
! grep -q '^  .*llm_page' "$MADE/apt" ||
    { cat "$MADE/apt"; die 'a file that nobody includes is named'; }
[ ! -e "$LINK" ] || die 'removed, and still enabled'
[ -e "$SAMPLE" ] || die 'removed, and so are the files of /etc'
ok "removed, and said that $SAMPLE has directives"

# ---- installed again, then purged ----

apt install "$NEW"/*.deb
[ -L "$LINK" ] || die 'installed again, and not enabled'
nginx -t 2> "$MADE/check" || { cat "$MADE/check"; die 'again: nginx -t'; }
cmp -s "$SAMPLE" "$MADE/sample" || die 'a removal has changed the file'
ok 'installed again, with the same file'

# ---- removed, with no directives: nothing is said ----

sed -i 's/^[^#]/#&/' "$SAMPLE"
apt remove libnginx-mod-http-llm nginx-llm
! grep -q 'nginx does not start' "$MADE/apt" ||
    { cat "$MADE/apt"; die 'a word of directives that are not there'; }
nginx -t 2> "$MADE/check" || { cat "$MADE/check"; die 'removed: nginx -t'; }
ok 'removed, and said nothing without a directive'

apt purge libnginx-mod-http-llm nginx-llm
apt autoremove --purge
nginx -t 2> "$MADE/check" || { cat "$MADE/check"; die 'purged: nginx -t'; }
files > "$MADE/after"
diff "$MADE/before" "$MADE/after" || die 'files are left, or have gone'
ok 'purged, without a file that is left'

rm -rf "$MADE"
