/*
 * What a worker has to tell the engine while there is no room in the ring: of
 * each request the words that count come, in the end, and no others.  And the
 * events of the engine, which are shown before they are handed out.
 */

#include "engine/ipc/zone.h"

#include <sys/eventfd.h>
#include <sys/mman.h>

#include "t/unit/tap.h"

#define MOST  5000

static llm_zone_t    *zone;
static void          *mem;
static size_t         size;
static llm_client_t  *client;
static llm_ring_t     down;
static uint64_t       tickets[MOST];
static uint32_t       n;                /* requests that fill the ring */

/* what the engine has been told of each, in order, by the numbers of words */
static uint32_t       words[MOST];


static void
on_event(void *data, const llm_event_t *ev)
{
    *(llm_event_t *) data = *ev;
}


/* as many requests as there is room for */

static void
fill(void)
{
    uint32_t           retry;
    llm_err_t          err;
    llm_request_t      q;
    llm_zone_model_t   m = { .parallel = 100 };
    llm_client_conf_t  conf;

    size = llm_zone_size(1, 1, 1 << 17);
    mem = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS, -1,
               0);
    zone = llm_zone_init(mem, 1, &m, 1, 1 << 17, MOST);

    conf.zone = zone;
    conf.worker = 0;
    conf.engine_fd = eventfd(0, EFD_NONBLOCK);
    client = llm_client_attach(&conf);
    llm_ring_consumer(&down, llm_zone_at(zone, llm_zone_worker(zone, 0)->down));

    for (n = 0; n < MOST; n++) {
        memset(&q, 0, sizeof(q));
        q.head.size = sizeof(q);
        q.head.type = LLM_MSG_REQUEST;
        q.head.slot = n;
        q.n = 1;

        if (llm_client_submit(client, &q, &retry, &err) != LLM_OK) {
            break;
        }

        tickets[n] = q.head.ticket;
    }

    ok(n > 100 && n < MOST, "%u requests fill the ring", n);
    memset(words, 0, sizeof(words));
}


static void
tell(uint32_t slot, llm_msg_type_t type)
{
    llm_client_signal(client, type, slot, tickets[slot]);
}


/* the engine reads what there is, until there is nothing */

static void
hear(void)
{
    int               any;
    llm_event_t       ev;
    const llm_msg_t  *msg;

    do {
        any = 0;

        while ((msg = (const llm_msg_t *) llm_ring_next(&down)) != NULL) {
            any = 1;
            words[msg->slot] = words[msg->slot] * 10 + msg->type;
        }

        llm_ring_release(&down);
        (void) llm_client_drain(client, on_event, &ev, 0);
    } while (any);
}


static void
clear(void)
{
    llm_client_detach(client);
    munmap(mem, size);
}


/* whether it may run is said once; its pace is another thing */

static void
test_grants(void)
{
    int       first, later, gone;
    uint32_t  i, last;

    fill();
    last = n - 1;

    /* what is left of the ring has room for some words */

    for (i = 0; i < 50; i++) {
        tell(last, i % 2 ? LLM_MSG_RESUME : LLM_MSG_PAUSE);
    }

    for (i = 0; i + 2 < last; i += 3) {
        tell(i, LLM_MSG_GRANT);
        tell(i, LLM_MSG_PAUSE);
        tell(i, LLM_MSG_RESUME);

        tell(i + 1, LLM_MSG_PAUSE);
        tell(i + 1, LLM_MSG_GRANT);
        tell(i + 1, LLM_MSG_RESUME);
        tell(i + 1, LLM_MSG_PAUSE);

        tell(i + 2, LLM_MSG_GRANT);
        tell(i + 2, LLM_MSG_CANCEL);
    }

    hear();
    first = later = gone = 0;

    for (i = 0; i + 2 < last; i += 3) {
        first += words[i] == LLM_MSG_REQUEST * 100 + LLM_MSG_GRANT * 10
                             + LLM_MSG_RESUME;
        later += words[i + 1] == LLM_MSG_REQUEST * 100 + LLM_MSG_PAUSE * 10
                                 + LLM_MSG_GRANT;
        gone += words[i + 2] == LLM_MSG_REQUEST * 10 + LLM_MSG_CANCEL;
    }

    is_int(first, last / 3, "a grant comes before a pace");
    is_int(later, last / 3, "and behind one");
    is_int(gone, last / 3, "who has gone is not granted anything");

    clear();
}


/* an engine that was to be asked again in a day */

static void
test_retry(void)
{
    llm_event_t  ev;

    fill();
    hear();

    memset(&ev, 0, sizeof(ev));
    llm_zone_set(zone->models[0].retry_after, 86400);
    atomic_store(&zone->attached, 1);
    atomic_fetch_add(&zone->epoch, 1);

    (void) llm_client_drain(client, on_event, &ev, 1);
    is_int(ev.type, LLM_EV_ERROR, "the engine has gone");
    is_int(ev.u.error.retry_after, UINT16_MAX,
           "a pause that does not fit is the longest");

    clear();
}


/* events shown and handed out, by the numbers in their index */

typedef struct {
    uint32_t  shown;
    uint32_t  handed;
    uint32_t  most;                     /* shown at once */
    int       late;                     /* handed out before they were shown */
    int       wrong;                    /* out of order */
} seen_t;


static void
on_ahead(void *data, const llm_event_t *const *ev, uint32_t count)
{
    uint32_t  i;
    seen_t   *seen = data;

    for (i = 0; i < count; i++) {
        seen->wrong += ev[i]->index != seen->shown++;
    }

    seen->most = llm_max(seen->most, count);
}


static void
on_seen(void *data, const llm_event_t *ev)
{
    seen_t  *seen = data;

    seen->late += ev->index >= seen->shown;
    seen->wrong += ev->index < seen->handed;
    seen->handed = ev->index + 1;
}


/* each third event is of a ticket that is not live */

static void
test_ahead(void)
{
    seen_t        seen;
    uint32_t      i;
    llm_ring_t    up;
    llm_event_t  *ev;

    fill();
    memset(&seen, 0, sizeof(seen));
    llm_client_look_ahead(client, on_ahead);
    llm_ring_producer(&up, llm_zone_at(zone, llm_zone_worker(zone, 0)->up));

    for (i = 0; i < 300; i++) {
        ev = llm_ring_reserve(&up, sizeof(*ev));
        memset(ev, 0, sizeof(*ev));
        ev->size = sizeof(*ev);
        ev->type = LLM_EV_TEXT;
        ev->index = i;
        ev->slot = i % 20;
        ev->ticket = i % 3 == 2 ? 1 : tickets[i % 20];
        llm_ring_push(&up, (const llm_record_t *) ev);
    }

    (void) llm_ring_publish(&up);

    is_int(llm_client_drain(client, on_seen, &seen, 5), 5, "five events");
    is_int(seen.handed, 7, "of seven, as two are of no request");
    is_int(seen.shown, 7, "which were shown, and no others");
    is_int(llm_client_drain(client, on_seen, &seen, 0), 195, "all others");
    is_int(seen.shown, 300, "were shown");
    is_int(seen.most, LLM_CLIENT_AHEAD, "as many as are allowed at once");
    is_int(seen.late, 0, "before they were handed out");
    is_int(seen.wrong, 0, "in order");
    is_int(atomic_load(&up.mem->head), atomic_load(&up.mem->tail),
           "their room is free again");

    clear();
}


int
main(void)
{
    test_grants();
    test_retry();
    test_ahead();

    return done_testing();
}
