# Makes Debian packages of what was built.  Sourced by build.sh, whose functions
# are used here.  contrib/debian has what a package's source has in debian/,
# but for the changelog, which is made here.

DEB_NEEDS='
debhelper         dh
dpkg-dev          dpkg-buildpackage
'


# The version of the packages.  Between two versions of ours it grows with the
# commits, and on a newer Debian it is greater, so that apt always upgrades.

deb_version() {
    local version system commit

    version=$(sed -n 's/^#define LLM_VERSION  "\(.*\)"/\1/p' \
        engine/base/version.h)

    # a release has no changes of a next one

    if grep -qx '## Next' CHANGELOG.md; then
        if commit=$(TZ=UTC git log -1 --format=%cd.%h \
            --date=format-local:%Y%m%d%H%M 2> /dev/null)
        then
            version=$version+git$commit
        else
            version=$version+next
        fi
    fi

    # testing and sid have a name, but no number

    system=$(. /etc/os-release; case ${ID:-}:${VERSION_ID:-} in
        debian:?*) echo "~deb$VERSION_ID" ;;
        *:?*)      echo "~$ID$VERSION_ID" ;;
        *)         echo "${VERSION_CODENAME:+~$VERSION_CODENAME}" ;;
    esac)

    echo "$version-1$system"
}


# the time of the sources, so that the same sources make the same packages

deb_time() {
    git log -1 --format=%ct 2> /dev/null || stat -c %Y CHANGELOG.md
}


# A tree of what the packages have, with a link to what was built.

deb_tree() {
    local tree=$1 version=$2 entry maintainer

    maintainer="${DEBFULLNAME:-the nginx-llm authors}"
    maintainer="$maintainer <${DEBEMAIL:-nginx-llm@packages.invalid}>"

    rm -rf "$tree"
    mkdir -p "$tree"

    for entry in README.md CHANGELOG.md conf contrib docs models web \
                 engine/base/version.h
    do
        [ ! -e "$entry" ] || cp -r --parents "$entry" "$tree/"
    done

    ln -s "$OBJS" "$tree/objs"

    cp -r contrib/debian "$tree/"
    sed -i "s/@MAINTAINER@/$maintainer/" "$tree/debian/control"

    cat > "$tree/debian/changelog" << END
nginx-llm ($version) unstable; urgency=medium

  * Made by "./build.sh deb"; changelog.gz says what is new in nginx-llm.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END
}


# DEB_DIR is where the packages are put, DEB_VERSION their version.

deb() {
    local dir=${DEB_DIR:-$OBJS/deb} version

    [ -z "${NGINX_SRC:-}" ] || die "packages are for the distribution's" \
        "nginx: unset NGINX_SRC"

    need "$BUILD_NEEDS$DEB_NEEDS"
    need_ffmpeg

    aside module_and_command

    version=${DEB_VERSION:-$(deb_version)}
    export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(deb_time)}

    mkdir -p "$dir"
    rm -f "$dir"/*.deb "$dir"/*.buildinfo "$dir"/*.changes
    deb_tree "$dir/source" "$version"

    # -d: need() has looked for what a build needs, which is not build-essential

    if ! (cd "$dir/source" &&
          LLM_BUILT=1 DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS:-}" \
          dpkg-buildpackage -b -d -us -uc) > "$dir/build.log" 2>&1
    then
        tail -n 20 "$dir/build.log" >&2
        die "the packages could not be made, see $dir/build.log"
    fi

    rm -rf "$dir/source" "$dir/build.log"

    say "the packages are made; to install them:" \
        "sudo apt install$(printf ' %s' "$dir"/*.deb)"
}
