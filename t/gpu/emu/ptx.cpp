/*
 * Kernels translated from nvcc's PTX (t/gpu/ptx) instead of those that the
 * host's compiler made, if LLM_EMU_PTX is set (emu.h).  A kernel is found by
 * its mangled name, which both compilers give it; for that, kernels of the
 * emulated build are visible symbols.
 */

#include "kernels/cuda/device.h"
#include "t/gpu/emu/internal.h"

#include <dlfcn.h>
#include <string>

namespace emu {

static_assert(sizeof(Thread) == sizeof(ptx_thread_t), "the library's view");
static_assert(sizeof(Block) == sizeof(ptx_block_t), "the library's view");
static_assert(PTX_MEET_BYTES == EMU_MEET_BYTES, "the library's view");


static void
mma(float d[4], const uint32_t a[4], const uint32_t b[2], int bf16)
{
    if (bf16) {
        llm_mma_bf16(d, a, b);

    } else {
        llm_mma_f16(d, a, b);
    }
}


/* the path of the library: LLM_EMU_PTX, or for 1 beside the emulator */

static std::string
library_path(const char *set)
{
    Dl_info      info;
    std::string  self;

    if (strcmp(set, "1") != 0) {
        return set;
    }

    if (dladdr((const void *) library_path, &info) == 0) {
        return "llm_emu_ptx.so";
    }

    self = info.dli_fname;

    return self.substr(0, self.rfind('/') + 1) + "llm_emu_ptx.so";
}


static const ptx_library_t *
load()
{
    void         *library;
    const char   *set;
    ptx_open_pt   open;
    std::string   path;

    static const ptx_emulator_t  emulator = {
        (const ptx_thread_t *const *) &cur, (const ptx_block_t *) &blk,
        sync_block, meet, at, copy_async, copy_commit, copy_wait, mma,
        early_wait, die
    };

    set = getenv("LLM_EMU_PTX");

    if (set == nullptr || *set == '\0' || strcmp(set, "0") == 0) {
        return nullptr;
    }

    path = library_path(set);
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);

    if (library == nullptr) {
        fprintf(stderr, "emu: LLM_EMU_PTX: %s; \"./build.sh test ptx\" builds "
                "it\n", dlerror());
        abort();
    }

    open = (ptx_open_pt) dlsym(library, "ptx_open");

    if (open == nullptr) {
        fprintf(stderr, "emu: LLM_EMU_PTX: %s has no kernels\n", path.c_str());
        abort();
    }

    return open(&emulator);
}


const ptx_library_t *
ptx_library()
{
    static const ptx_library_t  *library = load();

    return library;
}


static const ptx_kernel_t *
find(const char *name)
{
    const ptx_kernel_t         *k;
    const ptx_module_t *const  *m;

    for (m = ptx_library()->modules; *m; m++) {
        for (k = (*m)->kernels; k->name; k++) {
            if (strcmp(k->name, name) == 0) {
                return k;
            }
        }
    }

    return nullptr;
}


const ptx_kernel_t *
ptx_kernel(const void *entry, const char *name, size_t params)
{
    Dl_info              info;
    const ptx_kernel_t  *k;

    static std::map<const void *, const ptx_kernel_t *>  known;

    std::lock_guard<std::recursive_mutex>  guard(lock);

    if (ptx_library() == nullptr) {
        return nullptr;
    }

    auto  it = known.find(entry);

    if (it != known.end()) {
        return it->second;
    }

    k = dladdr(entry, &info) && info.dli_sname && info.dli_saddr == entry
        ? find(info.dli_sname) : nullptr;

    if (k ? k->params != params : !ptx_library()->some) {
        fprintf(stderr, "emu: LLM_EMU_PTX: kernel %s %s\n", name,
                k ? "has other parameters in the PTX: it is of other sources"
                  : "is not in the PTX");
        abort();
    }

    known[entry] = k;

    return k;
}


void
ptx_run(const ptx_kernel_t *k, const uint8_t *params)
{
    k->body(params);
}

}  /* namespace emu */
