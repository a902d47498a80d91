/*
 * Turns a JSON Schema into a grammar.  See internal.h.
 *
 * The set of items that a place must satisfy becomes a reference to a node.
 * Each set is built when its turn comes, from a list, so neither the depth of
 * a document nor its recursion needs stack.
 */

#include "engine/grammar/schema/internal.h"
#include "engine/grammar/unique.h"


#define LLM_SCHEMA_MAX_MEMORY  (64 << 20)


static int
llm_schema_compile(llm_schema_t *s, const llm_flat_t *part, llm_str_t end,
    llm_gn_t *root)
{
    int               rc;
    llm_schema_bag_t  bag;
    llm_schema_set_t  set;

    memset(&bag, 0, sizeof(bag));

    if (part->type != LLM_FLAT_OBJECT && part->type != LLM_FLAT_BOOL) {
        return llm_schema_refuse(s, part, "it must be an object");
    }

    if (llm_schema_open(s) != LLM_OK
        || llm_schema_bag_schema(s, &bag, part) != LLM_OK)
    {
        return LLM_ERROR;
    }

    /* only the outermost place has an end of its own */

    set = llm_schema_bag_set(&bag);
    rc = end.len ? llm_schema_build(s, set, end, root)
                 : llm_schema_state(s, set, root);

    return rc == LLM_OK ? llm_schema_build_all(s) : LLM_ERROR;
}


/*
 * Sets bounds to what other schemas of the grammar have left: many large
 * schemas must not take many times as long as one.  Work and time bound the
 * same thing and are counted together: when a schema has used up one of them,
 * its share is used up, however fast the machine is.
 */

static void
llm_schema_limit(llm_schema_t *s, uint64_t spent_us, uint64_t now)
{
    uint64_t  us;

    us = LLM_SCHEMA_ALL * LLM_SCHEMA_MAX_US;
    us -= llm_min(spent_us, us);
    us = llm_min(us, (uint64_t) LLM_SCHEMA_MAX_US);

    s->max_work = (uint32_t) (us * LLM_SCHEMA_MAX_WORK / LLM_SCHEMA_MAX_US);
    s->until_us = now + us;
}


static uint64_t
llm_schema_spent(const llm_schema_t *s, uint64_t begun)
{
    uint64_t  us, work_us;

    us = llm_lex_now_us() - begun;
    work_us = (uint64_t) s->work * LLM_SCHEMA_MAX_US / LLM_SCHEMA_MAX_WORK;

    return llm_max(us, work_us);
}


/* checks what is only known when everything is built */

static int
llm_schema_settle(llm_schema_t *s, const llm_flat_t *part, llm_gn_t root)
{
    int                         rc;
    llm_gn_t                    node;
    const llm_schema_unique_t  *u;

    rc = llm_gn_alive(s->b, root, NULL);

    if (rc == LLM_ABSENT) {
        (void) llm_schema_why(s, part);
        return LLM_ABSENT;
    }

    node = s->unique && rc == LLM_OK ? llm_gn_unknown(s->b, root)
                                     : LLM_GN_NONE;

    for (u = s->unique; u; u = u->prev) {
        if (u->node == node) {
            return llm_schema_refuse(s, u->value, LLM_UNIQUE_UNKNOWN);
        }
    }

    return LLM_OK;
}


int
llm_gn_schema(llm_gram_build_t *b, const llm_flat_t *schema, llm_gn_t *node,
    llm_err_t *err)
{
    return llm_gn_schema_part(b, schema, schema, llm_str(""), node, err);
}


int
llm_gn_schema_part(llm_gram_build_t *b, const llm_flat_t *document,
    const llm_flat_t *part, llm_str_t end, llm_gn_t *node, llm_err_t *err)
{
    const llm_flat_t  *refused;

    return llm_schema_read(b, document, part, end, NULL, node, err, &refused);
}


int
llm_schema_read(llm_gram_build_t *b, const llm_flat_t *document,
    const llm_flat_t *part, llm_str_t end, const llm_schema_gone_t *gone,
    llm_gn_t *node, llm_err_t *err, const llm_flat_t **refused)
{
    int            rc;
    uint64_t       begun, *spent_us;
    llm_err_t      local;
    llm_schema_t   s;

    begun = llm_lex_now_us();

    memset(&s, 0, sizeof(s));
    s.root = document;

    if (gone) {
        s.gone = *gone;
    }

    s.err = err ? err : &local;
    s.err->msg[0] = '\0';
    spent_us = llm_gram_spent_us(b);
    llm_schema_limit(&s, *spent_us, begun);
    s.apart = llm_schema_apart;
    s.contradicts = llm_schema_contradicts;
    s.max_branches = LLM_SCHEMA_MAX_BRANCHES;

    s.b = b;
    s.pool = llm_gram_pool(b);
    llm_arena_init(&s.arena, LLM_SCHEMA_MAX_MEMORY);

    rc = llm_schema_compile(&s, part, end, node);

    if (rc == LLM_OK) {
        rc = llm_schema_settle(&s, part, *node);
    }

    *spent_us += llm_schema_spent(&s, begun);
    *refused = rc == LLM_OK ? NULL : s.refused;

    llm_table_clear(&s.table);
    llm_arena_free(&s.arena);

    return rc;
}


llm_gram_t *
llm_gram_schema(const llm_flat_t *schema, const llm_toktree_t *tree,
    llm_err_t *err)
{
    llm_gn_t           root;
    llm_gram_build_t  *b;

    b = llm_gram_build();
    if (b == NULL) {
        (void) llm_fail(err, "no memory for a grammar");
        return NULL;
    }

    if (llm_gn_schema(b, schema, &root, err) != LLM_OK) {
        llm_gram_build_free(b);
        return NULL;
    }

    return llm_gram_finish(b, root, tree, err);
}
