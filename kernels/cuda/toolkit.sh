# Finds the CUDA toolkit and cuBLAS, for build.sh, t/setup.sh and t/gpu/run.sh.

# cublas NVCC: sets CUBLAS_INC and CUBLAS_LIB from CUBLAS_HOME if it is set,
# else from the toolkit, /usr or .deps, where t/setup.sh installs it.  Fails if
# there is no cuBLAS.  Headers and shared objects may be in different folders.

cublas() {
    local nvcc=$1 home lib places

    if [ -n "${CUBLAS_HOME:-}" ]; then
        places=$CUBLAS_HOME
    else
        places="$(nvcc_top "$nvcc") /usr $ROOT/.deps/cublas/nvidia/cu13"
    fi

    for home in $places; do
        for lib in "$home"/{lib64,lib,lib/x86_64-linux-gnu}/libcublasLt.so.*
        do
            if [ -e "$lib" ] && [ -e "$home/include/cublasLt.h" ]; then
                CUBLAS_INC=$(cd "$home/include" && pwd)
                CUBLAS_LIB=$(cd "${lib%/*}" && pwd)/${lib##*/}
                return 0
            fi
        done
    done

    return 1
}


nvcc_top() {
    local top

    top=$("$1" --dryrun -x cu /dev/null -o /dev/null 2>&1 |
        sed -n 's/^#\$ TOP=//p')
    (cd "${top:-/usr}" && pwd)
}


nvcc_path() {
    if [ -n "${CUDA_HOME:-}" ]; then
        command -v "$CUDA_HOME/bin/nvcc"
    else
        command -v nvcc || command -v /usr/local/cuda/bin/nvcc
    fi
}
