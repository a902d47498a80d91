/*
 * The memory of recurrent states; see states.h.
 *
 * Invariant: sizes come from model files, so each of their sums and products is
 * checked for overflow before memory is allocated.
 */

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/states.h"

#include <assert.h>


static size_t
llm_states_conv(const llm_state_layer_t *l)
{
    return l->conv_width ? (size_t) (l->conv_width - 1) * l->conv_channels
                         : 0;
}


/* returns the floats of a slot, SIZE_MAX: too many; first [n_layers]: set to
   the offset of each layer, or NULL.  Layers begin on whole cache lines */

static size_t
llm_states_floats(const llm_state_opts_t *o, size_t *first)
{
    size_t                    n, heads;
    uint32_t                  i;
    const llm_state_layer_t  *l;

    n = 0;

    for (i = 0; i < o->n_layers; i++) {
        l = &o->layers[i];

        if (first) {
            first[i] = n;
        }

        if (llm_mul_overflow((size_t) l->n_rows * l->n_cols, l->n_heads,
                             &heads)
            || llm_add_overflow(heads, llm_states_conv(l), &heads)
            || llm_add_overflow(n, heads, &n)
            || n > SIZE_MAX / 2 / sizeof(float))
        {
            return SIZE_MAX;
        }

        n = llm_pad16(n);
    }

    return n;
}


size_t
llm_states_size(llm_exec_t *exec, const llm_state_opts_t *o)
{
    size_t  n;

    (void) exec;
    n = llm_states_floats(o, NULL);

    return n == SIZE_MAX ? n : n * sizeof(float);
}


void
llm_states_free(llm_exec_t *exec, llm_state_t *st)
{
    (void) exec;

    if (st) {
        llm_cpu_free(st->data, st->size);
        free(st->first);
        free(st);
    }
}


llm_state_t *
llm_states_create(llm_exec_t *exec, const llm_state_opts_t *o, llm_err_t *err)
{
    llm_state_t  *st;

    st = calloc(1, sizeof(llm_state_t));

    if (st && !llm_mul_overflow(llm_states_size(exec, o), o->n_slots,
                                &st->size))
    {
        st->opts = *o;
        st->first = calloc(o->n_layers, sizeof(size_t));
        st->data = llm_cpu_alloc(st->size, 1);

        if (st->first && st->data) {
            st->slot = llm_states_floats(o, st->first);
            return st;
        }
    }

    llm_states_free(exec, st);
    (void) llm_fail(err, "cpu: no memory for %u recurrent states",
                    o->n_slots);

    return NULL;
}


void
llm_states_copy(llm_exec_t *exec, llm_state_t *st, uint32_t src, uint32_t dst)
{
    (void) exec;
    assert(src < st->opts.n_slots && dst < st->opts.n_slots);

    memmove(st->data + dst * st->slot, st->data + src * st->slot,
            st->slot * sizeof(float));
}


llm_state_seq_t
llm_states_seq(const llm_state_t *st, const llm_batch_t *b, uint32_t layer,
    uint32_t seq)
{
    llm_state_seq_t  s;

    assert(b->slots[seq] < st->opts.n_slots);

    s.row = b->seq_rows[seq];
    s.end = b->seq_rows[seq + 1];
    s.begins = b->pos[s.row] == 0;
    s.conv = st->data + b->slots[seq] * st->slot + st->first[layer];
    s.heads = s.conv + llm_states_conv(&st->opts.layers[layer]);

    return s;
}
