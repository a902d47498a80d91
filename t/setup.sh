# Installs what the tests need in addition to the compiler: packages of the
# distribution, and pinned programs and libraries in .deps, which git ignores.
# Sourced by build.sh, whose functions are used here.  Nothing is downloaded if
# nothing is missing.  If something cannot be installed, a message says so, and
# its tests are skipped.

TEST_NEEDS='
perl              prove
libcpanel-json-xs-perl  perl-json-xs
clang             clang
libclang-rt-dev   clang-fuzzer
python3           python3
python3-venv      python-venv
nodejs            node
npm               npm
curl              curl
openssl           openssl
git               git
'


# Installs the packages of a lock file, without running scripts of packages.
# Not by "npm ci", which also wants the optional packages of other systems.

node_packages() {
    local from=$1 to=$2

    ! cmp -s "$from/package-lock.json" "$to/package-lock.json" || return 0

    rm -rf "$to" "$to.new" &&
        mkdir -p "$to.new" &&
        cp "$from/package.json" "$from/package-lock.json" "$to.new/" &&
        (cd "$to.new" && npm install --silent --no-save --no-audit \
            --no-fund --ignore-scripts --omit=optional \
            --cache "$TMPDIR/npm") &&
        rm -rf "$TMPDIR/npm" &&
        mv "$to.new" "$to"
}


# Installs the oldest and the newest gcc-N and clang-N of the distribution, and
# musl's headers, for t/portable.  Only with LLM_COMPILERS, as in CI, because they
# take minutes.

test_compilers() {
    local name of

    for name in gcc clang; do
        of=$(apt-cache pkgnames "$name-" | grep -x "$name-[0-9]*" | sort -V)
        of=$(printf '%s\n' "$of" | sed -n '1p;$p' | sort -u)

        need "$(printf '%s\n' "$of" | sed 's/.*/& &/')"
    done

    need 'musl-tools musl-gcc'
}


test_tools() {
    need "$TEST_NEEDS"
    [ -z "${LLM_COMPILERS:-}" ] || test_compilers
    # uv must not write to the home directory; npm has --cache for that
    export UV_NO_CACHE=1 UV_NO_CONFIG=1 UV_PYTHON_DOWNLOADS=never

    if [ ! -e .deps/agents ] || [ ! -e .deps/clients ]; then
        say "fetching the tests' agents and clients into .deps, 3.5 GB" \
            "(./build.sh clean removes them)"
    fi

    if ! cmp -s t/requirements.txt .deps/requirements.txt; then
        rm -rf .deps/venv
        python3 -m venv .deps/venv
        .deps/venv/bin/pip install -qq --disable-pip-version-check \
            --no-cache-dir -r t/requirements.txt
        cp t/requirements.txt .deps/requirements.txt
    fi

    node_packages t/sdk .deps/node

    # 1 GB, needed by one test only
    node_packages t/agents .deps/agents ||
        say "npm could not install the agents: their tests are skipped"

    test_chromium
    test_clients
    test_cublas
    test_cuobjdump
    test_promtool
}


# Installs Chromium without a window, for t/web: 100 MB to download, 300 MB on
# the disk.  In a subshell, which need() ends if that fails.

test_chromium() {
    has chromium || has chromium-headless-shell ||
        (need 'chromium-headless-shell chromium-headless-shell') ||
        say "chromium cannot be installed: the page is not tested in a browser"
}


# Installs the Python clients of t/sdk/clients, each list into an environment of
# its own, because the lists pin different versions of the same packages.  With
# uv, because pip takes minutes.  A list that cannot be installed is not tested.

test_clients() {
    local list name

    for list in t/sdk/clients/*.txt; do
        name=.deps/clients/$(basename "$list" .txt)

        if cmp -s "$list" "$name/requirements.txt"; then
            continue
        fi

        rm -rf "$name"

        if .deps/venv/bin/uv venv -q -p .deps/venv/bin/python "$name" &&
           .deps/venv/bin/uv pip install -q --no-deps \
               -p "$name/bin/python" -r "$list"
        then
            cp "$list" "$name/requirements.txt"
        else
            say "$list cannot be installed: its clients are not tested"
        fi
    done
}


# Installs cuBLAS if the CUDA toolkit has none, so that the CUDA backend is
# built with it wherever there is an nvcc.

test_cublas() {
    local nvcc

    nvcc=$(nvcc_path) || return 0

    cmp -s t/gpu/requirements.txt .deps/cublas/requirements.txt ||
        rm -rf .deps/cublas

    if [ -n "${CUBLAS_HOME:-}" ] || cublas "$nvcc"; then
        return
    fi

    say "fetching cuBLAS (423 MB) into .deps/cublas"

    rm -rf .deps/cublas.new
    .deps/venv/bin/uv pip install -q --no-deps \
        -p .deps/venv/bin/python --target .deps/cublas.new \
        -r t/gpu/requirements.txt
    cp t/gpu/requirements.txt .deps/cublas.new/
    mv .deps/cublas.new .deps/cublas
}


# Installs cuobjdump, and nvdisasm, which it runs, for t/gpu/sass.py where there
# is an nvcc, which may have come without them.

test_cuobjdump() {
    nvcc_path > /dev/null || return 0

    ! cmp -s t/gpu/sass-requirements.txt .deps/sass/requirements.txt ||
        return 0

    rm -rf .deps/sass .deps/sass.new

    if .deps/venv/bin/uv pip install -q --no-deps \
        -p .deps/venv/bin/python --target .deps/sass.new \
        -r t/gpu/sass-requirements.txt
    then
        cp t/gpu/sass-requirements.txt .deps/sass.new/requirements.txt
        mv .deps/sass.new .deps/sass
    else
        say "cuobjdump cannot be installed: machine code is not judged"
    fi
}


# Unpacks promtool, Prometheus' checker of metrics and rules, from a package of
# the distribution without installing it: in Debian 12 it is in the package of
# the server, which would be started.

test_promtool() {
    local to=.deps/promtool package=promtool

    if [ -x "$to/promtool" ] || command -v promtool > /dev/null; then
        return
    fi

    rm -rf "$to.new"
    mkdir -p "$to.new"

    apt-cache show "$package" > /dev/null 2>&1 || package=prometheus

    if (cd "$to.new" && apt-get download -qq "$package" &&
            dpkg-deb --fsys-tarfile "$package"_*.deb |
            tar -x --strip-components=3 ./usr/bin/promtool &&
            rm -f "$package"_*.deb) > /dev/null 2>&1
    then
        rm -rf "$to"
        mv "$to.new" "$to"
    else
        rm -rf "$to.new"
        say "promtool could not be downloaded: its checks are skipped"
    fi
}
