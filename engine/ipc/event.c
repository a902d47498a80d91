/*
 * Events on their way to a worker; see event.h.
 */

#include "engine/ipc/event.h"

#include <errno.h>
#include <unistd.h>


void
llm_port_open(llm_port_t *p, llm_zone_t *z, const llm_kept_t *kept,
    uint32_t worker, int fd)
{
    memset(p, 0, sizeof(*p));

    p->worker = llm_zone_worker(z, worker);
    p->sent = llm_zone_sent(z, kept, worker);
    p->fd = fd;
    llm_ring_producer(&p->ring, llm_zone_at(z, p->worker->up));
}


void
llm_port_show(llm_port_t *p)
{
    ssize_t   n;
    uint64_t  one = 1;

    if (!llm_ring_publish(&p->ring)) {
        return;
    }

    if (!atomic_exchange(&p->worker->armed, 0)) {
        return;
    }

    llm_zone_add(p->sent->wakeups, 1);

    do {
        n = write(p->fd, &one, sizeof(one));
    } while (n == -1 && errno == EINTR);
}


llm_event_t *
llm_event_open(const llm_to_t *to, llm_event_type_t type, uint32_t index,
    size_t extra)
{
    size_t        size;
    llm_port_t   *port;
    llm_event_t  *ev;

    port = to->port;
    size = llm_align(sizeof(*ev) + extra, 8);

    ev = llm_ring_reserve(&port->ring, size);

    if (ev == NULL) {

        /* asks to be woken, then tries again: the worker checks want_room after
           it has made room */

        atomic_store(&port->worker->want_room, 1);

        ev = llm_ring_reserve(&port->ring, size);
        if (ev == NULL) {
            return NULL;
        }
    }

    memset(ev, 0, sizeof(*ev));
    ev->size = (uint32_t) size;
    ev->type = type;
    ev->slot = to->slot;
    ev->index = index;
    ev->ticket = to->ticket;

    return ev;
}


void
llm_event_close(const llm_to_t *to, llm_event_t *ev)
{
    llm_ring_push(&to->port->ring, (llm_record_t *) ev);

    llm_zone_add(to->port->sent->events, 1);

    if (ev->type == LLM_EV_TEXT) {
        llm_zone_add(to->port->sent->token_events, 1);
    }
}


static int
llm_event_was_read(const llm_to_t *to)
{
    return atomic_load(&to->port->ring.mem->head) >= to->mark;
}


int
llm_event_waits(llm_to_t *to, size_t size)
{
    if (to->max_unread == 0 || to->unread == 0
        || to->unread + size <= to->max_unread)
    {
        return 0;
    }

    if (!llm_event_was_read(to)) {

        /* asks to be woken, then checks again, as with a full ring */

        atomic_store(&to->port->worker->want_room, 1);

        if (!llm_event_was_read(to)) {
            return 1;
        }
    }

    to->unread = 0;

    return 0;
}


static char *
llm_event_put(llm_event_t *ev, char *p, llm_ref_t *ref, const char *s)
{
    ref->off = (uint32_t) (p - (char *) ev);
    ref->len = (uint32_t) strlen(s);
    memcpy(p, s, ref->len);

    return p + ref->len;
}


int
llm_event_failure(const llm_to_t *to, const llm_err_t *err,
    uint32_t retry_after, uint32_t n_tokens, const llm_period_t *prepared)
{
    char         *p;
    llm_event_t  *ev;

    ev = llm_event_open(to, LLM_EV_ERROR, 0,
                        strlen(err->msg) + strlen(err->code)
                        + strlen(err->param));
    if (ev == NULL) {
        return LLM_FULL;
    }

    ev->u.error.status = (uint16_t) err->status;
    ev->u.error.retry_after = (uint16_t) llm_min(retry_after, UINT16_MAX);
    ev->u.error.completion_tokens = n_tokens;
    ev->u.error.prepared = *prepared;
    ev->u.error.n_prompt = err->n_prompt;
    ev->u.error.n_ctx = err->n_ctx;

    p = llm_event_put(ev, (char *) (ev + 1), &ev->u.error.msg, err->msg);
    p = llm_event_put(ev, p, &ev->u.error.code, err->code);
    (void) llm_event_put(ev, p, &ev->u.error.param, err->param);

    llm_event_close(to, ev);

    return LLM_OK;
}


int
llm_event_error(const llm_to_t *to, const llm_err_t *err,
    uint32_t retry_after)
{
    llm_period_t  none = { 0, 0 };

    return llm_event_failure(to, err, retry_after, 0, &none);
}
