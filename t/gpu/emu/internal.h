/*
 * Shared by emu.cpp, which runs kernels, launch.cpp, which has the queue of
 * work, ptx.cpp, which finds translated kernels, and runtime.cpp, which has the
 * CUDA runtime's functions for the backend.
 */

#ifndef LLM_EMU_INTERNAL_H
#define LLM_EMU_INTERNAL_H

#include "t/gpu/emu/emu.h"

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#define EMU_MAX_THREADS     1024            /* of a block */
#define EMU_SHARED_MAX      (227 * 1024)
#define EMU_SHARED_DEFAULT  (48 * 1024)     /* without the attribute */
#define EMU_MAX_DEVICES     8

/* a captured piece of work, or neither work nor wait: an event's record */
struct EmuNode {
    std::function<void()>   run;
    unsigned                devices;    /* as in emu::Work */
    size_t                  lane;       /* of its stream */
    size_t                  after;      /* waits for so many of the graph's
                                           first nodes' last one; 0: for none */
};

/* what several streams were given while captured, in the order in which that
   was issued; lane 0 is that of the stream where the capture began */
struct EmuGraph {
    std::vector<EmuNode>        nodes;
    std::vector<int>            lanes;      /* their streams' devices */
    std::vector<cudaStream_t>   streams;    /* while it is captured */
    std::vector<cudaEvent_t>    events;     /* recorded in it */
    std::thread::id             owner;      /* captures it */
    bool                        invalid;    /* a call has failed */
};

struct EmuEvent {
    int            device;
    cudaStream_t   stream;              /* of the last record */
    EmuGraph      *graph;               /* that captures it, or NULL */
    size_t         node;                /* of the graph, and all before it */
    double         when;                /* by clock_ms */
    size_t         issued;              /* records enqueued */
    size_t         done;                /* records done */
};

namespace emu {

/* work of a stream: waits for a number of an event's records, if there is an
   event, and runs with the memory of some devices */
struct Work {
    EmuEvent               *after;
    size_t                  records;
    unsigned                devices;                    /* a bit for each */
    std::function<void()>   run;
};

struct Device {
    size_t                  in_use;                     /* bytes */
    unsigned                peers;                      /* whose memory kernels
                                                           may access, a bit
                                                           for each */
    cudaError_t             last_error;
    cudaError_t             broken;                     /* never cleared */
};

}  /* namespace emu */

struct EmuStream {
    int                     device;
    EmuGraph               *capture;
    size_t                  lane;       /* in the graph */
    std::deque<emu::Work>   queue;
    bool                    waits;      /* for an event, and no kernel or graph
                                           was launched since */
    bool                    begins;     /* the same of what is captured */
};

namespace emu {

/* a fault that an environment variable requests */
struct Fault {
    const char  *name;
    size_t       at;
    size_t       calls;

    explicit Fault(const char *variable)
        : name(variable), at(0), calls(0)
    {
    }

    bool now();
};

extern std::recursive_mutex               lock;         /* of what follows */
extern Device                             devices[EMU_MAX_DEVICES];
extern thread_local int                   current;      /* device of the
                                                           thread */
extern thread_local cudaError_t           thread_error; /* of its launches into
                                                           a capture */
extern std::vector<cudaStream_t>          streams;      /* oldest first */
/* the time that events tell: a kernel takes a millisecond */
extern double                             clock_ms;
/* a kernel's attribute for shared memory on a device */
extern std::map<std::pair<int, const void *>, size_t>  shared_set;

/* `with`: devices besides the stream's whose memory the work uses, a bit for
   each */
void enqueue(cudaStream_t s, std::function<void()> work, unsigned with = 0);
/* lets the stream wait for an event's records so far */
void enqueue_wait(cudaStream_t s, EmuEvent *e);

/* nonzero: the capture is invalid, and gets nothing more; each call that gives
   it something asks once, as it may become so then */
bool invalidated(EmuGraph *g);

/* runs a graph; does the end of its first lane wait for all of it? */
void run_graph(const EmuGraph &g);
bool joined(const EmuGraph &g);

/* run all streams, newest first; one stream; what an event's records so far
   need */
void run_all();
void run_stream(cudaStream_t s);
void run_until(const EmuEvent *e);

/* runtime.cpp: only the memory of these devices (a bit for each) is accessible
   from now on */
void open_memory(unsigned which);

/* emu.cpp: prepares the emulator; runs all blocks of a launch */
void start();
void run_grid(const Kernel &k, dim3 grid, dim3 block, size_t shared,
    const std::function<void()> &f);

/* bytes of a kernel's static shared memory, before the dynamic one */
size_t static_shared(const Kernel &k);

/* the library of translated kernels, or nullptr without LLM_EMU_PTX */
const ptx_library_t *ptx_library();

/* reports the running thread of a kernel; and ends the process */
void where(const char *what);
void die(const char *what);

/* the number in an environment variable, or `otherwise`; of a list by commas
   number i, or the last */
size_t setting(const char *name, size_t otherwise, int i = 0);

/* adds to what llm_emu_count() returns */
void count(const char *name, unsigned long n);

/* the devices' compute capability; that which kernels were compiled for */
int capability();
int compiled();

/* most bytes of shared memory of a block */
size_t shared_most();

/* memory that ends at a guard page; nullptr: no memory */
uint8_t *guarded(size_t size);

}  /* namespace emu */

#endif /* LLM_EMU_INTERNAL_H */
