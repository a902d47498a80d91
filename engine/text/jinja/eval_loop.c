/*
 * For loops: the variable "loop", the lazily evaluated condition, recursion.
 */

#include "engine/text/jinja/ast.h"


static int
llm_jloop_passes(llm_jrt_t *rt, llm_jloop_t *loop, const llm_jv_t *item)
{
    llm_jv_t            v;
    const llm_jnode_t  *n;

    n = loop->node;

    if (loop->test == NULL) {
        llm_jtry(llm_jframe_new(rt, n->test_scope, loop->outer,
                                &loop->test));
        llm_jtry(llm_jframe_enter(rt, n->test_scope, loop->test));
    }

    llm_jtry(llm_jinja_assign(rt, loop->test, n->a, item, 0));
    llm_jtry(llm_jinja_eval(rt, loop->test, n->c, &v));

    return llm_jv_truth(&v);
}


/* gets the next item that satisfies the loop's condition */

static int
llm_jloop_fetch(llm_jrt_t *rt, llm_jloop_t *loop, llm_jv_t *item)
{
    int  rc;

    if (loop->rest) {
        if (loop->rest_pos == loop->rest->n) {
            return LLM_END;
        }

        *item = loop->rest->v[loop->rest_pos++];

        return LLM_OK;
    }

    for ( ;; ) {
        rc = llm_jcur_next(rt, &loop->cur, item);

        if (rc != LLM_OK || loop->node->c == NULL) {
            return rc;
        }

        rc = llm_jloop_passes(rt, loop, item);

        if (rc) {
            return rc > 0 ? LLM_OK : LLM_ERROR;
        }
    }
}


int
llm_jloop_next(llm_jrt_t *rt, llm_jloop_t *loop, llm_jv_t *item)
{
    int  rc;

    if (llm_jv_given(&loop->after)) {
        *item = loop->after;
        loop->after = llm_jv_of(LLM_J_MISSING);

    } else {
        rc = llm_jloop_fetch(rt, loop, item);
        if (rc != LLM_OK) {
            return rc;
        }
    }

    loop->index0++;
    loop->before = loop->current;
    loop->current = *item;

    return LLM_OK;
}


static int
llm_jloop_peek(llm_jrt_t *rt, llm_jloop_t *loop)
{
    if (llm_jv_given(&loop->after)) {
        return LLM_OK;
    }

    return llm_jloop_fetch(rt, loop, &loop->after);
}


static int
llm_jloop_length(llm_jrt_t *rt, llm_jloop_t *loop)
{
    int           rc;
    llm_jv_t      list, item;

    if (loop->length >= 0) {
        return LLM_OK;
    }

    if (loop->node->c == NULL) {
        loop->length = llm_jv_len(&loop->cur.over);

        if (loop->length >= 0) {
            return LLM_OK;
        }
    }

    /* reads all remaining items: the length cannot be known otherwise */

    llm_jtry(llm_jv_list(rt, LLM_J_LIST, 0, &list));

    while ((rc = llm_jloop_fetch(rt, loop, &item)) == LLM_OK) {
        llm_jtry(llm_jlist_push(rt, list.u.list, &item));
    }

    if (rc != LLM_END) {
        return LLM_ERROR;
    }

    loop->rest = list.u.list;
    loop->rest_pos = 0;
    loop->length = (int64_t) loop->rest->n + loop->index0 + 1
                   + llm_jv_given(&loop->after);

    return LLM_OK;
}


static int
llm_jloop_neighbour(llm_jrt_t *rt, llm_jloop_t *loop, int next, llm_jv_t *res)
{
    int  rc;

    rc = next ? llm_jloop_peek(rt, loop)
         : loop->index0 == 0 ? LLM_END : LLM_OK;

    if (rc == LLM_END) {
        return llm_jv_undef(rt, next ? "there is no next item"
                                     : "there is no previous item", res);
    }

    *res = next ? loop->after : loop->before;

    return rc;
}


int
llm_jloop_attr(llm_jrt_t *rt, llm_jloop_t *loop, const llm_js_t *name,
    llm_jv_t *res)
{
    int                       rc;
    size_t                    i;
    int64_t                   v[7];
    static const char *const  numbers[] = {
        "index", "index0", "depth", "depth0", "length", "revindex",
        "revindex0"
    };

    *res = llm_jv_of(LLM_J_MISSING);

    if (llm_js_is(name, "first")) {
        *res = llm_jv_bool(loop->index0 == 0);
        return LLM_OK;
    }

    if (llm_js_is(name, "last")) {
        rc = llm_jloop_peek(rt, loop);
        *res = llm_jv_bool(rc == LLM_END);
        return rc == LLM_ERROR ? LLM_ERROR : LLM_OK;
    }

    if (llm_js_is(name, "previtem") || llm_js_is(name, "nextitem")) {
        return llm_jloop_neighbour(rt, loop, llm_js_is(name, "nextitem"),
                                   res);
    }

    for (i = 0; i < llm_nelems(numbers); i++) {
        if (!llm_js_is(name, numbers[i])) {
            continue;
        }

        if (i >= 4) {
            llm_jtry(llm_jloop_length(rt, loop));
        }

        v[0] = loop->index0 + 1;
        v[1] = loop->index0;
        v[2] = loop->depth0 + 1;
        v[3] = loop->depth0;
        v[4] = loop->length;
        v[5] = loop->length - loop->index0;
        v[6] = loop->length - loop->index0 - 1;

        *res = llm_jv_int(v[i]);
    }

    return LLM_OK;
}


/* runs the loop once over an iterable; output goes to rt->out */

static int
llm_jloop_run(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    const llm_jv_t *over, int64_t depth0)
{
    int            rc, x, done;
    llm_jv_t       item, self;
    llm_jframe_t  *inner;

    self = llm_jv_of(LLM_J_LOOP);
    llm_jnew(rt, self.u.loop, sizeof(llm_jloop_t));

    memset(self.u.loop, 0, sizeof(llm_jloop_t));
    self.u.loop->node = n;
    self.u.loop->outer = f;
    self.u.loop->index0 = -1;
    self.u.loop->length = -1;
    self.u.loop->depth0 = depth0;
    llm_jtry(llm_jcur_init(rt, &self.u.loop->cur, over));

    llm_jtry(llm_jframe_new(rt, n->scope, f, &inner));

    /* as in jinja2, an iteration that ends in break or continue does not
       count, which matters for "else" */

    done = 0;

    while ((rc = llm_jloop_next(rt, self.u.loop, &item)) == LLM_OK) {
        llm_jtry(llm_jinja_assign(rt, inner, n->a, &item, 0));
        llm_jtry(llm_jframe_enter(rt, n->scope, inner));

        if (n->slot != LLM_J_NO_SLOT) {
            inner->slots[n->slot] = self;
        }

        x = llm_jinja_exec(rt, inner, n->d);

        if (x == LLM_ERROR) {
            return x;
        }

        if (x == LLM_JX_BREAK) {
            rc = LLM_END;
            break;
        }

        done |= x == LLM_OK;
        rt->line = n->line;
    }

    if (rc != LLM_END) {
        return LLM_ERROR;
    }

    if (n->e == NULL || done) {
        return LLM_OK;
    }

    llm_jtry(llm_jframe_new(rt, n->else_scope, f, &inner));
    llm_jtry(llm_jframe_enter(rt, n->else_scope, inner));

    return llm_jinja_exec(rt, inner, n->e);
}


int
llm_jinja_exec_for(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n)
{
    llm_jv_t  over;

    llm_jtry(llm_jinja_eval(rt, f, n->b, &over));

    rt->line = n->line;

    return llm_jloop_run(rt, f, n, &over, 0);
}


/* loop(items) in a recursive loop: the loop's output for these items */

int
llm_jinja_call_loop(llm_jrt_t *rt, llm_jloop_t *loop, const llm_jargs_t *args,
    llm_jv_t *res)
{
    int       rc;
    llm_jb_t  b, *out;

    if (!loop->node->op) {
        return llm_jrt_fail(rt, "The loop must have the 'recursive' marker "
                            "to be called recursively.");
    }

    if (args->n != 1 || args->n_kw) {
        return llm_jrt_fail(rt, "loop() takes one argument");
    }

    llm_jtry(llm_jrt_enter(rt));
    llm_jb_init(&b, rt, rt->max_output);

    out = rt->out;
    rt->out = &b;
    rc = llm_jloop_run(rt, loop->outer, loop->node, &args->v[0],
                       loop->depth0 + 1);
    rt->out = out;

    llm_jrt_leave(rt);

    return rc == LLM_OK ? llm_jb_done(&b, res) : rc;
}
