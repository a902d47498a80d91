/*
 * Creating a scheduler and giving it requests; see sched.h.
 */

#include "engine/sched/sched_internal.h"

#include <assert.h>
#include <stdio.h>


static int
llm_sched_arrays(llm_sched_t *s)
{
    uint32_t  k;

    for (k = 0; s->draft_head && k < LLM_KV_KINDS; k++) {
        s->head_pages[k] = malloc(s->max_pages * sizeof(uint32_t));

        if (s->head_pages[k] == NULL) {
            return LLM_ERROR;
        }
    }

    s->running = calloc(s->conf.runner.max_seqs, sizeof(*s->running));
    s->samplers = calloc(s->conf.runner.max_seqs, sizeof(*s->samplers));
    s->victims = calloc(s->conf.runner.max_seqs, sizeof(*s->victims));
    s->releases = calloc(s->conf.runner.max_seqs, sizeof(*s->releases));
    s->next = &s->steps[0];

    if (s->running == NULL || s->samplers == NULL || s->releases == NULL
        || s->victims == NULL
        || llm_step_create(s, &s->steps[0]) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (s->conf.runner.overlaps) {
        return llm_step_create(s, &s->steps[1]);
    }

    return LLM_OK;
}


static int
llm_sched_find_eog(llm_sched_t *s)
{
    int32_t   id, n;
    uint32_t  count;

    n = (int32_t) llm_vocab_size(s->conf.vocab);
    count = 0;

    for (id = 0; id < n; id++) {
        count += llm_vocab_is_eog(s->conf.vocab, id) != 0;
    }

    s->eog = malloc(llm_max(count, 1u) * sizeof(*s->eog));
    if (s->eog == NULL) {
        return LLM_ERROR;
    }

    for (id = 0; id < n; id++) {
        if (llm_vocab_is_eog(s->conf.vocab, id)) {
            s->eog[s->n_eog++] = id;
        }
    }

    return LLM_OK;
}


/* nodes of the tree; more than pages if all layers have a window, for the paths
   to pages that are left */

static uint32_t
llm_sched_n_nodes(const llm_runner_t *run)
{
    uint32_t  n = run->n_pages[LLM_KV_FULL];

    return run->window && run->n_pages[LLM_KV_WINDOW] == 0
           ? llm_min(n, UINT32_MAX / 16) * 8 : n;
}


/* are there enough pages for one sequence: for all its tokens or, with a
   window, for the window, the next page and the page before the window? */

static int
llm_sched_has_least(const llm_runner_t *run)
{
    uint64_t         all, windows;
    const uint32_t  *n = run->n_pages;

    all = ((uint64_t) run->ctx + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    windows = llm_min(all, (uint64_t) run->window / LLM_KV_PAGE + 4);

    if (n[LLM_KV_WINDOW]) {
        return n[LLM_KV_FULL] >= all && n[LLM_KV_WINDOW] >= windows;
    }

    return n[LLM_KV_FULL] >= (run->window ? windows : all);
}


llm_sched_t *
llm_sched_create(const llm_sched_conf_t *conf, llm_err_t *err)
{
    llm_sched_t  *s;

    if (!llm_sched_has_least(&conf->runner)
        || (conf->runner.n_pages[LLM_KV_WINDOW] && conf->runner.window == 0)
        || conf->runner.max_seqs == 0 || conf->runner.chunk == 0
        || conf->runner.batch <= conf->runner.max_seqs
        || conf->runner.max_out <= conf->runner.max_seqs
        || (conf->runner.n_slots
            && conf->runner.n_slots <= conf->runner.max_seqs))
    {
        (void) llm_fail(err, "no room for a sequence of %u tokens: %u pages, "
                        "%u of windows, %u sequences, %u rows",
                        conf->runner.ctx, conf->runner.n_pages[LLM_KV_FULL],
                        conf->runner.n_pages[LLM_KV_WINDOW],
                        conf->runner.max_seqs, conf->runner.batch);
        return NULL;
    }

    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        (void) llm_fail(err, "no memory for the scheduler");
        return NULL;
    }

    s->conf = *conf;
    s->n_kinds = conf->runner.n_pages[LLM_KV_WINDOW] ? LLM_KV_WINDOW + 1
                                                     : LLM_KV_FULL + 1;
    s->max_pages = (conf->runner.ctx + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    s->rows[0] = llm_min(2u * LLM_KV_PAGE, conf->runner.chunk);
    s->rows[1] = s->rows[0];
    s->row_us = 1e6;                    /* not known yet */
    llm_speed_init(&s->speed);

    llm_queue_init(&s->queue);

    s->pages = llm_pages_create(conf->runner.n_pages,
                                llm_sched_n_nodes(&conf->runner));
    s->scratch = llm_sampler_scratch_create(conf->runner.n_vocab);

    if (conf->runner.n_slots) {
        s->slots = llm_state_slots_create(conf->runner.n_slots,
                                          llm_sched_n_nodes(&conf->runner));
    }

    if (conf->draft) {
        s->draft_model = llm_draft_model_create(conf->draft, err);

        if (s->draft_model == NULL) {
            llm_sched_free(s);
            return NULL;
        }
    }

    if (conf->head) {
        s->draft_head = llm_draft_head_create(conf->head, conf->runner.ctx,
                                              err);

        if (s->draft_head == NULL) {
            llm_sched_free(s);
            return NULL;
        }
    }

    if (s->pages == NULL || s->scratch == NULL
        || (conf->runner.n_slots && s->slots == NULL)
        || llm_sched_arrays(s) != LLM_OK || llm_sched_find_eog(s) != LLM_OK)
    {
        (void) llm_fail(err, "no memory for the scheduler");
        llm_sched_free(s);
        return NULL;
    }

    llm_sched_count_in(s, conf->zone, conf->kept);

    return s;
}


void
llm_sched_count_in(llm_sched_t *s, llm_zone_t *z, const llm_kept_t *kept)
{
    if (s->figures) {
        llm_sched_tell(s, NULL);
    }

    s->conf.zone = z;
    s->conf.kept = kept;
    s->figures = &z->models[s->conf.model].figures;
    s->counters = llm_zone_counters(z, kept, s->conf.model);

    llm_sched_gauges(s);
}


void
llm_sched_free(llm_sched_t *s)
{
    uint32_t   k;
    llm_err_t  err;

    if (s == NULL) {
        return;
    }

    if (s->in_flight) {
        (void) s->conf.runner.wait(s->conf.runner.data, &err);
    }

    if (s->figures) {
        llm_sched_tell(s, NULL);
    }

    llm_draft_model_free(s->draft_model);
    llm_media_encodes_free(s);
    llm_draft_head_free(s->draft_head);

    for (k = 0; k < LLM_KV_KINDS; k++) {
        free(s->head_pages[k]);
    }

    llm_encoded_free(s);
    llm_queue_free(&s->queue);
    llm_pages_free(s->pages);
    llm_state_slots_free(s->slots);

    if (s->scratch) {
        llm_sampler_scratch_free(s->scratch);
    }

    llm_seat_free(s);
    llm_masker_free(s->masker);
    free(s->releases);
    free(s->victims);
    free(s->running);
    free(s->parked);
    llm_step_free(&s->steps[0]);
    llm_step_free(&s->steps[1]);
    free(s->eog);
    free(s);
}


const int32_t *
llm_sched_eog(const llm_sched_t *s, uint32_t *n)
{
    *n = s->n_eog;

    return s->eog;
}


void
llm_sched_add(llm_sched_t *s, llm_req_t *r)
{
    uint32_t    i;
    llm_err_t   err;
    llm_seq_t  *q;

    if (llm_media_add(s, r, &err) != LLM_OK) {
        llm_req_fail(r, &err, 0);
        llm_sched_queue_events(s, r);
        return;
    }

    if (llm_queue_enter(&s->queue, r) != LLM_OK) {
        (void) llm_fail(&err, "no memory");
        llm_req_fail(r, &err, 0);
        llm_sched_queue_events(s, r);
        return;
    }

    for (i = 0; i < r->run.n_seqs; i++) {
        q = &r->run.seqs[i];
        assert(q->prompt->n > 0);

        if (q->max_gen || llm_seq_unscored(q) || llm_seq_pools(q)) {

            if (i % r->msg->n == 0) {
                llm_sched_set_todo(s, q, r->run.judged_us
                                         ? llm_sched_fresh(s, q)
                                         : q->prompt->n);
            }

            llm_queue_add(&s->queue, q);
            continue;
        }

        llm_sched_echo(q);

        if (r->run.start_us == 0) {
            r->run.start_us = llm_now_us();
        }

        llm_sched_end_seq(s, q, LLM_FINISH_LENGTH);
    }
}


void
llm_sched_remove(llm_sched_t *s, llm_req_t *r)
{
    llm_sched_clear(s, r);
    llm_sched_unqueue_events(s, r);
    llm_sched_gauges(s);
}
