/*
 * The parts of the JSON Schema reader.
 *
 * What a place in the output must satisfy is a set of items: schemas, and
 * values to be equal to, each as it is or negated.  A set is expanded
 * (expand.c, not.c) into branches.  A branch has the types that are left and a
 * list of atoms: single keywords, and what negations make of them.  From the
 * branches the files of the types build nodes.  Sets of inner places become
 * references to nodes that are built later, one for each different set
 * (schema.c), so recursion needs no special care.
 *
 * Invariant: a branch holds for exactly the values that satisfy all its atoms;
 * the branches of a set together hold for what the set holds for.  In loose
 * mode (empty.c) they may hold for more.
 *
 * All memory but that of the table is the arena's; the document is the caller's.
 */

#ifndef LLM_SCHEMA_INTERNAL_H
#define LLM_SCHEMA_INTERNAL_H

#include "engine/grammar/grammar.h"
#include "engine/grammar/lexer.h"

/* offset in the document in 8-byte units, and two flags */
typedef uint32_t  llm_schema_item_t;

#define LLM_SCHEMA_NOT    1
#define LLM_SCHEMA_VALUE  2             /* the item is a value to be equal to */
#define LLM_SCHEMA_FALSE  UINT32_MAX    /* nothing matches */

typedef struct {
    const llm_schema_item_t  *items;    /* in the order in which they were
                                           added */
    uint32_t                  n;
} llm_schema_set_t;

/* types of values; a number is an integer or not */
#define LLM_SCHEMA_NULL      0x01
#define LLM_SCHEMA_TRUE      0x02
#define LLM_SCHEMA_FALSE_T   0x04
#define LLM_SCHEMA_INT       0x08
#define LLM_SCHEMA_FRACTION  0x10
#define LLM_SCHEMA_STRING    0x20
#define LLM_SCHEMA_ARRAY     0x40
#define LLM_SCHEMA_OBJECT    0x80
#define LLM_SCHEMA_NUMBER    (LLM_SCHEMA_INT|LLM_SCHEMA_FRACTION)
#define LLM_SCHEMA_ANY       0xff

typedef enum {
    LLM_DRAFT_4 = 4,
    LLM_DRAFT_6 = 6,
    LLM_DRAFT_7 = 7,
    LLM_DRAFT_2019 = 8,
    LLM_DRAFT_2020 = 9
} llm_schema_draft_t;

typedef enum {
    LLM_KW_TYPE,
    LLM_KW_ENUM,
    LLM_KW_CONST,
    /* numbers */
    LLM_KW_MINIMUM,
    LLM_KW_MAXIMUM,
    LLM_KW_EXCLUSIVE_MINIMUM,
    LLM_KW_EXCLUSIVE_MAXIMUM,
    LLM_KW_MULTIPLE_OF,
    /* strings */
    LLM_KW_MIN_LENGTH,
    LLM_KW_MAX_LENGTH,
    LLM_KW_PATTERN,
    LLM_KW_FORMAT,
    /* objects */
    LLM_KW_PROPERTIES,
    LLM_KW_PATTERN_PROPERTIES,
    LLM_KW_ADDITIONAL_PROPERTIES,
    LLM_KW_UNEVALUATED_PROPERTIES,
    LLM_KW_PROPERTY_NAMES,
    LLM_KW_REQUIRED,
    LLM_KW_MIN_PROPERTIES,
    LLM_KW_MAX_PROPERTIES,
    /* arrays */
    LLM_KW_PREFIX_ITEMS,
    LLM_KW_ITEMS,
    LLM_KW_ADDITIONAL_ITEMS,
    LLM_KW_UNEVALUATED_ITEMS,
    LLM_KW_CONTAINS,
    LLM_KW_MIN_ITEMS,
    LLM_KW_MAX_ITEMS,
    LLM_KW_UNIQUE_ITEMS,
    /* keywords that consist of other schemas, in the order in which they are
       applied */
    LLM_KW_REF,
    LLM_KW_DYNAMIC_REF,
    LLM_KW_RECURSIVE_REF,
    LLM_KW_ALL_OF,
    LLM_KW_ANY_OF,
    LLM_KW_ONE_OF,
    LLM_KW_NOT,
    LLM_KW_IF,
    LLM_KW_DEPENDENCIES,
    LLM_KW_DEPENDENT_REQUIRED,
    LLM_KW_DEPENDENT_SCHEMAS,
    /* no keywords: results of negations and values */
    LLM_KW_HAS,                         /* a property .key exists, with value
                                           .item */
    LLM_KW_MAY_HAVE,                    /* if property .key exists, its value
                                           is .item */
    LLM_KW_LACKS,
    LLM_KW_SOME,                        /* some property with a key of .rx
                                           exists, with value .item */
    LLM_KW_ITEM,                        /* the item at position .n is .item */
    LLM_KW_SOME_ITEM,                   /* .n items match .item */
    LLM_KW_EACH_ITEM
} llm_schema_kw_t;

#define LLM_KW_FIRST_MADE  LLM_KW_REF

/* schemas below one that has an unevaluated... keyword */
typedef struct llm_schema_scope_s  llm_schema_scope_t;

struct llm_schema_scope_s {
    const llm_schema_scope_t  *parent;
};

typedef struct llm_schema_atom_s  llm_schema_atom_t;

struct llm_schema_atom_s {
    const llm_schema_atom_t   *prev;
    llm_schema_kw_t            kw;
    int                        neg;
    const llm_flat_t          *schema;  /* schema that has the keyword */
    const llm_flat_t          *value;
    const llm_schema_scope_t  *scope;
    llm_str_t                  key;     /* key of HAS, MAY_HAVE, LACKS */
    llm_rx_t                   rx;      /* SOME: keys; with a .schema, those
                                           that it leaves to its
                                           additionalProperties */
    const llm_flat_t          *names;   /* SOME: if set, keys are those that
                                           this schema refuses */
    llm_schema_item_t          item;    /* value of HAS, SOME, ITEM ... */
    int                        any;     /* 1: there is no .item */
    uint32_t                   n;
};

typedef struct llm_schema_todo_s  llm_schema_todo_t;

/* a task of a branch: a keyword or, if schema is NULL, an item, to be
   expanded */
struct llm_schema_todo_s {
    const llm_schema_todo_t   *next;
    const llm_schema_scope_t  *scope;
    const llm_flat_t          *schema;
    const llm_flat_t          *value;
    llm_schema_item_t          item;
    llm_schema_kw_t            kw;
    int                        neg;
};

typedef struct {
    uint32_t                   types;
    const llm_schema_atom_t   *atoms;   /* last one first */
    const llm_schema_todo_t   *todo;
} llm_schema_branch_t;

typedef struct {
    llm_schema_branch_t       *items;   /* fully expanded branches */
    uint32_t                   n;
    uint32_t                   size;
    llm_schema_branch_t       *open;    /* branches not fully expanded yet */
    uint32_t                   n_open;
    uint32_t                   open_size;
} llm_schema_branches_t;

/* numbers by key; keys are not 0 */
typedef struct {
    uint64_t                  *keys;
    uint32_t                  *values;
    uint32_t                   n;
    uint32_t                   size;
} llm_schema_map_t;

typedef struct {
    llm_schema_set_t           set;
    llm_gn_t                   node;
} llm_schema_state_t;

/* a schema with an address of its own */
typedef struct {
    llm_str_t                  uri;     /* address without fragment */
    const llm_flat_t          *v;
} llm_schema_resource_t;

typedef struct {
    const llm_schema_resource_t  *resource;
    llm_str_t                  name;
    const llm_flat_t          *v;
    int                        dynamic;
} llm_schema_anchor_t;

/* an array of unique items, and the value of the keyword */
typedef struct llm_schema_unique_s  llm_schema_unique_t;

struct llm_schema_unique_s {
    llm_gn_t                   node;
    const llm_flat_t          *value;
    llm_schema_unique_t       *prev;
};

/* cache: the keys of the last object, and the expression of all other keys */
typedef struct {
    llm_str_t                 *keys;
    uint32_t                   n;
    llm_rx_t                   rx;
} llm_schema_names_t;

/* what is not read: values of keywords, and schemas; see near.c */
#define LLM_SCHEMA_GONE  32

typedef struct {
    const llm_flat_t          *values[LLM_SCHEMA_GONE];
    uint32_t                   n;
    int                        unevaluated; /* 1: nor are unevaluatedItems and
                                               unevaluatedProperties */
} llm_schema_gone_t;

typedef struct llm_schema_s  llm_schema_t;

struct llm_schema_s {
    llm_gram_build_t          *b;
    llm_rx_pool_t             *pool;
    const llm_flat_t          *root;
    llm_schema_draft_t         draft;
    llm_arena_t                arena;
    llm_err_t                 *err;
    const llm_flat_t          *refused; /* value that was refused, or NULL */
    llm_schema_gone_t          gone;

    uint32_t                   work;    /* steps done */
    uint32_t                   max_work;
    uint64_t                   until_us;    /* end of the thread's CPU time, in
                                               microseconds */
    uint32_t                   max_branches;
    int                        loose;
    int                        negated; /* 1: the expansion has negated
                                           schemas, so branches may contradict
                                           themselves */

    llm_schema_state_t        *states;  /* from n_built on: to be built */
    uint32_t                   n_states;
    uint32_t                   n_built;
    uint32_t                   states_size;
    llm_table_t                table;   /* their numbers, by hash */

    llm_schema_unique_t       *unique;  /* last array of unique items */

    llm_schema_resource_t     *resources;
    uint32_t                   n_resources;
    llm_schema_anchor_t       *anchors;
    uint32_t                   n_anchors;

    llm_schema_map_t           targets; /* targets of references */
    llm_schema_map_t           regexes; /* expressions of patterns and
                                           formats */
    llm_schema_map_t           pairs;   /* pairs of items: 1: disjoint; 2: not
                                           known */
    llm_rx_t                   numbers[17];
    llm_schema_names_t         names;

    /* set by empty.c, which is above its callers: can no value of the types
       satisfy both schemas, or the branch? */
    int (*apart)(llm_schema_t *s, const llm_flat_t *a, const llm_flat_t *b,
        uint32_t types);
    int (*contradicts)(llm_schema_t *s, const llm_schema_branch_t *b);
};

#define LLM_SCHEMA_MAX_WORK      200000
/* most CPU time to read a schema, because other requests wait meanwhile */
#define LLM_SCHEMA_MAX_US        500000
/* bound for all schemas of a grammar, as a multiple of that for one: each tool
   has one or more */
#define LLM_SCHEMA_ALL           4
#define LLM_SCHEMA_MAX_BRANCHES  4096
#define LLM_SCHEMA_MAX_STATES    100000

/* read.c: the document */
typedef struct {
    const char                *name;
    llm_schema_kw_t            kw;
    uint8_t                    types;   /* types that the keyword describes */
    uint8_t                    from;    /* first draft that has it */
    uint8_t                    to;
} llm_schema_row_t;

/* NULL: the keyword is an annotation in this draft */
const llm_schema_row_t *llm_schema_row(const llm_schema_t *s, llm_str_t name);
/* is the value of this keyword, or this schema (row NULL), not read?  Anything
   may match it then, and anything may match its negation */
int llm_schema_gone(const llm_schema_t *s, const llm_schema_row_t *row,
    const llm_flat_t *v);
/* schema.c: as llm_gn_schema_part(), without what is gone (or NULL); *refused:
   the value in the document that is not supported, or that nothing can match;
   NULL: another error */
int llm_schema_read(llm_gram_build_t *b, const llm_flat_t *document,
    const llm_flat_t *part, llm_str_t end, const llm_schema_gone_t *gone,
    llm_gn_t *node, llm_err_t *err, const llm_flat_t **refused);

/* build.c: the node of a set; sets that it refers to are built, too */
int llm_schema_build(llm_schema_t *s, llm_schema_set_t set, llm_str_t end,
    llm_gn_t *node);
int llm_schema_build_all(llm_schema_t *s);

/* why.c: reports the keyword because of which nothing matches the schema;
   LLM_ERROR */
int llm_schema_why(llm_schema_t *s, const llm_flat_t *part);

/* refuses a keyword of a schema; value: the keyword's value or something
   inside it */
int llm_schema_refuse(llm_schema_t *s, const llm_flat_t *value,
    const char *fmt, ...) llm_printf_like(3, 4);
int llm_schema_too_large(llm_schema_t *s);
/* a count that is not negative, at most UINT32_MAX - 1 */
int llm_schema_count(llm_schema_t *s, const llm_flat_t *v, uint32_t *n);
int llm_schema_is(llm_schema_t *s, const llm_flat_t *v,
    llm_flat_type_t type);
llm_schema_item_t llm_schema_item(const llm_schema_t *s,
    const llm_flat_t *v, uint32_t flags);
const llm_flat_t *llm_schema_flat(const llm_schema_t *s,
    llm_schema_item_t item);
/* 1: matches everything; 0: matches nothing; -1: neither */
int llm_schema_trivial(const llm_schema_t *s, const llm_flat_t *v);
uint32_t llm_schema_type_of(const llm_schema_t *s, const llm_flat_t *v);
int llm_schema_map_get(const llm_schema_map_t *m, uint64_t key,
    uint32_t *value);
int llm_schema_map_put(llm_schema_t *s, llm_schema_map_t *m, uint64_t key,
    uint32_t value);
void *llm_schema_alloc(llm_schema_t *s, size_t size);
/* makes room for one more in an array of count elements of size bytes */
int llm_schema_grow(llm_schema_t *s, void *array, uint32_t count,
    uint32_t *room, size_t size);
uint32_t llm_schema_hash(const void *data, size_t len);

/* schema/ref.c: drafts, addresses and references */
int llm_schema_open(llm_schema_t *s);
int llm_schema_target(llm_schema_t *s, const llm_flat_t *ref,
    llm_schema_kw_t kw, const llm_flat_t **target);

/* schema/expand.c */
int llm_schema_expand(llm_schema_t *s, llm_schema_set_t set, uint32_t types,
    llm_schema_branches_t *out);

/* branch.c; fork: adds a branch that is not fully expanded */
int llm_schema_fork(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_branches_t *out);
int llm_schema_todo(llm_schema_t *s, llm_schema_branch_t *b,
    llm_schema_item_t item, const llm_schema_scope_t *scope);
int llm_schema_todo_kw(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t);
/* adds a fully expanded branch */
int llm_schema_keep(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_branches_t *out);
int llm_schema_fork_item(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_item_t item, const llm_schema_scope_t *scope,
    llm_schema_branches_t *out);
int llm_schema_fork_atom(llm_schema_t *s, const llm_schema_branch_t *b,
    const llm_schema_atom_t *a, llm_schema_branches_t *out);
int llm_schema_type(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v, int neg);
int llm_schema_atom(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_atom_t *atom);
int llm_schema_has(llm_schema_t *s, llm_schema_branch_t *b, llm_str_t key,
    const llm_schema_item_t *item);
int llm_schema_lacks(llm_schema_t *s, llm_schema_branch_t *b, llm_str_t key);
int llm_schema_bound(llm_schema_t *s, llm_schema_branch_t *b,
    llm_schema_kw_t kw, uint32_t n);
int llm_schema_in_scope(const llm_schema_atom_t *a,
    const llm_schema_scope_t *scope);

/* schema/apply.c: as llm_schema_not() */
int llm_schema_all_of(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t);
int llm_schema_any_of(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out);
int llm_schema_one_of(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out);
int llm_schema_if(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out);
int llm_schema_depend(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out);

/* not.c: LLM_OK: continue with b; LLM_END: out has the resulting branches */
int llm_schema_not(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out);
int llm_schema_not_schema(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v, llm_schema_branches_t *out);

/* schema/not_keywords.c: the same */
int llm_schema_not_value(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *v, llm_schema_branches_t *out);
int llm_schema_not_enum(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t);
int llm_schema_not_properties(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out);
int llm_schema_not_others(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t);
int llm_schema_not_required(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_flat_t *schema, const llm_flat_t *names,
    llm_schema_branches_t *out);
int llm_schema_not_bound(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t);
int llm_schema_not_items(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t, llm_schema_branches_t *out);
int llm_schema_not_contains(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t);
int llm_schema_not_scalar(llm_schema_t *s, llm_schema_branch_t *b,
    const llm_schema_todo_t *t);
int llm_schema_not_refuse(llm_schema_t *s, const llm_flat_t *v,
    const char *what);

/* empty.c: 1: certainly nothing matches; 0: not known; LLM_ERROR */
int llm_schema_branch_empty(llm_schema_t *s, const llm_schema_branch_t *b,
    int depth);
int llm_schema_apart(llm_schema_t *s, const llm_flat_t *a,
    const llm_flat_t *b, uint32_t types);
int llm_schema_contradicts(llm_schema_t *s, const llm_schema_branch_t *b);

/* schema/state.c: the node of a set, which may be built later */
int llm_schema_state(llm_schema_t *s, llm_schema_set_t set, llm_gn_t *node);

typedef struct {
    llm_gn_t                  *items;
    uint32_t                   n;
    uint32_t                   size;
} llm_schema_nodes_t;

int llm_schema_nodes_add(llm_schema_t *s, llm_schema_nodes_t *nodes,
    llm_gn_t node);

/* a set that is being collected */
typedef struct {
    llm_schema_item_t         *items;
    uint32_t                   n;
    uint32_t                   size;
    int                        none;    /* 1: nothing can match it */
} llm_schema_bag_t;

int llm_schema_bag_add(llm_schema_t *s, llm_schema_bag_t *bag,
    llm_schema_item_t item);
int llm_schema_bag_schema(llm_schema_t *s, llm_schema_bag_t *bag,
    const llm_flat_t *v);
llm_schema_set_t llm_schema_bag_set(const llm_schema_bag_t *bag);

/* schema/keys.c */
typedef struct llm_schema_key_s  llm_schema_key_t;
typedef struct llm_schema_link_s  llm_schema_link_t;

/* the value of the key is v in the "properties" of schema */
struct llm_schema_link_s {
    llm_schema_link_t   *next;
    const llm_flat_t    *schema;
    const llm_flat_t    *v;
};

struct llm_schema_key_s {
    llm_str_t                  key;
    uint32_t                   hash;
    int                        required;
    int                        lacking;
    llm_schema_link_t         *links;   /* "properties" that have the key */
    llm_schema_bag_t           value;
};

typedef struct {
    llm_rx_t                   rx;
    llm_schema_bag_t           value;
} llm_schema_others_t;

typedef struct {
    const llm_schema_atom_t  **atoms;   /* atoms about objects, in order */
    uint32_t                   n_atoms;
    llm_schema_key_t          *keys;
    uint32_t                   n_keys;
    uint32_t                   keys_size;
    uint32_t                  *table;
    uint32_t                   table_size;
    llm_rx_t                   names;
    llm_schema_others_t       *others;
    uint32_t                   n_others;
    uint32_t                   others_size;
    const llm_schema_atom_t   *some;    /* SOME atom that split() has to
                                           resolve */
    llm_rx_t                   some_rx;
    uint32_t                   min;
    uint32_t                   max;
    uint32_t                   required;
    int                        dead;
} llm_schema_object_t;

int llm_schema_object_atoms(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_object_t *o);
int llm_schema_object_keys(llm_schema_t *s, llm_schema_object_t *o);
int llm_schema_object_names(llm_schema_t *s, llm_schema_object_t *o);

/* schema/values.c */
int llm_schema_object_plan(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_object_t *o);
/* the branches in which `some` is one of the known keys */
int llm_schema_object_split(llm_schema_t *s, const llm_schema_branch_t *b,
    const llm_schema_object_t *o, llm_schema_branches_t *out);
/* schema/object.c: adds the nodes of a branch's objects */
int llm_schema_object(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_nodes_t *nodes);

/* schema/array.c */
typedef struct {
    llm_schema_bag_t          *prefix;
    uint32_t                   n_prefix;
    llm_schema_bag_t           items;
    uint32_t                   min;
    uint32_t                   max;
    const llm_flat_t          *unique;  /* value of the keyword uniqueItems */
    llm_schema_item_t          contains;
    int                        contains_any;
    uint32_t                   min_contains;
    const llm_schema_atom_t   *some;    /* SOME_ITEM atom that split() has to
                                           resolve */
    int                        dead;
} llm_schema_array_t;

int llm_schema_array_plan(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_array_t *a);
int llm_schema_array(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_schema_nodes_t *nodes);

/* string.c, number.c: texts that a branch allows */
int llm_schema_string(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_rx_t *rx);
int llm_schema_pattern(llm_schema_t *s, const llm_flat_t *v, llm_str_t text,
    llm_rx_t *rx);
int llm_schema_number(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_rx_t *rx);

/* format.c: LLM_ABSENT: the format is an annotation */
int llm_schema_format(llm_schema_t *s, const llm_flat_t *v, llm_rx_t *rx);

#endif /* LLM_SCHEMA_INTERNAL_H */
