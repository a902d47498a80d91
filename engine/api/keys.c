/*
 * The table of API keys; see keys.h.  Digests are hashed with random factors,
 * so that no file of keys can make lookups slow.
 */

#include "engine/api/key_line.h"
#include "engine/base/file.h"
#include "engine/base/sha256.h"

#include <stdio.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* lines with a digest are longer */
#define LLM_KEYS_SHORT  64

/* byte order mark that some editors write first */
#define LLM_KEYS_MARK   "\xef\xbb\xbf"

/* bounds of what a log is told about changed keys: ids, and bytes of each id */
#define LLM_KEYS_TOLD   8
#define LLM_KEYS_ID     64

#define LLM_KEYS_WORDS  (LLM_SHA256_LEN / 4)


struct llm_keys_s {
    llm_arena_t   arena;
    llm_key_t    *keys;
    uint32_t     *slots;                /* index + 1; 0: free */
    uint32_t      n;
    uint32_t      mask;                 /* slots - 1 */
    uint64_t      factors[LLM_KEYS_WORDS + 1];
};


/* multilinear hashing with random factors: only by chance do two digests have
   one hash */

static uint32_t
llm_keys_hash(const llm_keys_t *t, const unsigned char *digest)
{
    int       i;
    uint32_t  words[LLM_KEYS_WORDS];
    uint64_t  h;

    memcpy(words, digest, sizeof(words));
    h = t->factors[LLM_KEYS_WORDS];

    for (i = 0; i < LLM_KEYS_WORDS; i++) {
        h += t->factors[i] * words[i];
    }

    return (uint32_t) (h >> 32);
}


/* compares all bytes, so that the time tells nothing */

static int
llm_keys_same(const unsigned char *a, const unsigned char *b)
{
    int       i;
    uint64_t  x[4], y[4], diff;

    memcpy(x, a, sizeof(x));
    memcpy(y, b, sizeof(y));

    for (i = 0, diff = 0; i < 4; i++) {
        diff |= x[i] ^ y[i];
    }

    return diff == 0;
}


static const llm_key_t *
llm_keys_look(const llm_keys_t *t, const unsigned char *digest)
{
    uint32_t  i;

    for (i = llm_keys_hash(t, digest) & t->mask; t->slots[i];
         i = (i + 1) & t->mask)
    {
        if (llm_keys_same(t->keys[t->slots[i] - 1].digest, digest)) {
            return &t->keys[t->slots[i] - 1];
        }
    }

    return NULL;
}


const llm_key_t *
llm_keys_find(const llm_keys_t *t, const char *secret, size_t len)
{
    unsigned char  digest[LLM_SHA256_LEN];

    if (len == 0 || len > LLM_KEY_SECRET) {
        return NULL;
    }

    if (llm_sha256(secret, len, digest) != LLM_OK) {
        return NULL;
    }

    return llm_keys_look(t, digest);
}


/* ---- making a table ---- */

/* returns the number of another key with this digest, or 0 after taking a slot
   for it */

static uint32_t
llm_keys_put(llm_keys_t *t, uint32_t *slots, const unsigned char *digests,
    size_t step, uint32_t n)
{
    uint32_t              i;
    const unsigned char  *digest;

    digest = digests + n * step;

    for (i = llm_keys_hash(t, digest) & t->mask; slots[i];
         i = (i + 1) & t->mask)
    {
        if (llm_keys_same(digests + (slots[i] - 1) * step, digest)) {
            return slots[i];
        }
    }

    slots[i] = n + 1;

    return 0;
}


/* ids must be unique, too: they are put into slots of their own */

static int
llm_keys_check_ids(llm_keys_t *t, const uint32_t *lines, uint32_t *line,
    llm_err_t *err)
{
    int             rc;
    uint32_t        i, other, *slots;
    const char     *id;
    unsigned char  *digests;

    slots = calloc((size_t) t->mask + 1, sizeof(uint32_t));
    digests = malloc(((size_t) t->n + 1) * LLM_SHA256_LEN);
    rc = LLM_OK;

    if (slots == NULL || digests == NULL) {
        *line = 0;
        rc = llm_fail(err, "no memory is left for the keys");
    }

    for (i = 0; rc == LLM_OK && i < t->n; i++) {
        id = llm_key_member(&t->keys[i], "id", 2);

        if (llm_sha256(id, strlen(id), digests + (size_t) i * LLM_SHA256_LEN)
            != LLM_OK)
        {
            *line = 0;
            rc = llm_fail(err, "no SHA-256 for the table of keys");
            break;
        }

        other = llm_keys_put(t, slots, digests, LLM_SHA256_LEN, i);

        if (other) {
            *line = lines[i];
            rc = llm_fail(err, "line %u has the id \"%s\", too",
                          lines[other - 1], id);
        }
    }

    free(slots);
    free(digests);

    return rc;
}


static int
llm_keys_index(llm_keys_t *t, const uint32_t *lines, uint32_t *line,
    llm_err_t *err)
{
    uint32_t  i, other;

    for (t->mask = 1; t->mask < 2 * t->n; t->mask = 2 * t->mask + 1) {
        /* void */
    }

    *line = 0;

    t->slots = llm_arena_calloc(&t->arena,
                                ((size_t) t->mask + 1) * sizeof(uint32_t));
    if (t->slots == NULL) {
        return llm_fail(err, "no memory is left for the keys");
    }

    if (getrandom(t->factors, sizeof(t->factors), 0)
        != (ssize_t) sizeof(t->factors))
    {
        return llm_fail(err, "no random numbers for the table of keys");
    }

    for (i = 0; i < t->n; i++) {
        other = llm_keys_put(t, t->slots, t->keys[0].digest,
                             sizeof(llm_key_t), i);

        if (other) {
            *line = lines[i];
            return llm_fail(err, "line %u has the same sha256",
                            lines[other - 1]);
        }
    }

    return llm_keys_check_ids(t, lines, line, err);
}


/* the line at p without white space around it; *end: the line's end */

static llm_str_t
llm_keys_line(const char *p, const char *last, const char **end)
{
    llm_str_t  s;

    *end = memchr(p, '\n', (size_t) (last - p));
    *end = *end ? *end : last;

    s.data = p;
    s.len = (size_t) (*end - p);

    while (s.len && strchr(" \t\r", s.data[s.len - 1]) && s.data[s.len - 1]) {
        s.len--;
    }

    while (s.len && (*s.data == ' ' || *s.data == '\t')) {
        s.data++;
        s.len--;
    }

    return s;
}


/* the number of lines that may be keys; *blank: all lines are empty */

static uint32_t
llm_keys_most(const char *data, size_t len, int *blank)
{
    uint32_t     n;
    llm_str_t    s;
    const char  *p, *end;

    n = 0;
    *blank = 1;

    for (p = data; p < data + len; p = end + 1) {
        s = llm_keys_line(p, data + len, &end);
        *blank = *blank && s.len == 0;
        n += s.len > LLM_KEYS_SHORT && *s.data != '#';
    }

    return n;
}


static int
llm_keys_read_lines(llm_keys_t *t, const char *data, size_t len,
    uint32_t *lines, uint32_t *line, llm_err_t *err)
{
    int                rc;
    llm_key_t          short_one, *k;
    llm_str_t          s;
    const char        *p, *end;
    llm_key_reader_t   rd;

    llm_key_reader_init(&rd, &t->arena);
    rc = LLM_OK;
    *line = 0;

    for (p = data; rc == LLM_OK && p < data + len; p = end + 1) {
        (*line)++;
        s = llm_keys_line(p, data + len, &end);

        if (s.len == 0 || *s.data == '#') {
            continue;
        }

        /* a short line has no valid key; reading it gives the error */

        k = (s.len > LLM_KEYS_SHORT) ? &t->keys[t->n] : &short_one;
        rc = llm_key_read_line(&rd, s.data, s.len, k, err);

        if (rc == LLM_OK) {
            lines[t->n++] = *line;
        }
    }

    llm_key_reader_free(&rd);

    return rc;
}


llm_keys_t *
llm_keys_parse(const char *data, size_t len, llm_err_t *err)
{
    int          rc, blank;
    char         why[sizeof(err->msg)];
    uint32_t     n, line, *lines;
    llm_keys_t  *t;

    if (len >= 3 && memcmp(data, LLM_KEYS_MARK, 3) == 0) {
        data += 3;
        len -= 3;
    }

    n = llm_keys_most(data, len, &blank);

    if (blank) {
        (void) llm_fail(err, "it is empty; a file without keys has a line "
                        "that begins with \"#\"");
        return NULL;
    }

    if (n > LLM_KEYS_MAX) {
        (void) llm_fail(err, "it has more than %u keys", LLM_KEYS_MAX);
        return NULL;
    }

    t = calloc(1, sizeof(llm_keys_t));
    lines = malloc(((size_t) n + 1) * sizeof(uint32_t));

    if (t) {
        llm_arena_init(&t->arena, (size_t) 4 * LLM_KEYS_BYTES);
        t->keys = llm_arena_alloc(&t->arena,
                                  ((size_t) n + 1) * sizeof(llm_key_t));
    }

    line = 0;

    if (t == NULL || t->keys == NULL || lines == NULL) {
        rc = llm_fail(err, "no memory is left for the keys");

    } else {
        rc = llm_keys_read_lines(t, data, len, lines, &line, err);

        if (rc == LLM_OK) {
            rc = llm_keys_index(t, lines, &line, err);
        }
    }

    free(lines);

    if (rc == LLM_OK) {
        return t;
    }

    llm_keys_free(t);

    if (line) {
        memcpy(why, err->msg, sizeof(why));
        (void) llm_fail(err, "line %u: %s", line, why);
    }

    return NULL;
}


static void
llm_keys_id(const struct stat *st, llm_keys_id_t *id)
{
    memset(id, 0, sizeof(llm_keys_id_t));

    id->device = (uint64_t) st->st_dev;
    id->inode = (uint64_t) st->st_ino;
    id->size = (uint64_t) st->st_size;
    id->modified[0] = st->st_mtim.tv_sec;
    id->modified[1] = st->st_mtim.tv_nsec;
    id->changed[0] = st->st_ctim.tv_sec;
    id->changed[1] = st->st_ctim.tv_nsec;
}


void
llm_keys_which(const char *path, llm_keys_id_t *id)
{
    struct stat  st;

    memset(id, 0, sizeof(llm_keys_id_t));

    if (stat(path, &st) == 0) {
        llm_keys_id(&st, id);
    }
}


/* the file's identity is taken before the file is read: if the file is written
   meanwhile, it counts as another one the next time */

static int
llm_keys_text(const char *path, llm_keys_id_t *id, llm_buf_t *b,
    llm_err_t *err)
{
    int          fd, rc;
    struct stat  st;

    fd = llm_file_open(path, err);
    if (fd == -1) {
        return LLM_ERROR;
    }

    if (id && fstat(fd, &st) == 0) {
        llm_keys_id(&st, id);
    }

    rc = llm_file_read_fd(fd, path, b, err);
    (void) close(fd);

    return rc;
}


llm_keys_t *
llm_keys_read(const char *path, llm_keys_id_t *id, llm_err_t *err)
{
    char         why[sizeof(err->msg)];
    llm_buf_t    b;
    llm_keys_t  *t;

    llm_buf_init(&b, LLM_KEYS_BYTES);
    t = NULL;

    if (llm_keys_text(path, id, &b, err) == LLM_OK) {
        t = llm_keys_parse(b.data, b.len, err);

        if (t == NULL) {
            memcpy(why, err->msg, sizeof(why));
            (void) llm_fail(err, "%s: %s", path, why);
        }
    }

    llm_buf_free(&b);

    return t;
}


void
llm_keys_free(llm_keys_t *t)
{
    if (t) {
        llm_arena_free(&t->arena);
        free(t);
    }
}


uint32_t
llm_keys_count(const llm_keys_t *t)
{
    return t->n;
}


/* ---- one key ---- */

int
llm_key_age(const llm_key_t *k, int64_t now)
{
    return now < k->not_before ? -1 : now >= k->expires;
}


/* lists the keys of one table that the other has not */

static size_t
llm_keys_list(const llm_keys_t *of, const llm_keys_t *not_in, const char *word,
    char *out, size_t size)
{
    size_t            len;
    uint32_t          i, n;
    const llm_key_t  *k;
    char              id[LLM_KEYS_ID];

    len = 0;
    n = 0;

    for (i = 0; i < of->n; i++) {
        k = &of->keys[i];

        if (llm_keys_look(not_in, k->digest)) {
            continue;
        }

        if (n < LLM_KEYS_TOLD) {
            (void) llm_clean(id, sizeof(id), llm_key_member(k, "id", 2),
                             strlen(llm_key_member(k, "id", 2)));
            len += (size_t) snprintf(out + len, size - len, "%s%s%s",
                                     n ? ", " : "; ", n ? "" : word, id);
            len = llm_min(len, size - 1);
        }

        n++;
    }

    if (n > LLM_KEYS_TOLD) {
        len += (size_t) snprintf(out + len, size - len, " and %u more",
                                 n - LLM_KEYS_TOLD);
        len = llm_min(len, size - 1);
    }

    return len;
}


void
llm_keys_changes(const llm_keys_t *old, const llm_keys_t *now, char *out,
    size_t size)
{
    size_t  len;

    *out = '\0';

    if (old) {
        len = llm_keys_list(now, old, "came: ", out, size);
        (void) llm_keys_list(old, now, "went: ", out + len, size - len);
    }
}


const char *
llm_key_member(const llm_key_t *k, const char *name, size_t len)
{
    size_t       n;
    const char  *p, *value;

    for (p = k->text; p < k->text + k->models; p = value + strlen(value) + 1) {
        n = strlen(p);
        value = p + n + 1;

        if (n == len && strncasecmp(p, name, len) == 0) {
            return value;
        }
    }

    return NULL;
}


int
llm_key_names_model(const llm_key_t *k, llm_str_t name)
{
    size_t       n;
    const char  *p;

    for (p = k->text + k->models; p < k->text + k->len; p += n + 1) {
        n = strlen(p);

        if (p[n - 1] == '*'
            ? name.len >= n - 1 && memcmp(p, name.data, n - 1) == 0
            : name.len == n && memcmp(p, name.data, n) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* a short secret may be a word that its ends give away */

void
llm_key_mask(char *out, size_t size, const char *secret, size_t len)
{
    char    text[LLM_KEY_MASK];
    size_t  i, n, head, tail;

    n = llm_min(len, sizeof(text) - 1);
    head = len >= 32 ? 5 : 0;
    tail = len >= 32 ? 4 : 0;

    for (i = 0; i < n; i++) {
        text[i] = (i < head) ? secret[i]
                  : (i + tail >= n) ? secret[len - n + i] : '*';
    }

    (void) llm_clean(out, size, text, n);
}
