# What the tests need beside the compiler, read by build.sh, whose functions are
# used here: packages of the distribution (need), and pinned programs and
# libraries in .deps, which git ignores.  Nothing is downloaded when nothing is
# missing; what cannot be had is said, and skipped by its test.

TEST_NEEDS='
perl              prove
clang             clang
libclang-rt-dev   clang-fuzzer
python3           python3
python3-venv      python-venv
nodejs            node
npm               npm
curl              curl
openssl           openssl
'


# What a lock file names; no package gets to run a script.  "npm ci" asks for
# more: that optional packages of other systems are there, too.

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


# The oldest and the newest gcc-N and clang-N of the distribution, which
# t/portable compiles with.  CI asks for them; others wait minutes less.

test_compilers() {
    local name of

    for name in gcc clang; do
        of=$(apt-cache pkgnames "$name-" | grep -x "$name-[0-9]*" | sort -V)
        of=$(printf '%s\n' "$of" | sed -n '1p;$p' | sort -u)

        need "$(printf '%s\n' "$of" | sed 's/.*/& &/')"
    done
}


test_tools() {
    need "$TEST_NEEDS"
    [ -z "${LLM_COMPILERS:-}" ] || test_compilers
    # neither uv nor npm writes to the home directory
    export UV_NO_CACHE=1 UV_NO_CONFIG=1 UV_PYTHON_DOWNLOADS=never

    if [ ! -e .deps/agents ] || [ ! -e .deps/clients ]; then
        say "fetching what the tests need into .deps: agents and clients as" \
            "programs, 3.5 GB (./build.sh clean removes them)"
    fi

    if ! cmp -s t/requirements.txt .deps/requirements.txt; then
        rm -rf .deps/venv
        python3 -m venv .deps/venv
        .deps/venv/bin/pip install -qq --disable-pip-version-check \
            --no-cache-dir -r t/requirements.txt
        cp t/requirements.txt .deps/requirements.txt
    fi

    node_packages t/sdk .deps/node

    # a gigabyte that one test needs
    node_packages t/agents .deps/agents ||
        say "without the agents: npm could not install them"

    test_clients
    test_cublas
    test_promtool
}


# The Python clients of t/sdk/clients: each list is an environment of its own,
# because the lists pin other versions of the same packages.  uv, because pip
# takes minutes.  What cannot be had is skipped by its test.

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


# A toolkit without cuBLAS gets one, so that the CUDA backend is built and
# linked wherever there is an nvcc.

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


# Prometheus' tool that reads metrics and rules, out of the distribution's
# package, which in Debian 12 is the server's: that would be started here.

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
        say "without promtool: its checks of the metrics are skipped"
    fi
}
