/*
 * Devices that models share; see devices.h.
 */

#include "engine/model/model_internal.h"

#include <assert.h>


/* an open device; under the lock of the registry */
struct llm_shared_device_s {
    llm_shared_device_t  *next;
    llm_device_t         *device;
    const llm_ops_t      *ops;          /* ops, index and isa are the key by
                                           which the device is found */
    int                   index;
    const char           *isa;          /* owned, or NULL */
    uint32_t              n_users;      /* models on the device */
};


llm_devices_t *
llm_devices_create(void)
{
    llm_devices_t  *devices;

    devices = calloc(1, sizeof(llm_devices_t));

    if (devices) {
        pthread_mutex_init(&devices->lock, NULL);
    }

    return devices;
}


void
llm_devices_free(llm_devices_t *devices)
{
    if (devices) {
        assert(devices->open == NULL && devices->promised == NULL);

        pthread_mutex_destroy(&devices->lock);
        free(devices);
    }
}


static int
llm_devices_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}


/* finds the device, or opens it; the lock is held; NULL and *err: an error */

static llm_shared_device_t *
llm_devices_find(llm_devices_t *devices, const llm_ops_t *ops,
    const llm_exec_opts_t *opts, llm_err_t *err)
{
    llm_shared_device_t  *s;

    for (s = devices->open; s; s = s->next) {
        if (s->ops == ops && s->index == llm_max(opts->index, 0)
            && llm_devices_same(s->isa, opts->isa))
        {
            return s;
        }
    }

    s = calloc(1, sizeof(llm_shared_device_t));

    if (s == NULL || (opts->isa && (s->isa = strdup(opts->isa)) == NULL)) {
        free(s);
        (void) llm_fail(err, "no memory for a device");
        return NULL;
    }

    if (ops->device_open(&s->device, opts, err) != LLM_OK) {
        free((char *) s->isa);
        free(s);
        return NULL;
    }

    s->ops = ops;
    s->index = llm_max(opts->index, 0);
    s->next = devices->open;
    devices->open = s;

    return s;
}


/* a model does not use the device any more: the last one closes it; the lock is
   held */

static void
llm_devices_leave(llm_devices_t *devices, llm_device_t *device)
{
    llm_shared_device_t  *s, **p;

    for (p = &devices->open; (*p)->device != device; p = &(*p)->next) {
        /* void */
    }

    s = *p;

    if (--s->n_users) {
        return;
    }

    *p = s->next;
    s->device->ops->device_close(s->device);
    free((char *) s->isa);
    free(s);
}


int
llm_devices_open(llm_devices_t *devices, const llm_ops_t *ops,
    const llm_exec_opts_t *opts, llm_exec_t **exec, llm_err_t *err)
{
    int                   rc;
    llm_exec_opts_t       o;
    llm_shared_device_t  *s;

    rc = LLM_ERROR;
    o = *opts;

    pthread_mutex_lock(&devices->lock);

    s = llm_devices_find(devices, ops, opts, err);

    if (s) {
        s->n_users++;
        o.device = s->device;
        rc = s->device->ops->open(exec, &o, err);

        if (rc == LLM_OK) {
            (*exec)->device = s->device;

        } else {
            llm_devices_leave(devices, s->device);
        }
    }

    pthread_mutex_unlock(&devices->lock);

    return rc;
}


void
llm_devices_close(llm_devices_t *devices, llm_exec_t *exec)
{
    llm_device_t  *device;

    device = exec->device;
    exec->ops->close(exec);

    pthread_mutex_lock(&devices->lock);
    llm_devices_leave(devices, device);
    pthread_mutex_unlock(&devices->lock);
}
