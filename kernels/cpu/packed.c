/*
 * Packed weights as a file, which later loads map instead of packing: a head, a
 * row for each weight in the order in which they are created, and the panels of
 * each, on cache lines.
 *
 * The caller keeps the bytes mapped while the model is open, and knows the file
 * that they were packed from.  A row is used only for a weight of the same type
 * and sizes; weights that have none are packed.
 */

#define _GNU_SOURCE

#include "kernels/cpu/cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* number of the layouts in pack.c: a file with another number is not read */
#define LLM_PACKED_LAYOUT  1

#define LLM_PACKED_ALIGN   64

/*
 * The file is written in pieces of so many bytes, at multiples of them: some
 * file systems then keep it in huge pages.  The writer looks before each piece
 * whether it is to stop.
 */
#define LLM_PACKED_PIECE   ((size_t) 4 << 20)

typedef struct {
    uint64_t             n;             /* rows */
    uint64_t             size;          /* bytes of all */
    uint64_t             pad[6];
} llm_packed_head_t;

struct llm_packed_row_s {
    uint32_t             type;
    uint32_t             n_out;
    uint32_t             n_in;
    uint32_t             n_experts;
    uint64_t             at;            /* from the start of the head */
    uint64_t             size;          /* bytes */
};

typedef struct {
    int                  fd;
    char                *buf;           /* [LLM_PACKED_PIECE] */
    size_t               n;             /* bytes in it */
    size_t               at;            /* bytes of the file before them */
    const int           *cancel;
    llm_err_t           *err;
} llm_packed_out_t;


/* panels of all instruction sets are the same, but that is no promise */

void
llm_cpu_packed_key(llm_exec_t *exec, char *buf, size_t size)
{
    llm_cpu_t  *cpu = (llm_cpu_t *) exec;

    snprintf(buf, size, "cpu, layout %d, %s%s", LLM_PACKED_LAYOUT,
             cpu->kernels.name, cpu->bf16 ? ", bf16" : "");
}


int
llm_cpu_packed_use(llm_exec_t *exec, const void *data, size_t size)
{
    uint64_t                  i;
    llm_cpu_t                *cpu = (llm_cpu_t *) exec;
    const llm_packed_row_t   *rows;
    const llm_packed_head_t  *head = data;

    if (size < sizeof(*head) || head->size != size
        || head->n > (size - sizeof(*head)) / sizeof(*rows))
    {
        return LLM_ERROR;
    }

    rows = (const void *) (head + 1);

    for (i = 0; i < head->n; i++) {
        if (rows[i].at % LLM_PACKED_ALIGN || rows[i].at > size
            || rows[i].size > size - rows[i].at)
        {
            return LLM_ERROR;
        }
    }

    cpu->packed.data = data;
    cpu->packed.next = rows;
    cpu->packed.end = rows + head->n;

    return LLM_OK;
}


int
llm_cpu_packed_take(llm_cpu_t *cpu, llm_weight_t *w)
{
    llm_cpu_packed_t        *p = &cpu->packed;
    const llm_packed_row_t  *row = p->next;

    if (row == p->end) {
        return 0;
    }

    p->next++;

    if (row->type != w->type || row->n_out != w->n_out || row->n_in != w->n_in
        || row->n_experts != w->n_experts || row->size != w->size)
    {
        return 0;
    }

    w->data = (uint8_t *) (uintptr_t) p->data + row->at;
    llm_cpu_populate(w->data, w->size);

    return 1;
}


/* writes what is in the buffer, and waits until the piece before is on the
   disk.  Otherwise fsync() would wait for gigabytes at the end, and a model that
   is unloaded then waits for its writer */

static int
llm_packed_flush(llm_packed_out_t *o)
{
    size_t   done, before;
    ssize_t  n;

    for (done = 0; done < o->n; done += (size_t) n) {

        if (__atomic_load_n(o->cancel, __ATOMIC_RELAXED)) {
            return llm_fail(o->err, "the writing was stopped");
        }

        n = write(o->fd, o->buf + done, o->n - done);

        if (n == -1 && errno == EINTR) {
            n = 0;

        } else if (n == -1) {
            return llm_fail(o->err, "write: %s", strerror(errno));
        }
    }

    before = llm_min(o->at, LLM_PACKED_PIECE);
    (void) sync_file_range(o->fd, (off_t) (o->at - before),
                           (off_t) (before + o->n),
                           SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE);

    o->at += o->n;
    o->n = 0;

    return LLM_OK;
}


/* NULL: zeros */

static int
llm_packed_put(llm_packed_out_t *o, const void *data, size_t size)
{
    size_t       n;
    const char  *p;

    for (p = data; size; size -= n) {
        n = llm_min(size, LLM_PACKED_PIECE
                          - (o->at + o->n) % LLM_PACKED_PIECE);

        if (p) {
            memcpy(o->buf + o->n, p, n);
            p += n;

        } else {
            memset(o->buf + o->n, 0, n);
        }

        o->n += n;

        if ((o->at + o->n) % LLM_PACKED_PIECE == 0
            && llm_packed_flush(o) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* head and rows; the caller frees them.  NULL: no memory */

static llm_packed_head_t *
llm_packed_plan(const llm_cpu_t *cpu, size_t *size)
{
    size_t               n, at;
    llm_packed_row_t    *row;
    llm_packed_head_t   *head;
    const llm_weight_t  *w;

    for (n = 0, w = cpu->weights; w; w = w->next) {
        n += w->data != NULL;
    }

    *size = sizeof(*head) + n * sizeof(*row);
    head = calloc(1, *size);

    if (head == NULL) {
        return NULL;
    }

    head->n = n;
    row = (void *) (head + 1);
    at = *size;

    for (w = cpu->weights; w; w = w->next) {
        if (w->data) {
            row->type = w->type;
            row->n_out = w->n_out;
            row->n_in = w->n_in;
            row->n_experts = w->n_experts;
            row->at = llm_align(at, LLM_PACKED_ALIGN);
            row->size = w->size;
            at = row->at + w->size;
            row++;
        }
    }

    head->size = at;

    return head;
}


static int
llm_packed_put_all(const llm_cpu_t *cpu, llm_packed_out_t *o)
{
    int                  rc;
    size_t               at, size;
    llm_packed_head_t   *head;
    const llm_weight_t  *w;

    head = llm_packed_plan(cpu, &size);

    if (head == NULL) {
        return llm_fail(o->err, "no memory for the list of weights");
    }

    rc = llm_packed_put(o, head, size);
    free(head);

    for (at = size, w = cpu->weights; w && rc == LLM_OK; w = w->next) {
        if (w->data) {
            size = llm_align(at, LLM_PACKED_ALIGN) - at;
            rc = llm_packed_put(o, NULL, size);

            if (rc == LLM_OK) {
                rc = llm_packed_put(o, w->data, w->size);
            }

            at += size + w->size;
        }
    }

    return rc == LLM_OK ? llm_packed_flush(o) : LLM_ERROR;
}


int
llm_cpu_packed_write(llm_exec_t *exec, int fd, const int *cancel,
    llm_err_t *err)
{
    int               rc;
    off_t             at;
    llm_packed_out_t  o = { fd, NULL, 0, 0, cancel, err };

    at = lseek(fd, 0, SEEK_CUR);
    o.buf = malloc(LLM_PACKED_PIECE);

    if (at == -1 || o.buf == NULL) {
        free(o.buf);
        return llm_fail(err, "%s", at == -1 ? strerror(errno) : "no memory");
    }

    o.at = (size_t) at;
    rc = llm_packed_put_all((llm_cpu_t *) exec, &o);
    free(o.buf);

    return rc;
}
