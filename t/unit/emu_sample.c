/*
 * Draws on the device, run by the emulator with its order of threads drawn at
 * random, against the host's sampler and against a reference of their own in
 * double with full sorts: every parameter alone and together, rows with ties,
 * without mass, with one token only; rows alone and among others give the
 * same bits.  LLM_GPU_DEVICE=cuda: on a GPU instead.
 */

#include "t/unit/emu_sample.h"


static void
test_draws(uint32_t n, uint32_t rounds)
{
    int       rc;
    rig_t     r;
    one_t     o[N_SETUPS], again;
    uint32_t  i, k, kind, round, wrong[N_SETUPS] = { 0 }, differ, spoiled;

    (void) rig_open(&r, n);
    differ = 0;
    spoiled = 0;
    rc = LLM_OK;

    for (round = 0; round < rounds; round++) {
        kind = round % N_KINDS;
        fill_row(&r, kind);

        for (i = 0; i < N_SETUPS; i++) {
            one_open(&r, &o[i], &setups[i], ops_random(&state));
        }

        rc = step(&r, o, N_SETUPS, round % 3 == 2);

        for (i = 0; i < N_SETUPS; i++) {

            if (o[i].draw.kind == LLM_DRAW_HOST) {
                spoiled += setups[i].typical_p == 1
                           || memcmp(r.dev->ops->map(r.dev, r.act, i, 1),
                                     r.row, n * sizeof(float)) != 0;
                continue;
            }

            k = wrong[i];
            wrong[i] += (uint32_t) one_check(&r, &o[i]);

            if (wrong[i] > k) {
                printf("# %s, row of kind %u\n", setups[i].name, kind);
            }
        }

        /* one of them once more, alone */

        i = round * 5 % (N_SETUPS - 1);
        again = o[i];
        (void) step(&r, &again, 1, 0);
        differ += (uint32_t) one_differs(&again, &o[i]);

        close_all(o, N_SETUPS);
    }

    for (i = 0; i < N_SETUPS; i++) {
        is_int(wrong[i], 0, "%u tokens: %s", n, setups[i].name);
    }

    is_int(differ, 0, "%u tokens: the same bits alone", n);
    is_int(spoiled, 0, "%u tokens: the host's row is as it was", n);
    ok(rounds < 5 || rc == LLM_REPLAYED || rounds % 3 == 0,
       "%u tokens: the step was a captured one", n);

    rig_close(&r);
}


/* many random numbers over one row, a step of the most rows each */

static void
test_numbers(void)
{
    rig_t          r;
    one_t          o[MAX_OUT];
    uint32_t       i, round, wrong;
    const setup_t  s = { "", 1, 0.97f, 0, 1, 1, 0, 0, 300, -1, 0, 0, 0 };

    (void) rig_open(&r, 2001);
    fill_row(&r, ROW_NORMAL);
    wrong = 0;

    for (round = 0; round < 40; round++) {
        for (i = 0; i < MAX_OUT; i++) {
            one_open(&r, &o[i], &s, round * MAX_OUT + i);

            if (round == 0) {
                o[i].draw.u = i ? 1 - ldexp(1, -(int) i - 20) : 0;
            }
        }

        (void) step(&r, o, MAX_OUT, 0);

        for (i = 0; i < MAX_OUT; i++) {
            reference_edit(&r, &o[i].draw);
            wrong += !reference_allows(&r, &o[i].draw, o[i].drawn.id);
        }

        close_all(o, MAX_OUT);
    }

    is_int(wrong, 0, "%u random numbers", 40 * MAX_OUT);
    rig_close(&r);
}


int
main(void)
{
    uint32_t  i;

    static const struct {
        uint32_t  n, rounds;
    } sizes[] = {
        { 1, 7 }, { 2, 14 }, { 7, 21 }, { 64, 21 }, { 257, 35 },
        { 1025, 35 }, { 4099, 21 }, { 33000, 7 }, { 151936, 7 }
    };

    if (!device_is_there()) {
        return done_without_device();
    }

    for (i = 0; i < llm_nelems(sizes); i++) {
        test_draws(sizes[i].n, sizes[i].rounds);
    }

    test_numbers();

    ok(n_near * 1000 <= n_draws, "%u of %u draws near a border", n_near,
       n_draws);

    return done_testing();
}
