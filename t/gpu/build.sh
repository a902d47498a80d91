# Read by run.sh: builds what calls need, either where the distribution's
# packages are (pack, then carried) or on the machine with the GPU.
#
# objs/gpu.tar.xz holds objs/gpu: deps (headers and libraries that the other
# machine may lack), nginx (with the module), fixtures, and work: everything
# compiled for CUDA_ARCH (90a), with the sources' checksum in `built`.  What was
# compiled from other sources, or does not load there, is compiled there.  If
# cuBLAS is linked, work/plain has the same without it.

# the libraries of engine/Makefile, and what of them a machine may lack

LIBRARIES=$(sed -n 's/^LIBS *:= *//p' engine/Makefile)
NEEDED="libcjson.so.1 libpcre2-8.so.0 libcrypto.so.3 libz.so.1"
TABLES="emu emu_fp8 emu_products emu_glu emu_sample emu_broken emu_ahead
    emu_dense emu_encode emu_experts emu_latent emu_splits emu_wgmma recurrent
    logits archs"


PROGRAMS="llm load bench bench.so peak bits break.so llm_cuda.so"
BLAS=libcublasLt.so.13
LINKED="peak bits llm_cuda.so"          # with cuBLAS, if there is one


# checksum of the sources that the module and the backends share

sources() {
    find engine kernels -name '*.[ch]' | LC_ALL=C sort | xargs cat | cksum
}

packed() { [ "$(cat "$GPU/nginx/sources" 2> /dev/null)" = "$(sources)" ]; }

# checksum of all sources that are compiled for calls

all_sources() {
    find engine kernels t/unit t/gpu t/bench -type f ! -name '*.pyc' \
        ! -path '*/results/*' | LC_ALL=C sort | xargs cat | cksum
}

built() { [ "$(cat "$1/built" 2> /dev/null)" = "$(all_sources)" ]; }


# ---- on this machine ----

# copies nginx, the module, and nginx's libraries except the C library's

pack_nginx() {
    local nginx lib

    nginx=$(PATH=$PATH:/usr/sbin command -v nginx) || die "no nginx here"
    mkdir -p "$GPU/nginx/lib"
    cp -L "$nginx" objs/ngx_http_llm_module.so "$GPU/nginx/"
    strip -g "$GPU/nginx/ngx_http_llm_module.so"
    sources > "$GPU/nginx/sources"

    for lib in $(ldd "$nginx" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p'); do
        case ${lib##*/} in
            libc.so.*|libm.so.*|libdl.so.*|libpthread.so.*) ;;
            *) cp -L "$lib" "$GPU/nginx/lib/" ;;
        esac
    done
}


pack_deps() {
    local lib

    mkdir -p "$GPU/deps/include/cjson" "$GPU/deps/lib"
    cp /usr/include/cjson/cJSON.h "$GPU/deps/include/cjson/"
    cp -r /usr/include/openssl "$GPU/deps/include/"
    cp -r "/usr/include/$(cc -print-multiarch)/openssl" "$GPU/deps/include/"
    cp /usr/include/{pcre2,zlib,zconf}.h "$GPU/deps/include/"

    for lib in $NEEDED; do
        cp -L "$(ldconfig -p | sed -n "s/.*\\b$lib .* => //p" | head -n 1)" \
            "$GPU/deps/lib/$lib"
    done
}


# Fixtures: all of logits, and the architectures whose layers differ most, to
# keep the archive small (LLM_GPU_ARCHS: others)

ARCHS="bert-f16 cohere2-f16 deepseek2-lite-f16 falconh1-f16 gemma2-f16
    glm4moe-f16 gptoss-f16 gpt2-f16 lfm2-f16 mamba2-f16 minimaxm2-f16
    mixtral-f16 nemotronhmoe-f16 qwen35-f16"

pack_fixtures() {
    local from=${LLM_FIXTURES:-$ROOT/../shared/fixtures} name

    [ -d "$from/logits" ] || return 0
    mkdir -p "$GPU/fixtures/models"
    cp -r "$from/logits" "$from/README.md" "$GPU/fixtures/"

    for name in ${LLM_GPU_ARCHS:-$ARCHS}; do
        cp "$from/models/$name".* "$GPU/fixtures/models/"
    done
}


# compiles here if there is an nvcc, so that no time is spent on it there

pack_work() {
    nvcc_path > /dev/null ||
        { say "no nvcc here: the other machine will compile everything"
          return 0; }

    CUDA_ARCH=${CUDA_ARCH:-90a}
    compile || die "the CUDA backend, tests or benches do not build"

    mkdir -p "$GPU/work/t"

    for name in $PROGRAMS $(printf 't/%s ' $TABLES); do
        cp "$WORK/$name" "$GPU/work/$name"
    done

    if [ -n "$CUBLAS_LIB" ]; then
        compile_plain || die "what works without cuBLAS does not build"
        mkdir -p "$GPU/work/plain"

        for name in $LINKED; do
            cp "$WORK/plain/$name" "$GPU/work/plain/$name"
        done

        strip -g "$GPU/work/plain/llm_cuda.so"
    fi

    strip -g "$GPU"/work/{llm,load,bench,bench.so,llm_cuda.so,t/*}
    echo "$CUDA_ARCH" > "$GPU/work/arch"
    all_sources > "$GPU/work/built"
}


# What was compiled before is kept in WORK, so a pack that was cut goes on where
# it was.

pack() {
    DEVICE=cuda
    rm -rf "$GPU" "$GPU.tar.xz"*
    pack_deps
    say "compiling for ${CUDA_ARCH:-90a}"
    pack_work
    say "compiling the module"
    CUDA_HOME=$ROOT/none ./build.sh build ||
        die "the module does not build"
    pack_nginx
    pack_fixtures
    say "compressing $(du -sh "$GPU" | cut -f 1)"
    # the backend is there twice, so what xz looks back at holds it
    tar -C "${GPU%/*}" -c "${GPU##*/}" |
        xz --lzma2=preset=1,dict=128MiB > "$GPU.tar.xz.new" &&
        mv "$GPU.tar.xz.new" "$GPU.tar.xz" || die "cannot write $GPU.tar.xz"
    du -sh "$GPU.tar.xz"
    check
}


# is all in the archive that `first` needs, from these sources, and does it load?
# Without a GPU the backend is loaded only as far as to say that there is none.

check() {
    local archive=$GPU.tar.xz dir file twin

    [ -e "$archive" ] || die "no $archive: t/gpu/run.sh pack"
    say "checking"
    dir=$(mktemp -d "${GPU%/*}/gpu-check.XXXXXX") || die "no temporary folder"
    trap 'rm -rf "'"$dir"'"' EXIT

    GPU=$dir/gpu
    tar -C "$dir" -xJf "$archive" || die "$archive cannot be unpacked"
    packed || die "the archive's module is from other sources"
    [ -e "$GPU/work/llm_cuda.so" ] || { say "it has no programs"; return; }
    built "$GPU/work" || die "the archive's programs are from other sources"

    twin=
    ! needs_cublas "$GPU/work" || twin=$(printf 'plain/%s ' $LINKED)

    # shellcheck disable=SC2086
    for file in $PROGRAMS $twin $(printf 't/%s ' $TABLES); do
        [ -x "$GPU/work/$file" ] || die "the archive lacks $file"
        ! ldd "$GPU/work/$file" 2> /dev/null | grep 'not found' |
            grep -v libcublas || die "$file lacks a library"
    done

    works cpu
    [ -s "$dir/cpu.logits" ] || die "the carried programs print no logits"
    works cuda

    if [ -n "$twin" ]; then
        take plain
        ! needs_cublas "$GPU/work" || die "work/plain needs cuBLAS"
        works cuda
    fi

    say "whole"
}


# does the backend in this folder load cuBLAS?

needs_cublas() { grep -q 'libcublasLt\.so' "$1/llm_cuda.so"; }


# the carried programs compute on a device, or say that there is none

works() {
    local said

    said=$(echo 1 2 3 | "$GPU/work/llm" logits models/demo.gguf \
        --device "$1" --ctx 64 2>&1 > "$dir/$1.logits")

    case $?:$1:$said in
        0:*|*:cuda:*'there is no NVIDIA driver'*) ;;
        *) die "the carried programs do not work on $1: $said" ;;
    esac
}


# ---- on the machine with the GPU ----

# unpacks the archive, if it is newer than what was unpacked before

unpack() {
    [ -e "$GPU.tar.xz" ] || return 0

    if [ ! -e "$GPU/unpacked" ] || [ "$GPU.tar.xz" -nt "$GPU/unpacked" ]; then
        rm -rf "$GPU"
        python3 -c 'import sys, tarfile
tarfile.open(sys.argv[1]).extractall(sys.argv[2])' \
            "$GPU.tar.xz" "${GPU%/*}" 2> /dev/null ||
            tar -C "${GPU%/*}" -xJf "$GPU.tar.xz" ||
            die "$GPU.tar.xz cannot be unpacked"
        touch "$GPU/unpacked"
    fi
}


# Finds cuBLAS for programs that were linked elsewhere: in the usual places,
# then for 15 s everywhere.  CUBLAS_HOME: only there.

blas_there() {
    local file

    NVCC=$(nvcc_path) || NVCC=
    file=$(blas_library)

    [ -n "$file" ] ||
        { say "no $BLAS was found (set CUBLAS_HOME): our own kernels only"
          return; }

    export LD_LIBRARY_PATH=${file%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}


# prints the path of the library

blas_library() {
    local file

    if [ -n "${CUBLAS_HOME:-}" ]; then
        find "$CUBLAS_HOME/" -name "$BLAS*" -print -quit 2> /dev/null
        return
    fi

    for file in $(PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2> /dev/null |
            sed -n "s/.*$BLAS .* => //p") \
        "$ROOT"/.deps/cublas/nvidia/cu13/lib/"$BLAS" \
        /usr/local/cuda*/{lib64,targets/*/lib}/"$BLAS" \
        $(python3 -c 'import glob, sys
for p in sys.path:
    print(*glob.glob(p + "/nvidia/*/lib/" + sys.argv[1]))' "$BLAS" 2> /dev/null)
    do
        [ ! -e "$file" ] || { echo "$file"; return; }
    done

    timeout 15 find / -xdev -name "$BLAS*" -print -quit 2> /dev/null
}


find_cublas() {
    local dir

    if [ -n "$NVCC" ] && cublas "$NVCC"; then
        return
    fi

    for dir in $(python3 -c 'import site; print(*(p + "/nvidia/cu13"
        for p in site.getsitepackages()))' 2> /dev/null)
    do
        if CUBLAS_HOME=$dir cublas ''; then
            return
        fi
    done

    return 1
}


# compiles the tests and benches, then the backend of the GPU or the emulator

compile() {
    local libs=$LIBRARIES flags="-O2 -g" tables='' name

    if [ -d "$GPU/deps" ]; then
        flags="$flags -I$GPU/deps/include"
        libs="-L$GPU/deps/lib"
        for name in $NEEDED; do
            libs="$libs -l:$name"
        done
        for name in . ..; do
            libs="$libs -Wl,-rpath,'\$\$ORIGIN/$name/../deps/lib'"
        done
        libs="$libs -Wl,-rpath,$GPU/deps/lib -lpthread -ldl -lm"
    fi

    for name in $TABLES; do
        tables="$tables $WORK/t/$name"
    done

    # shellcheck disable=SC2086
    make -s -j "$(nproc)" -f engine/Makefile OBJS="$WORK" CFLAGS="$flags" \
        LIBS="$libs" lib cli load $tables &&
    eval cc -std=gnu11 "$flags" -D_GNU_SOURCE= -I. -o "'$WORK/bench'" \
        t/gpu/bench.c "'$WORK/libllm.a'" "${libs//\$\$/\\\$}" &&
    eval cc -shared -fPIC -std=gnu11 "$flags" -D_GNU_SOURCE= -I. \
        -o "'$WORK/bench.so'" t/gpu/bench.c "'$WORK/libllm.a'" \
        "${libs//\$\$/\\\$}" || return 1

    if [ "$DEVICE" = emu ]; then
        make -s -j "$(nproc)" -f kernels/cuda/Makefile OBJS="$WORK" emu
    else
        compile_cuda
    fi
}


compile_cuda() {
    local peak=(-DPEAK_COPY_ONLY) bits=(-DBITS_NO_BLAS)

    NVCC=$(nvcc_path) || die "no nvcc"
    find_cublas || { CUBLAS_INC=''; CUBLAS_LIB=''; }
    ARCH=${CUDA_ARCH:-$(capability | sed 's/^90$/90a/')}
    CODE="-gencode=arch=compute_$ARCH,code=sm_$ARCH"

    if [ -n "$CUBLAS_LIB" ]; then
        peak=("-I$CUBLAS_INC" "-L${CUBLAS_LIB%/*}" "-l:${CUBLAS_LIB##*/}"
            -Xlinker "-rpath=${CUBLAS_LIB%/*}")
        bits=("${peak[@]}")
    fi

    make_cuda cuda &&
    "$NVCC" -O2 "$CODE" -o "$WORK/peak" t/gpu/peak.cu "${peak[@]}" &&
    "$NVCC" -O2 "$CODE" -o "$WORK/bits" t/gpu/bits.cu "${bits[@]}" &&
    "$NVCC" -O2 "$CODE" -shared -Xcompiler -fPIC -o "$WORK/break.so" \
        t/gpu/break.cu
}


# peak, bits and the backend without cuBLAS, after compile_cuda() with it

compile_plain() {
    mkdir -p "$WORK/plain" &&
    make_cuda cuda plain &&
    "$NVCC" -O2 "$CODE" -o "$WORK/plain/peak" t/gpu/peak.cu \
        -DPEAK_COPY_ONLY &&
    "$NVCC" -O2 "$CODE" -o "$WORK/plain/bits" t/gpu/bits.cu -DBITS_NO_BLAS
}


make_cuda() {
    make -s -j "$(nproc)" -f kernels/cuda/Makefile OBJS="$WORK" \
        NVCC="$NVCC" CUBLAS_INC="$CUBLAS_INC" CUBLAS_LIB="$CUBLAS_LIB" \
        ALL_ARCH="$ARCH" CUDA_ARCH="$ARCH" "$@"
}


# builds unless the archive, or WORK, was built from these sources; what was
# carried must load, too

build() {
    local why="it carries no programs"

    if [ "$DEVICE" = emu ]; then
        :
    elif built "$GPU/work"; then
        if carried; then
            WORK=$GPU/work
            return
        fi

        why="its programs do not run here"

    elif [ -e "$GPU/work/built" ]; then
        why="its programs are from other sources"

    elif [ ! -e "$GPU/unpacked" ]; then
        why="there is none"
    fi

    ! built "$WORK" || return 0

    [ "$DEVICE" = emu ] || nvcc_path > /dev/null ||
        die "nothing can run: objs/gpu.tar.xz: $why, and there is no nvcc to" \
            "build with: t/gpu/run.sh pack where there is one"

    say "building"
    compile > "$(results build.txt)" 2>&1 ||
        { tail -n 20 "$(results build.txt)"; die "the build failed"; }
    all_sources > "$WORK/built"
    say "built"
}


capability() {
    nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 |
        tr -d .
}


# the carried programs load here, with cuBLAS or without, and are for this GPU

carried() {
    local arch gpu

    arch=$(cat "$GPU/work/arch" 2> /dev/null)
    gpu=$(capability)

    if [ "${arch%a}" != "$gpu" ] &&
        { [ "${arch%?}" != "${gpu%?}" ] || [ "$arch" -gt "$gpu" ]; }
    then
        say "the carried programs are for ${arch:-no GPU}, this one is $gpu"
        return 1
    fi

    take blas
    ! loads || return 0
    [ -d "$GPU/work/plain" ] || return 1

    take plain
    loads || return 1
    say "without cuBLAS: our own kernels compute all products"
}


# take blas, take plain: the programs that are linked with cuBLAS, or without,
# if both were carried

take() {
    local name

    [ -d "$GPU/work/plain" ] || return 0

    if [ ! -d "$GPU/work/blas" ]; then
        mkdir "$GPU/work/blas"

        for name in $LINKED; do
            cp "$GPU/work/$name" "$GPU/work/blas/$name"
        done
    fi

    for name in $LINKED; do
        ln -f "$GPU/work/$1/$name" "$GPU/work/$name"
    done
}


# Loads the programs and the backend, and computes nothing, which may fail or
# hang: a device that does not exist is refused after all that is loaded.

loads() {
    local said

    said=$(echo 1 | timeout -k 5 30 "$GPU/work/llm" logits models/demo.gguf \
        --device cuda:255 --ctx 64 2>&1 > /dev/null)

    case $said in
        *'there is no device 255'*) return 0 ;;
    esac

    say "the carried programs do not load: ${said:-they say nothing}"
    return 1
}
