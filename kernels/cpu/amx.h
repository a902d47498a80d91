/*
 * The configuration of AMX tiles that all kernels share; included after
 * simd512.h.
 */

#define AMX_ROWS        16              /* rows of a tile */
#define AMX_PANELS      2               /* panels that a product has at once */


/* the operand of LDTILECFG; tiles 0-3 are sums, 4-5 rows of x, 6-7 weights */

typedef struct {
    uint8_t              palette;
    uint8_t              start_row;
    uint8_t              reserved[14];
    uint16_t             colsb[16];
    uint8_t              rows[16];
} amx_config_t;


/*
 * GCC's built-ins for tile loads do not tell the compiler that they read
 * memory: this makes it store everything before.
 */
#define amx_written()  __asm__ volatile ("" : : : "memory")


static void
amx_configure(uint32_t k_bytes)
{
    int           i;
    amx_config_t  c;

    memset(&c, 0, sizeof(c));
    c.palette = 1;

    simd_unroll
    for (i = 0; i < 8; i++) {
        c.rows[i] = i < 6 ? AMX_ROWS : (uint8_t) (k_bytes / 4);
        c.colsb[i] = i == 4 || i == 5 ? (uint16_t) k_bytes : 64;
    }

    amx_written();
    _tile_loadconfig(&c);
}
