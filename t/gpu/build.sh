# Read by run.sh: builds what calls need, either where the distribution's
# packages are (pack, then carried) or on the machine with the GPU.
#
# objs/gpu.tar.xz holds objs/gpu: deps (headers and libraries that the other
# machine may lack), nginx (with the module), fixtures, and work: everything
# compiled for CUDA_ARCH (90a), with the sources' checksum in `built`.  What was
# compiled from other sources, or does not load there, is compiled there.

# the libraries of engine/Makefile, and what of them a machine may lack

LIBRARIES=$(sed -n 's/^LIBS *:= *//p' engine/Makefile)
NEEDED="libcjson.so.1 libpcre2-8.so.0 libcrypto.so.3 libz.so.1"
TABLES="emu emu_fp8 emu_products emu_glu emu_sample emu_broken emu_ahead
    emu_dense emu_encode emu_experts emu_latent emu_splits recurrent logits
    archs"


PROGRAMS="llm load bench bench.so peak bits break.so llm_cuda.so"


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

    strip -g "$GPU"/work/{llm,load,bench,bench.so,llm_cuda.so,t/*}
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
    tar -C "${GPU%/*}" -c "${GPU##*/}" | xz -T 0 -1 > "$GPU.tar.xz.new" &&
        mv "$GPU.tar.xz.new" "$GPU.tar.xz" || die "cannot write $GPU.tar.xz"
    du -sh "$GPU.tar.xz"
    check
}


# is all in the archive that `first` needs, from these sources, and does it load?
# Without a GPU the backend is loaded only as far as to say that there is none.

check() {
    local archive=$GPU.tar.xz dir file said

    [ -e "$archive" ] || die "no $archive: t/gpu/run.sh pack"
    say "checking"
    dir=$(mktemp -d "${GPU%/*}/gpu-check.XXXXXX") || die "no temporary folder"
    trap 'rm -rf "'"$dir"'"' EXIT

    GPU=$dir/gpu
    tar -C "$dir" -xJf "$archive" || die "$archive cannot be unpacked"
    packed || die "the archive's module is from other sources"
    [ -e "$GPU/work/llm_cuda.so" ] || { say "it has no programs"; return; }
    built "$GPU/work" || die "the archive's programs are from other sources"

    for file in $PROGRAMS $(printf 't/%s ' $TABLES); do
        [ -x "$GPU/work/$file" ] || die "the archive lacks $file"
        ! ldd "$GPU/work/$file" 2> /dev/null | grep 'not found' |
            grep -v libcublas || die "$file lacks a library"
    done

    for file in cpu cuda; do
        said=$(echo 1 2 3 | "$GPU/work/llm" logits models/demo.gguf \
            --device "$file" --ctx 64 2>&1 > "$dir/$file.logits")

        case $?:$file:$said in
            0:*|*:cuda:*'there is no NVIDIA driver'*) ;;
            *) die "the carried programs do not work on $file: $said" ;;
        esac
    done

    [ -s "$dir/cpu.logits" ] || die "the carried programs print no logits"
    say "whole"
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


# finds cuBLAS, for the linker and for programs that were linked elsewhere

blas_there() {
    NVCC=$(nvcc_path) || NVCC=
    CUBLAS_INC='' CUBLAS_LIB=''

    find_cublas || CUBLAS_LIB=$(find / -xdev -name 'libcublasLt.so.13*' \
        -print -quit 2> /dev/null)

    [ -n "$CUBLAS_LIB" ] ||
        say "no cuBLAS was found (set CUBLAS_HOME): our own kernels only"

    if [ -n "$CUBLAS_LIB" ]; then
        export LD_LIBRARY_PATH=${CUBLAS_LIB%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    fi
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
    local arch=${CUDA_ARCH:-} peak=(-DPEAK_COPY_ONLY) bits=(-DBITS_NO_BLAS)

    NVCC=$(nvcc_path) || die "no nvcc"
    find_cublas || { CUBLAS_INC=''; CUBLAS_LIB=''; }
    [ -n "$arch" ] || arch=$(nvidia-smi --query-gpu=compute_cap \
        --format=csv,noheader | head -n 1 | tr -d . | sed 's/^90$/90a/')

    if [ -n "$CUBLAS_LIB" ]; then
        peak=("-I$CUBLAS_INC" "-L${CUBLAS_LIB%/*}" "-l:${CUBLAS_LIB##*/}"
            -Xlinker "-rpath=${CUBLAS_LIB%/*}")
        bits=("${peak[@]}")
    fi

    local code="-gencode=arch=compute_$arch,code=sm_$arch"

    make -s -j "$(nproc)" -f kernels/cuda/Makefile OBJS="$WORK" \
        NVCC="$NVCC" CUBLAS_INC="$CUBLAS_INC" CUBLAS_LIB="$CUBLAS_LIB" \
        ALL_ARCH="$arch" CUDA_ARCH="$arch" cuda &&
    "$NVCC" -O2 "$code" -o "$WORK/peak" t/gpu/peak.cu "${peak[@]}" &&
    "$NVCC" -O2 "$code" -o "$WORK/bits" t/gpu/bits.cu "${bits[@]}" &&
    "$NVCC" -O2 "$code" -shared -Xcompiler -fPIC -o "$WORK/break.so" \
        t/gpu/break.cu
}


# builds unless the archive, or WORK, was built from these sources; what was
# carried must load, too

build() {
    if [ "$DEVICE" != emu ] && built "$GPU/work"; then
        if loads "$GPU/work"; then
            WORK=$GPU/work
            return
        fi

        say "the carried programs do not load here"
    fi

    ! built "$WORK" || return 0

    say "building"
    compile > "$(results build.txt)" 2>&1 ||
        { tail -n 20 "$(results build.txt)"; die "the build failed"; }
    all_sources > "$WORK/built"
    say "built"
}


loads() {
    echo 1 2 3 | timeout 60 "$1/llm" logits models/demo.gguf \
        --device "$DEVICE" --ctx 64 > /dev/null 2> "$(results load.txt)" &&
        rm -f "$(results load.txt)" ||
        { cat "$(results load.txt)"; return 1; }
}
