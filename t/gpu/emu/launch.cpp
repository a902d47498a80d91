/*
 * Launches and the queues of work.
 *
 * Each stream has a queue.  It runs when the host waits for it, or when another
 * stream does by an event, and no further than that: so a program that forgets
 * an event finds the other stream's work undone.  On a device with
 * LLM_EMU_EAGER work runs when it is issued.
 *
 * Everything runs in the thread that waits.  A device is driven by one thread
 * at a time; a lock keeps several devices apart.
 */

#include "t/gpu/emu/internal.h"

namespace emu {

std::recursive_mutex        lock;
Device                      devices[EMU_MAX_DEVICES];
thread_local int            current;
thread_local cudaError_t    thread_error;
std::vector<cudaStream_t>   streams;
double                      clock_ms;
std::map<std::pair<int, const void *>, size_t>  shared_set;

static std::map<std::string, unsigned long>  counted;
static Fault                launch_fault("LLM_EMU_FAIL_LAUNCH");
static Fault                capture_fault("LLM_EMU_FAIL_CAPTURE");
static std::set<std::pair<int, const void *>>   loaded;     /* launched kernels
                                                               of a device */


size_t
setting(const char *name, size_t otherwise, int i)
{
    const char  *value, *next;

    value = getenv(name);

    for ( /* void */ ; value && i > 0; i--) {
        next = strchr(value, ',');
        value = next ? next + 1 : value;
    }

    return value ? strtoull(value, nullptr, 10) : otherwise;
}


void
count(const char *name, unsigned long n)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    counted[name] += n;
}


int
capability()
{
    return (int) setting("LLM_EMU_CAPABILITY", 89);
}


int
compiled()
{
    size_t  has = (size_t) capability();

    return (int) std::min(setting("LLM_EMU_COMPILED", has), has);
}


size_t
shared_most()
{
    switch (capability()) {

    case 80:
        return 163 * 1024;

    case 90:
    case 100:
        return EMU_SHARED_MAX;

    default:
        return 99 * 1024;
    }
}


/* true for the n-th call since the variable was set to n */

bool
Fault::now()
{
    size_t  n;

    n = setting(name, 0);

    if (n != at) {
        at = n;
        calls = 0;
    }

    return ++calls == at;
}


size_t
static_shared(const Kernel &k)
{
    return k.ptx ? (k.ptx->shared + 127) / 128 * 128 : 0;
}


bool
invalidated(EmuGraph *g)
{
    g->invalid = g->invalid || capture_fault.now();

    return g->invalid;
}


static void
add(cudaStream_t s, Work work)
{
    s->queue.push_back(std::move(work));

    if (setting("LLM_EMU_EAGER", 0, s->device)) {
        run_stream(s);
    }
}


void
enqueue(cudaStream_t s, std::function<void()> work, unsigned with)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (s == nullptr) {
        fprintf(stderr, "emu: work on the legacy stream\n");
        devices[current].broken = cudaErrorInvalidValue;
        return;
    }

    with |= 1u << s->device;

    if (s->capture) {
        s->capture->nodes.push_back({ std::move(work), with, s->lane, 0 });
        return;
    }

    add(s, Work { nullptr, 0, with, std::move(work) });
}


void
enqueue_wait(cudaStream_t s, EmuEvent *e)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (e->graph) {
        s->begins = true;
        s->capture->nodes.push_back({ nullptr, 0, s->lane, e->node });
        return;
    }

    s->waits = true;
    add(s, Work { e, e->issued, 0, nullptr });
}


static void run_record(const EmuEvent *e, size_t records);


/* runs the oldest work of a stream */

static void
run_first(cudaStream_t s)
{
    Work  work = std::move(s->queue.front());

    s->queue.pop_front();

    if (work.after) {
        run_record(work.after, work.records);

    } else {
        open_memory(work.devices);
        work.run();
    }
}


static void
run_record(const EmuEvent *e, size_t records)
{
    while (e->done < records) {
        run_first(e->stream);
    }
}


void
run_stream(cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    start();

    while (!s->queue.empty()) {
        run_first(s);
    }
}


void
run_all()
{
    size_t  i;

    std::lock_guard<std::recursive_mutex>  guard(lock);

    for (i = streams.size(); i > 0; i--) {
        run_stream(streams[i - 1]);
    }
}


void
run_until(const EmuEvent *e)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    start();
    run_record(e, e->issued);
}


/* ---- graphs ---- */

/* a graph's lanes, each with as many of its nodes as have been done */
struct Lanes {
    const EmuGraph                    &graph;
    std::vector<std::vector<size_t>>   nodes;
    std::vector<size_t>                n_done;
    bool                               dry;     /* nothing is run */

    Lanes(const EmuGraph &g, bool dry_run)
        : graph(g), nodes(g.lanes.size()), n_done(g.lanes.size()), dry(dry_run)
    {
        size_t  i;

        for (i = 0; i < g.nodes.size(); i++) {
            nodes[g.nodes[i].lane].push_back(i);
        }
    }

    void run(size_t lane, size_t last);
};


/* a lane's nodes up to number `last` of the graph, and what these wait for */

void
Lanes::run(size_t lane, size_t last)
{
    size_t  i;

    while (n_done[lane] < nodes[lane].size()) {
        i = nodes[lane][n_done[lane]];

        if (i > last) {
            return;
        }

        n_done[lane]++;
        const EmuNode  &n = graph.nodes[i];

        if (n.after) {
            run(graph.nodes[n.after - 1].lane, n.after - 1);

        } else if (n.run && !dry) {
            open_memory(n.devices);
            n.run();
        }
    }
}


/* as streams do: a lane goes on where another one waits for it, or at once on a
   device with LLM_EMU_EAGER */

void
run_graph(const EmuGraph &g)
{
    size_t  i, lane;
    Lanes   lanes(g, false);

    for (i = 0; i < g.nodes.size(); i++) {
        lane = g.nodes[i].lane;

        if (setting("LLM_EMU_EAGER", 0, g.lanes[lane])) {
            lanes.run(lane, i);
        }
    }

    lanes.run(0, g.nodes.size());
}


bool
joined(const EmuGraph &g)
{
    size_t  i;
    Lanes   lanes(g, true);

    lanes.run(0, g.nodes.size());

    for (i = 0; i < g.lanes.size(); i++) {
        if (lanes.n_done[i] < lanes.nodes[i].size()) {
            return false;
        }
    }

    return true;
}


/* can the device run such a launch? */

static bool
possible(const Kernel &k, int device, dim3 grid, dim3 block, size_t shared)
{
    size_t  n, most, set;

    n = (size_t) block.x * block.y * block.z;
    most = k.ptx && k.ptx->threads ? k.ptx->threads : EMU_MAX_THREADS;

    if (n == 0 || n > most || grid.x == 0 || grid.y == 0 || grid.z == 0
        || grid.y > 65535 || grid.z > 65535
        || static_shared(k) + shared > shared_most())
    {
        fprintf(stderr, "emu: kernel %s: a launch that this GPU does not "
                "allow: (%u,%u,%u) blocks of (%u,%u,%u) threads with %zu bytes "
                "of shared memory\n", k.name, grid.x, grid.y, grid.z, block.x,
                block.y, block.z, shared);
        return false;
    }

    set = shared_set[{ device, k.entry }];

    if (static_shared(k) + shared > EMU_SHARED_DEFAULT && shared > set) {
        fprintf(stderr, "emu: kernel %s: %zu bytes of shared memory, but "
                "cudaFuncSetAttribute() has allowed %zu\n", k.name, shared,
                set);
        return false;
    }

    return true;
}


void
launch(void *stream, const Kernel &k, dim3 grid, dim3 block, size_t shared,
    std::function<void()> f)
{
    int            n;
    bool           captured;
    Device        *d;
    unsigned long  blocks;
    cudaStream_t   s = (cudaStream_t) stream;

    std::lock_guard<std::recursive_mutex>  guard(lock);

    n = s ? s->device : current;
    d = &devices[n];

    if (n != current) {
        fprintf(stderr, "emu: kernel %s: its stream is of device %d, and the "
                "thread's device is %d\n", k.name, n, current);
        devices[current].last_error = cudaErrorInvalidResourceHandle;
        return;
    }

    if (s && s->capture == nullptr) {
        loaded.insert({ n, k.entry });

    } else if (loaded.count({ n, k.entry }) == 0) {
        fprintf(stderr, "emu: kernel %s is captured before its first launch\n",
                k.name);
        d->broken = cudaErrorInvalidValue;
    }

    if (s && (s->capture ? s->begins : s->waits) && k.early) {
        fprintf(stderr, "emu: kernel %s is launched early behind an event\n",
                k.name);
        d->broken = cudaErrorInvalidValue;
    }

    if (s) {
        (s->capture ? s->begins : s->waits) = false;
    }

    if (k.early && compiled() < 90) {
        fprintf(stderr, "emu: kernel %s is launched early, and its code does "
                "not wait for the kernels before it\n", k.name);
        d->broken = cudaErrorInvalidValue;
    }

    if (!possible(k, n, grid, block, shared)) {
        d->last_error = cudaErrorInvalidValue;
        return;
    }

    if (s && s->capture && invalidated(s->capture)) {
        thread_error = cudaErrorStreamCaptureInvalidated;
        return;
    }

    blocks = (unsigned long) grid.x * grid.y * grid.z;
    captured = s && s->capture;

    if (s && !captured) {
        count(k.name, blocks);
    }

    enqueue(s, [=]() {
        if (captured) {
            count("replayed", blocks);
        }

        if (d->broken || setting("LLM_EMU_DRY", 0)) {
            return;
        }

        if (launch_fault.now()) {
            d->last_error = cudaErrorLaunchFailure;

            if (setting("LLM_EMU_STICKY", 0)) {
                d->broken = d->last_error;
            }

            return;
        }

        run_grid(k, grid, block, shared, f);
        clock_ms += 1;
    }, k.peers ? d->peers : 0);
}


}  /* namespace emu */


unsigned long
llm_emu_count(const char *name)
{
    unsigned long                          n = 0;
    std::lock_guard<std::recursive_mutex>  guard(emu::lock);

    for (const auto &c : emu::counted) {
        n += c.first.find(name) == std::string::npos ? 0 : c.second;
    }

    return n;
}
