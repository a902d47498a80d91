/*
 * Launches and the queue of work.
 *
 * One queue holds the work of all streams in the order of issue, a legal order,
 * since work only waits for work issued earlier.  The queue runs when the host
 * waits, never sooner, unless LLM_EMU_EAGER is set.
 *
 * Everything runs in the thread that waits.  A device is driven by one thread
 * at a time; a lock keeps several devices apart.
 */

#include "t/gpu/emu/internal.h"

namespace emu {

std::recursive_mutex                lock;
std::deque<std::function<void()>>   queue;
cudaError_t                         last_error;
cudaError_t                         broken;
std::map<const void *, size_t>      shared_set;

static Fault                        launch_fault("LLM_EMU_FAIL_LAUNCH");
static std::set<const void *>       loaded;         /* launched kernels */


size_t
setting(const char *name, size_t otherwise)
{
    const char  *value;

    value = getenv(name);

    return value ? strtoull(value, nullptr, 10) : otherwise;
}


size_t
shared_most()
{
    switch (setting("LLM_EMU_CAPABILITY", 89)) {

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


void
enqueue(cudaStream_t s, std::function<void()> work)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (s == nullptr) {
        fprintf(stderr, "emu: work on the legacy stream\n");
        broken = cudaErrorInvalidValue;
        return;
    }

    if (s->capture) {
        s->capture->work.push_back(std::move(work));
        return;
    }

    queue.push_back(std::move(work));

    if (setting("LLM_EMU_EAGER", 0)) {
        run_queue();
    }
}


/* runs all of the queue, or until an event's last record is done */

void
run_queue(const EmuEvent *until)
{
    std::lock_guard<std::recursive_mutex>  guard(lock);

    start();

    if (broken) {
        queue.clear();
    }

    while (!queue.empty() && (!until || until->done < until->issued)) {
        std::function<void()>  work = std::move(queue.front());

        queue.pop_front();
        work();
    }
}


/* can the device run such a launch? */

static bool
possible(const Kernel &k, dim3 grid, dim3 block, size_t shared)
{
    size_t  n, most;

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

    if (static_shared(k) + shared > EMU_SHARED_DEFAULT
        && shared > shared_set[k.entry])
    {
        fprintf(stderr, "emu: kernel %s: %zu bytes of shared memory, but "
                "cudaFuncSetAttribute() has allowed %zu\n", k.name, shared,
                shared_set[k.entry]);
        return false;
    }

    return true;
}


void
launch(void *stream, const Kernel &k, dim3 grid, dim3 block, size_t shared,
    std::function<void()> f)
{
    cudaStream_t  s = (cudaStream_t) stream;

    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (s && s->capture == nullptr) {
        loaded.insert(k.entry);

    } else if (loaded.count(k.entry) == 0) {
        fprintf(stderr, "emu: kernel %s is captured before its first launch\n",
                k.name);
        broken = cudaErrorInvalidValue;
    }

    if (!possible(k, grid, block, shared)) {
        last_error = cudaErrorInvalidValue;
        return;
    }

    enqueue(s, [=]() {
        if (launch_fault.now()) {
            last_error = cudaErrorLaunchFailure;

            if (setting("LLM_EMU_STICKY", 0)) {
                broken = last_error;
                queue.clear();
            }

            return;
        }

        run_grid(k, grid, block, shared, f);
    });
}


}  /* namespace emu */
