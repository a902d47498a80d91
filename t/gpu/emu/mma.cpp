/*
 * The arithmetic of tensor cores for D = A B + D of 16-bit floats, used with
 * LLM_EMU_MMA=1 (emu.h); a plain sum in float32 is much faster.
 *
 * An instruction adds the products of an element and the sum so far at once.
 * All are aligned to the largest exponent (a product's exponent is the sum of
 * its factors'), truncated to a number of bits after the point and added
 * exactly; the sum is truncated to a float.  Hopper: 16 products, 25 bits.
 * Ampere and Ada: 8 products, then 8 more, 24 bits.  Hopper's rule agrees with
 * an H100's results, also of wgmma (t/unit/emu_mma.c); the other is from
 * "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores", arXiv:2511.10909.
 */

#include "t/gpu/emu/internal.h"

#include <climits>

namespace emu {

/* a 16-bit float */
struct Factor {
    double  value;
    int     exponent;                   /* INT_MIN: the value is 0 */
    bool    finite;
};


static Factor
factor(uint16_t bits, int bf16)
{
    int     e, m, digits = bf16 ? 7 : 10, bias = bf16 ? 127 : 15;
    Factor  f;

    e = bits >> digits & (2 * bias + 1);
    m = bits & ((1 << digits) - 1);

    f.finite = e != 2 * bias + 1;
    f.exponent = (e ? e : 1) - bias;
    f.value = std::ldexp((e ? 1 << digits : 0) + m, f.exponent - digits);
    f.value = bits & 0x8000 ? -f.value : f.value;
    f.exponent = f.value == 0 ? INT_MIN : f.exponent;

    if (!f.finite) {
        f.value = m ? NAN : std::copysign(INFINITY, f.value);
    }

    return f;
}


/* the sum of n products and d, all finite; bits: those after the point */

static float
sum(const Factor *a, const Factor *b, int n, float d, int bits)
{
    int      i, e, most;
    double   total;

    most = d == 0 ? INT_MIN : std::ilogb(d);

    for (i = 0; i < n; i++) {
        if (a[i].value != 0 && b[i].value != 0) {
            e = a[i].exponent + b[i].exponent;
            most = e > most ? e : most;
        }
    }

    if (most == INT_MIN) {
        return d;
    }

    /* the terms have fewer than 32 bits each, so a double holds the sum */

    total = std::trunc(std::ldexp((double) d, bits - most));

    for (i = 0; i < n; i++) {
        total += std::trunc(std::ldexp(a[i].value * b[i].value,
                                       bits - most));
    }

    if (total == 0) {
        return 0;
    }

    e = std::ilogb(total) - 23;

    return (float) std::ldexp(std::trunc(std::ldexp(total, -e)),
                              e + most - bits);
}


bool
mma_rule()
{
    static bool  rule = setting("LLM_EMU_MMA", 0) != 0;

    return rule;
}


/* rows[k]: A[k][0 .. 15], then B[k][0 .. 7] */

void
mma_16(const uint16_t rows[16][24], int bf16, float d[16][8])
{
    int     k, g, row, col, group, bits;
    bool    hopper, finite;
    Factor  a[16][16], b[8][16];

    hopper = setting("LLM_EMU_CAPABILITY", 89) >= 90;
    group = hopper ? 16 : 8;
    bits = hopper ? 25 : 24;

    for (row = 0; row < 16; row++) {
        for (k = 0; k < 16; k++) {
            a[row][k] = factor(rows[row][k], bf16);
        }

        for (col = 0; col < 8; col++) {
            b[col][row] = factor(rows[row][16 + col], bf16);
        }
    }

    for (row = 0; row < 16; row++) {
        for (col = 0; col < 8; col++) {
            finite = std::isfinite(d[row][col]);

            for (k = 0; k < 16; k++) {
                finite = finite && a[row][k].finite && b[col][k].finite;
            }

            /* infinite or NaN in any order */

            for (k = 0; !finite && k < 16; k++) {
                d[row][col] += (float) (a[row][k].value * b[col][k].value);
            }

            for (g = 0; finite && g < 16; g += group) {
                d[row][col] = sum(a[row] + g, b[col] + g, group, d[row][col],
                                  bits);
            }
        }
    }
}

}   /* namespace emu */


/* for t/unit/emu_mma.c */

extern "C" __attribute__((visibility("default"))) void
emu_mma_16(const uint16_t rows[16][24], int bf16, float d[16][8])
{
    emu::mma_16(rows, bf16, d);
}
