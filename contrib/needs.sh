# What a build needs of the distribution, and how it is installed.  Sourced by
# build.sh, whose functions are used here.  With apt what is missing is
# installed; elsewhere the command that installs it is printed.

# lines of a package of Debian, and a file or command that shows that it is
# installed

BUILD_NEEDS='
gcc               gcc
g++               g++
make              make
libc6-dev         /usr/include/stdio.h
linux-libc-dev    /usr/include/linux/futex.h
libcjson-dev      /usr/include/cjson/cJSON.h
libpcre2-dev      /usr/include/pcre2.h
libssl-dev        /usr/include/openssl/evp.h
zlib1g-dev        /usr/include/zlib.h
'

# what decodes images and sound: without one of these its formats are refused

MEDIA_NEEDS='
libpng-dev        /usr/include/png.h
libjpeg-dev       /usr/include/jpeglib.h
libwebp-dev       /usr/include/webp/demux.h
libgif-dev        /usr/include/gif_lib.h
libsndfile1-dev   /usr/include/sndfile.h
'

# What decodes recordings of browsers and phones.  It brings dozens of packages:
# installed for tests and packages, and used by other builds if it is there.

FFMPEG_NEEDS='
libavformat-dev   ffmpeg-headers
libavcodec-dev    ffmpeg-headers
'

# with NGINX_SRC, the distribution's nginx is not needed

if [ -z "${NGINX_SRC:-}" ]; then
    BUILD_NEEDS="$BUILD_NEEDS
nginx             nginx
nginx-dev         nginx-src
"
fi

# with the sources of one before 1.21.5, the first PCRE is

if [ -n "${NGINX_SRC:-}" ]; then
    version=$(sed -n 's/^#define nginx_version *//p' \
                  "$NGINX_SRC/src/core/nginx.h" 2> /dev/null || :)

    if [ "${version:-1021005}" -lt 1021005 ]; then
        BUILD_NEEDS="$BUILD_NEEDS
libpcre3-dev      /usr/include/pcre.h
"
    fi
fi

# What Debian, Fedora and RHEL (dnf), and Alpine (apk) call the same thing,
# where the names differ; "-": there is no such package.

PACKAGE_NAMES='
g++               gcc-c++            g++
libc6-dev         glibc-devel        musl-dev
linux-libc-dev    kernel-headers     linux-headers
libcjson-dev      cjson-devel        cjson-dev
libpcre2-dev      pcre2-devel        pcre2-dev
libpcre3-dev      pcre-devel         pcre-dev
libssl-dev        openssl-devel      openssl-dev
zlib1g-dev        zlib-devel         zlib-dev
libpng-dev        libpng-devel       libpng-dev
libjpeg-dev       libjpeg-turbo-devel libjpeg-turbo-dev
libwebp-dev       libwebp-devel      libwebp-dev
libgif-dev        giflib-devel       giflib-dev
libsndfile1-dev   libsndfile-devel   libsndfile-dev
libavformat-dev   libavformat-free-devel ffmpeg-dev
libavcodec-dev    libavcodec-free-devel ffmpeg-dev
nginx-dev         nginx-mod-devel    -
perl              perl-Test-Harness  perl-utils
libcpanel-json-xs-perl  perl-Cpanel-JSON-XS  perl-cpanel-json-xs
libclang-rt-dev   compiler-rt        compiler-rt
python3-venv      python3            python3
nodejs            nodejs             nodejs
npm               npm                npm
'


has() {
    case $1 in
        /*)           [ -e "$1" ] ;;
        clang-fuzzer) command -v clang > /dev/null &&
                      [ -e "$(clang -print-runtime-dir)/libclang_rt.fuzzer-x86_64.a" ] ||
                      ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a > /dev/null 2>&1 ;;
        ffmpeg-headers)
                      ls /usr/include/libavformat/avformat.h \
                         /usr/include/*/libavformat/avformat.h \
                         > /dev/null 2>&1 ;;
        perl-json-xs) perl -MCpanel::JSON::XS -e 1 2> /dev/null ;;
        python-venv)  python3 -c 'import ensurepip, venv' 2> /dev/null ;;
        nginx)        command -v nginx > /dev/null || [ -x /usr/sbin/nginx ] ;;
        nginx-src)    [ -d "$(distribution_src)/src/core" ] ;;
        *)            command -v "$1" > /dev/null ;;
    esac
}


names() {
    local package probe all=''

    while read -r package probe; do
        all="$all${package:+${all:+, }$package}"
    done <<< "$1"

    printf '%s' "$all"
}


package_manager() {
    local manager

    for manager in apt-get dnf apk; do
        if command -v "$manager" > /dev/null; then
            echo "$manager"
            return
        fi
    done

    echo none
}


# names_for MANAGER PACKAGE...: what that manager calls these packages of Debian

names_for() {
    local manager=$1 package deb dnf apk name all=''

    shift

    for package in "$@"; do
        name=$package

        while read -r deb dnf apk; do
            [ "$deb" = "$package" ] || continue

            case $manager in
                dnf) name=$dnf ;;
                apk) name=$apk ;;
            esac
        done <<< "$PACKAGE_NAMES"

        # one package may have what Debian has in two

        case "$all " in
            *" $name "*) ;;
            *)           all="$all $name" ;;
        esac
    done

    printf '%s' "$all"
}


# how_to_install MANAGER PACKAGE...: the command, and what no package has

how_to_install() {
    local manager=$1 all command

    shift
    all=$(names_for "$manager" "$@")

    case $manager in
        apk) command='apk add' ;;
        *)   command="$manager install" ;;
    esac

    printf '%s%s' "$command" "${all// -/}"

    case "$all " in
        *' - '*) printf '%s' " (no package has nginx's source: unpack that" \
                     " of the version that \"nginx -v\" prints, and set" \
                     " NGINX_SRC to its folder)" ;;
    esac
}


# need LINES: installs what is missing of these lines, or says how to

need() {
    local missing='' package probe sudo='' manager

    while read -r package probe; do
        if [ -n "$package" ] && ! has "$probe"; then
            missing="$missing $package"
        fi
    done <<< "$1"

    [ -n "$missing" ] || return 0

    manager=$(package_manager)

    # set by tests and by packages' builds, which must not install anything

    # shellcheck disable=SC2086
    [ -z "${LLM_NO_INSTALL:-}" ] ||
        die "not installed:$(names_for "$manager" $missing)"

    # shellcheck disable=SC2086
    case $manager in
        apt-get) ;;
        none)
            die "not installed:$missing; one of these installs it:
  $(how_to_install apt-get $missing)
  $(how_to_install dnf $missing)
  $(how_to_install apk $missing)" ;;
        *)
            die "not installed:$missing; please run (as root):" \
                "$(how_to_install "$manager" $missing)" ;;
    esac

    if [ "$(id -u)" != 0 ]; then
        command -v sudo > /dev/null || die "please install (as root):$missing"
        sudo=sudo
    fi

    say "installing from the distribution:$missing"

    apt_get "$sudo" update -q
    # shellcheck disable=SC2086
    known_to_apt $missing
    # shellcheck disable=SC2086
    apt_get "$sudo" install -q -y --no-install-recommends $missing
}


# apt_get SUDO ARGUMENT...: runs apt-get, and waits while another one runs, as a
# new machine's own does for its first minutes: seconds between two tries, and
# of all.  apt's own DPkg::Lock::Timeout does not cover all of its locks.

APT_PAUSE=5
APT_WAIT=300

apt_get() {
    local sudo=$1 said status waited=0

    shift

    while true; do
        status=0
        # shellcheck disable=SC2086
        { said=$($sudo env LC_ALL=C DEBIAN_FRONTEND=noninteractive \
                     apt-get "$@" 2>&1 >&3); } 3>&1 || status=$?

        case $status:$said in
            0:*)    break ;;
            *'Could not get lock'*|*'Unable to lock'*) ;;
            *)      break ;;
        esac

        [ "$waited" -lt "$APT_WAIT" ] ||
            die "apt is in use since $APT_WAIT seconds; please try again" \
                "later: $said"

        [ "$waited" != 0 ] ||
            say "waiting for apt, which another process uses (at most" \
                "$APT_WAIT seconds)"

        sleep "$APT_PAUSE"
        waited=$((waited + APT_PAUSE))
    done

    [ -z "$said" ] || printf '%s\n' "$said" >&2

    return "$status"
}


# The same for what a build can do without.  In a subshell, which need() ends if
# it cannot install something.

need_media() {
    (need "$MEDIA_NEEDS") ||
        say "building without them: the formats of images and sound that they" \
            "decode are refused (objs/llm-media --formats lists the others)"
}


need_ffmpeg() {
    (need "$FFMPEG_NEEDS") ||
        say "building without FFmpeg: WebM, MP4, M4A and AAC files are refused"
}


# Older releases have no nginx-dev: then there is another way.

known_to_apt() {
    local package

    for package in "$@"; do
        if apt-cache show "$package" > /dev/null 2>&1; then
            continue
        fi

        [ "$package" != nginx-dev ] ||
            die "this distribution has no nginx-dev: unpack the source of the" \
                "nginx version that you use, and set NGINX_SRC to its folder"
        die "this distribution has no package $package"
    done
}
