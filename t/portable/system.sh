# Systems of Debian and Ubuntu to test in: made by debootstrap, copied, and
# thrown away.  Sourced by run.sh and chroot.sh, as root; WORK and MIRROR are the
# caller's.


# makes WORK/base-SUITE, which nothing is installed in.  debootstrap may be older
# than a suite of Ubuntu, which all have the same script

base_system() {
    local suite=$1 base=$WORK/base-$1 from=$MIRROR more=()

    [ ! -e "$base/etc/debian_version" ] || return 0

    case $suite in
        jammy|noble)
            from=${UBUNTU:-http://archive.ubuntu.com/ubuntu}
            more=(--components=main,universe
                  --keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg)
            set -- /usr/share/debootstrap/scripts/gutsy
            ;;
        *)
            set --
            ;;
    esac

    rm -rf --one-file-system "$base" "$base.new"
    debootstrap --variant=minbase "${more[@]}" "$suite" "$base.new" "$from" \
        "$@" > "$WORK/$suite.debootstrap" 2>&1
    mv "$base.new" "$base"
}


# copy_system BASE DIR: a copy of a base, with what this machine's network needs

copy_system() {
    local base=$1 dir=$2 file

    [ -d "$base" ] || base=$WORK/base-$base

    rm -rf --one-file-system "$dir"
    mkdir -p "$dir"
    cp -a "$base/." "$dir/"

    cp /etc/resolv.conf /etc/hosts "$dir/etc/"
    mkdir -p "$dir/etc/ssl/certs"
    cp /etc/ssl/certs/ca-certificates.crt "$dir/etc/ssl/certs/"

    # apt's, such as a proxy: not those of packages, nor those of a container,
    # which remove apt's caches

    for file in /etc/apt/apt.conf.d/*; do
        case $file in
            */docker*|*'/*') continue ;;
        esac

        dpkg -S "$file" > /dev/null 2>&1 ||
            cp "$file" "$dir/etc/apt/apt.conf.d/"
    done
}


# runs a command in a system, without the environment of this machine

inside() {
    # in a mount namespace, so that the mounts end with the command
    unshare --mount --fork --kill-child bash -eu -c '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        exec chroot "$1" env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
            PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            DEBIAN_FRONTEND=noninteractive \
            PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
            SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt \
            NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
            bash -eu -c "$2"' _ "$1" "$2"
}
