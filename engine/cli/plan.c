/*
 * The command plan: what a model takes of this machine's memory for several
 * contexts and numbers of parallel requests, about how fast it generates, and a
 * line for nginx.conf.  Nothing is loaded.
 */

#include "engine/file/source.h"
#include "engine/cli/cli.h"
#include "engine/base/machine.h"

#include <stdio.h>

#define LLM_PLAN_GIB       ((double) (1 << 30))
#define LLM_PLAN_MIB       ((size_t) 1 << 20)
#define LLM_PLAN_CTX       4096         /* shortest context of the table */
#define LLM_PLAN_WORTH     32768        /* longest that is recommended: few
                                           requests need more, and pages for it
                                           are missing elsewhere */
#define LLM_PLAN_ROWS      16

static const uint32_t  llm_plan_parallel[] = { 1, 4, 16 };

/* a row of the table: bytes of the cache for each number of requests */
typedef struct {
    uint32_t           ctx;
    size_t             kv[llm_nelems(llm_plan_parallel)];
} llm_plan_row_t;

typedef struct {
    llm_model_plan_t   plan;            /* of the last row */
    llm_plan_row_t     rows[LLM_PLAN_ROWS];
    uint32_t           n_rows;
} llm_plan_table_t;

/* what is recommended */
typedef struct {
    uint32_t           ctx;
    uint32_t           parallel;
    size_t             kv;              /* bytes of the cache for these */
} llm_plan_choice_t;


static int
llm_plan_row(const llm_cli_t *c, uint32_t ctx, llm_plan_table_t *t,
    llm_err_t *err)
{
    uint32_t           i;
    llm_plan_row_t    *row;
    llm_model_opts_t   o;

    if (llm_cli_model_opts(c, &o, err) != LLM_OK) {
        return LLM_ERROR;
    }

    o.ctx = ctx;

    row = &t->rows[t->n_rows++];

    for (i = 0; i < llm_nelems(llm_plan_parallel); i++) {
        o.max_seqs = llm_plan_parallel[i];

        if (llm_model_plan(c->file, &o, &t->plan, err) != LLM_OK) {
            return LLM_ERROR;
        }

        row->ctx = t->plan.ctx;
        row->kv[i] = t->plan.kv;
    }

    return LLM_OK;
}


/* contexts: twice as long each, up to the model's, which is the last; or that
   of the command line alone */

static int
llm_plan_fill(const llm_cli_t *c, uint32_t n_ctx, llm_plan_table_t *t,
    llm_err_t *err)
{
    uint32_t  ctx;

    if (c->ctx) {
        return llm_plan_row(c, c->ctx, t, err);
    }

    for (ctx = LLM_PLAN_CTX; ctx < n_ctx && t->n_rows < LLM_PLAN_ROWS - 1;
         ctx *= 2)
    {
        if (llm_plan_row(c, ctx, t, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_plan_row(c, n_ctx, t, err);
}


/* without kv_cache= the cache may have half of what the weights leave on a CPU,
   all of it on a GPU */

static int
llm_plan_fits(const llm_model_plan_t *p, size_t kv)
{
    size_t  left;

    left = p->free_bytes > p->weights ? p->free_bytes - p->weights : 0;

    return kv <= (p->on_gpu ? left : left / 2);
}


static void
llm_plan_print(const llm_plan_table_t *t)
{
    uint32_t                 i, k;
    const llm_model_plan_t  *p = &t->plan;

    printf("\nweights and cache for the longest requests, in GiB; *: more than "
           "is free\n\n%8s", "ctx");

    for (k = 0; k < llm_nelems(llm_plan_parallel); k++) {
        printf("  parallel=%-2u", llm_plan_parallel[k]);
    }

    printf("\n");

    for (i = 0; i < t->n_rows; i++) {
        printf("%8u", t->rows[i].ctx);

        for (k = 0; k < llm_nelems(llm_plan_parallel); k++) {
            printf("  %10.2f%c",
                   ((double) p->weights + (double) t->rows[i].kv[k])
                   / LLM_PLAN_GIB,
                   llm_plan_fits(p, t->rows[i].kv[k]) ? ' ' : '*');
        }

        printf("\n");
    }
}


/* the longest context, of those worth it, with which most requests fit at
   once */

static int
llm_plan_choice(const llm_plan_table_t *t, llm_plan_choice_t *o)
{
    uint32_t  i, k;

    for (k = llm_nelems(llm_plan_parallel) - 1; k + 1; k--) {
        for (i = t->n_rows - 1; i + 1; i--) {

            /* parallel requests rather than a short context */

            if ((t->rows[i].ctx < LLM_PLAN_CTX * 2 && k && i + 1 < t->n_rows)
                || (t->rows[i].ctx > LLM_PLAN_WORTH && i)
                || !llm_plan_fits(&t->plan, t->rows[i].kv[k]))
            {
                continue;
            }

            o->ctx = t->rows[i].ctx;
            o->parallel = llm_plan_parallel[k];
            o->kv = t->rows[i].kv[k];

            return LLM_OK;
        }
    }

    return LLM_ABSENT;
}


static void
llm_plan_speed(const llm_cli_t *c, const llm_hparams_t *hp)
{
    double    bandwidth;
    uint32_t  n;

    n = c->threads ? c->threads : llm_machine_cpus();
    bandwidth = llm_cli_bandwidth(n);

    if (bandwidth > 0) {
        printf("a token reads %.2f GB of weights, and %u thread%s %.1f "
               "GB/s here: about %.1f tokens/s for one request; \"bench\" "
               "measures it\n", (double) hp->n_bytes_step / 1e9, n,
               n == 1 ? " reads" : "s read", bandwidth / 1e9,
               bandwidth / (double) hp->n_bytes_step);
    }
}


/* the options for which the table is right */

static void
llm_plan_opts(const llm_cli_t *c)
{
    uint32_t  i;

    const struct {
        const char  *name;
        const char  *value;
    } opts[] = {
        { "device", c->device },
        { "split", c->split },
        { "weights", c->weights },
        { "kv", c->kv },
        { "products", c->products },
    };

    for (i = 0; i < llm_nelems(opts); i++) {
        if (opts[i].value) {
            printf(" %s=%s", opts[i].name, opts[i].value);
        }
    }

    if (c->threads) {
        printf(" threads=%u", c->threads);
    }
}


/* the line for nginx.conf, and what kv_cache= is by it */

static void
llm_plan_line(const llm_cli_t *c, const llm_hparams_t *hp,
    const llm_plan_choice_t *o)
{
    printf(" (the cache is shared: a request takes only what "
           "it fills):\n\n"
           "    llm_model NAME %s ctx=%u parallel=%u", c->file, o->ctx,
           o->parallel);
    llm_plan_opts(c);
    printf(";\n");

    if (o->kv) {
        printf("\nkv_cache=%zum is what this line comes to (%u request%s of %u "
               "tokens): set less to save memory%s\n",
               (o->kv + LLM_PLAN_MIB - 1) / LLM_PLAN_MIB, o->parallel,
               o->parallel == 1 ? "" : "s", o->ctx,
               hp->encoder ? "" : ", or more to keep more old conversations");
    }
}


/* nothing fits: because of --ctx, or whatever the context */

static int
llm_plan_refuse(const llm_cli_t *c, const llm_hparams_t *hp, llm_err_t *err)
{
    llm_cli_t           any;
    llm_plan_table_t    t;
    llm_plan_choice_t   o;

    any = *c;
    any.ctx = 0;
    memset(&t, 0, sizeof(t));

    if (c->ctx) {
        if (llm_plan_fill(&any, hp->n_ctx_train, &t, err) != LLM_OK) {
            return LLM_ERROR;
        }

        if (llm_plan_choice(&t, &o) == LLM_OK) {
            printf("\nctx=%u is too long for this memory; a ctx that fits, for "
                   "nginx.conf", c->ctx);
            llm_plan_line(&any, hp, &o);
            return LLM_OK;
        }
    }

    printf("\nthe model does not fit: a smaller quantisation or model, or "
           "more memory is needed\n");

    return LLM_OK;
}


static int
llm_plan_say(const llm_cli_t *c, const llm_hparams_t *hp,
    const llm_plan_table_t *t, llm_err_t *err)
{
    llm_plan_choice_t        o;
    const llm_model_plan_t  *p = &t->plan;

    printf("%s: %s, %.2f M parameters, trained for %u tokens\n", hp->name,
           hp->arch, (double) hp->n_params / 1e6, hp->n_ctx_train);
    printf("%s: %.2f GiB free, of which the weights take %.2f GiB\n",
           p->device, (double) p->free_bytes / LLM_PLAN_GIB,
           (double) p->weights / LLM_PLAN_GIB);

    if (!p->on_gpu && !hp->encoder) {
        llm_plan_speed(c, hp);
    }

    llm_plan_print(t);

    if (c->ctx > hp->n_ctx_orig) {
        printf("\nctx=%u is longer than all that the model was trained for "
               "(%u tokens): beyond that it may lose the thread\n", c->ctx,
               hp->n_ctx_orig);
    }

    if (llm_plan_choice(t, &o) != LLM_OK) {
        return llm_plan_refuse(c, hp, err);
    }

    printf("\nfor nginx.conf");
    llm_plan_line(c, hp, &o);

    return LLM_OK;
}


int
llm_cli_plan(const llm_cli_t *c, llm_err_t *err)
{
    int                rc;
    llm_gguf_t        *g;
    llm_hparams_t      hp;
    llm_plan_table_t   t;

    g = llm_source_open_header(c->file, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_model_check(g, &hp, err);
    llm_gguf_close(g);

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    memset(&t, 0, sizeof(t));

    if (llm_plan_fill(c, hp.n_ctx_train, &t, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_plan_say(c, &hp, &t, err);
}
