/*
 * AMX's tiles in plain C, by Intel's manual, so that the kernels of
 * kernels/cpu/amx*.c run and are compared on machines without them: included
 * before these files (engine/Makefile), it takes the place of the intrinsics.
 * A thread has its own tiles.  What the manual makes a fault of (a tile that is
 * not configured, operands whose sizes do not fit) is an assertion.
 */

#ifndef SOFT_TILES_H
#define SOFT_TILES_H

#include <immintrin.h>
#include <stddef.h>

void soft_tile_config(const void *config);
void soft_tile_release(void);
void soft_tile_zero(int t);
void soft_tile_load(int t, const void *from, size_t stride);
void soft_tile_store(int t, void *to, size_t stride);
void soft_tile_dpbssd(int c, int a, int b);
void soft_tile_dpbf16ps(int c, int a, int b);

#undef _tile_zero
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbf16ps

#define _tile_loadconfig(c)          soft_tile_config(c)
#define _tile_release()              soft_tile_release()
#define _tile_zero(t)                soft_tile_zero(t)
#define _tile_loadd(t, from, stride) soft_tile_load(t, from, stride)
#define _tile_stream_loadd(t, from, stride)                                  \
    soft_tile_load(t, from, stride)
#define _tile_stored(t, to, stride)  soft_tile_store(t, to, stride)
#define _tile_dpbssd(c, a, b)        soft_tile_dpbssd(c, a, b)
#define _tile_dpbf16ps(c, a, b)      soft_tile_dpbf16ps(c, a, b)

#endif
