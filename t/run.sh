# Builds and runs the tests.  Sourced by build.sh, whose functions it uses.

PTX_NEEDS='
perl              prove
python3           python3
'

# The fuzz targets need clang, whatever compiler builds the rest.

test_build() {
    local objs=$1

    library "$objs" lib cli unit load fuzz-http

    if [ "${SAN:-}" != tsan ]; then
        module "$objs"
        CC=clang SAN=fuzz library "$OBJS/fuzzing" fuzz KERNELS="$OBJS"
    fi
}


# Installs the tests' tools while the compiler runs.  CUDA is built last, as it
# may need the cuBLAS that is installed with the tools.

build_beside_tools() {
    local tools

    test_tools &
    tools=$!
    # shellcheck disable=SC2064
    trap "kill $tools 2> /dev/null || :" EXIT

    module_and_command
    test_build "$OBJS"

    wait "$tools" || die "the tests' tools could not be installed"
    trap - EXIT

    backends
    ptx ptx-some ptx-faults
}


# Kernels of nvcc's PTX for the emulator, where there is an nvcc.

ptx() {
    local nvcc

    nvcc=$(nvcc_path) || return 0

    compile "kernels of nvcc's PTX" -f kernels/cuda/Makefile OBJS="$OBJS" \
        NVCC="$nvcc" "$@"
}


ptx_build() {
    mkdir -p "$OBJS"

    library "$OBJS" lib unit
    ptx ptx ptx-faults
}


run_tests() {
    local tests=(t/unit/models.t t/unit/unit.t t/unit/emulator.t t/unit/ptx.t
                 t/portable/portable.t t/sdk/clients.t t/fuzz/fuzz.t
                 t/http/fuzz.t t/http/quota_shared.t t/http/build.t
                 t/http/reload.t t/agents/agents.t t/http/cluster.t
                 t/http/health.t t/web/browser.t t/portable/deb.t
                 t/http/speculate.t t/http/device.t t/http/transcriptions.t
                 t/sdk/sdk.t t/http/storm.t -r t/)

    case $1 in
        '')
            writable "$OBJS" "$ROOT/.deps"
            need "$BUILD_NEEDS$TEST_NEEDS"
            need_media
            need_ffmpeg
            aside build_beside_tools
            export LLM_OBJS=$OBJS
            ;;
        asan)
            need "$BUILD_NEEDS"
            aside test_tools
            aside build
            SAN=asan aside test_build "$OBJS/asan"
            export LLM_OBJS=$OBJS/asan LLM_SAN=asan
            ;;
        tsan)
            need "$BUILD_NEEDS$TEST_NEEDS"
            need_media
            SAN=tsan aside test_build "$OBJS/tsan"
            export LLM_OBJS=$OBJS/tsan LLM_SAN=tsan
            tests=(t/unit)
            ;;
        ptx)
            need "$BUILD_NEEDS$PTX_NEEDS"
            nvcc_path > /dev/null || die "no nvcc: it is part of NVIDIA's" \
                "CUDA Toolkit, set CUDA_HOME to the toolkit's folder"
            aside ptx_build
            export LLM_OBJS=$OBJS LLM_EMU_PTX=1
            tests=(t/unit/ptx.t t/gpu/ptx/faults.t)
            ;;
        *)
            die "unknown kind of test: $1 (asan, tsan and ptx are known)"
            ;;
    esac

    export LLM_ROOT=$ROOT
    export PATH=$PATH:/usr/sbin

    # four at a time, as many tests mostly wait; the longest ones come first

    prove -It/lib --timer -j4 "${tests[@]}"
}
