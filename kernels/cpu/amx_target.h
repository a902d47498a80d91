/*
 * What is compiled from here on, in a file with tiles, may use the instructions
 * of CPUs with AMX; the file ends it as the others do.
 */

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target(                          \
    "amx-tile,amx-int8,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,"         \
    "avx512vnni,avx512bf16,avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("amx-tile,amx-int8,amx-bf16,avx512f,avx512bw,avx512dq")
#pragma GCC target("avx512vl,avx512vnni,avx512bf16,avx2,fma,f16c")
#endif
