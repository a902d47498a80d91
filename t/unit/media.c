/*
 * Decoding images by llm-media: pixels of all formats against Pillow's, bounds,
 * damaged and hostile files, and what happens when a decoder, or llm-media
 * itself, dies or takes too long.
 */

#include "engine/media/media.h"
#include "t/unit/media_file.h"
#include "t/unit/media_expected.h"
#include "t/unit/tap.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

/* BMP files, which every build reads */
#define N_BMP  3
#define bmp    (&media_files[llm_nelems(media_files) - N_BMP])

static llm_media_pool_t    *pool;
static llm_media_limits_t   limits;


static const char *
objs(void)
{
    return getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
}


static int
decode(const void *data, size_t len, llm_image_t *image, llm_err_t *err)
{
    llm_media_source_t  source = { data, len, -1, NULL };

    memset(err, 0, sizeof(*err));

    return llm_media_image(pool, &source, &limits, NULL, image, err);
}


/* the greatest difference; -1: another size */

static int
distance(const llm_image_t *image, uint32_t width, uint32_t height,
    const uint8_t *rgb)
{
    int     d, most;
    size_t  i;

    if (image->width != width || image->height != height) {
        return -1;
    }

    for (most = 0, i = 0; i < (size_t) width * height * 3; i++) {
        d = abs(image->rgb[i] - rgb[i]);
        most = llm_max(most, d);
    }

    return most;
}


/* a format that this build does not read is refused by its name */

static int
reads(const char *file)
{
    char   line[64], cmd[1024];
    FILE  *f;
    int    yes;

    static const struct { const char *end, *name; } formats[] = {
        { ".png", "PNG yes" }, { ".jpg", "JPEG yes" }, { ".webp", "WebP yes" },
        { ".gif", "GIF yes" }, { ".bmp", "BMP yes" }
    };

    snprintf(cmd, sizeof(cmd), "%s/llm-media --formats", objs());
    f = popen(cmd, "r");
    yes = 0;

    while (f && fgets(line, sizeof(line), f)) {
        size_t  i;

        for (i = 0; i < llm_nelems(formats); i++) {
            if (strstr(file, formats[i].end)
                && strncmp(line, formats[i].name, strlen(formats[i].name))
                   == 0)
            {
                yes = 1;
            }
        }
    }

    if (f) {
        pclose(f);
    }

    return yes;
}


static void
formats(void)
{
    int          rc, d;
    size_t       i;
    llm_err_t    err;
    llm_image_t  image;

    for (i = 0; i < llm_nelems(media_files); i++) {
        rc = decode(media_files[i].data, media_files[i].len, &image, &err);

        if (!reads(media_files[i].name)) {
            ok(rc != LLM_OK && err.status == 400
               && strstr(err.msg, "this build reads no"),
               "%s: %s", media_files[i].name, err.msg);
            llm_image_free(&image);
            continue;
        }

        d = rc == LLM_OK ? distance(&image, media_files[i].width,
                                    media_files[i].height, media_files[i].rgb)
                         : -1;
        ok(d >= 0 && d <= media_files[i].max_step, "%s: %d steps: %s",
           media_files[i].name, d, rc == LLM_OK ? "decoded" : err.msg);
        llm_image_free(&image);
    }
}


/* the size is asked for before any pixel is decoded, turned as EXIF wants it */

typedef struct {
    uint32_t  width;
    uint32_t  height;
    int       refuses;
} asked_t;


static int
asked_size(void *ctx, uint32_t width, uint32_t height, llm_err_t *err)
{
    asked_t  *a = ctx;

    a->width = width;
    a->height = height;

    return a->refuses ? llm_fail(err, "not this one") : LLM_OK;
}


/* a PNG file that ends after its header */

static const unsigned char  cut[] = {
    0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0, 13,
    'I', 'H', 'D', 'R', 0, 0, 0x20, 0, 0, 0, 0x10, 0, 8, 2, 0, 0, 0,
    0x55, 0xab, 0xf8, 0x5c, 0, 0, 0, 1, 'I', 'D', 'A', 'T', 0, 0, 0, 0, 0
};


static void
sizes(void)
{
    int                   rc;
    size_t                i;
    asked_t               a;
    llm_err_t             err;
    llm_image_t           image;
    llm_image_check_t     check = { &a, asked_size };
    llm_media_source_t    source = { .fd = -1 };
    const media_file_t   *f;

    for (i = 0; i < llm_nelems(media_files); i++) {
        f = &media_files[i];

        if (!reads(f->name)) {
            continue;
        }

        source.data = f->data;
        source.len = f->len;
        memset(&a, 0, sizeof(a));
        rc = llm_media_image(pool, &source, &limits, &check, &image, &err);
        ok(rc == LLM_OK && a.width == image.width && a.height == image.height,
           "%s: asked for %u x %u", f->name, a.width, a.height);
        llm_image_free(&image);

        a.refuses = 1;
        is_int(llm_media_image(pool, &source, &limits, &check, &image, &err),
               LLM_ERROR, "%s: refused by its size", f->name);
        is_str(err.msg, "not this one", "%s: the reason", f->name);
        ok(image.rgb == NULL, "%s: nothing is left", f->name);
    }

    if (!reads(".png")) {
        return;
    }

    source.data = cut;
    source.len = sizeof(cut);
    is_int(llm_media_image(pool, &source, &limits, &check, &image, &err),
           LLM_ERROR, "a file of a header alone: refused");
    ok(a.width == 8192 && a.height == 4096
       && strcmp(err.msg, "not this one") == 0, "by its size: %s", err.msg);

    a.refuses = 0;
    is_int(llm_media_image(pool, &source, &limits, &check, &image, &err),
           LLM_ERROR, "or not");
    is_str(err.code, "image_parse_error", "then by its end");
}


/* more than is decoded now is no error */

static void
light(void)
{
    llm_err_t            err;
    llm_image_t          image;
    llm_media_limits_t   l = limits;
    llm_media_source_t   source = { bmp->data, bmp->len, -1, NULL };

    l.light = bmp->width * bmp->height - 1;
    is_int(llm_media_image(pool, &source, &l, NULL, &image, &err), LLM_LATER,
           "more pixels than are decoded now");
    ok(image.rgb == NULL, "nothing is left");

    l.light++;
    is_int(llm_media_image(pool, &source, &l, NULL, &image, &err), LLM_OK,
           "just as many");
    is_int(distance(&image, bmp->width, bmp->height, bmp->rgb), 0,
           "they are right");
    llm_image_free(&image);
}


/* from an open file, and beyond the bound of its bytes */

static void
files(void)
{
    int                  fd;
    char                 path[] = "/tmp/llm_media_XXXXXX";
    llm_err_t            err;
    llm_image_t          image;
    llm_media_limits_t   small = limits;
    llm_media_source_t   source = { .fd = -1 };

    fd = mkstemp(path);

    if (fd < 0) {
        ok(0, "a temporary file");
        return;
    }

    ok(write(fd, bmp->data, bmp->len) == (ssize_t) bmp->len, "written");
    source.fd = fd;

    is_int(llm_media_image(pool, &source, &limits, NULL, &image, &err), LLM_OK,
           "an open file");
    is_int(distance(&image, bmp->width, bmp->height, bmp->rgb), 0,
           "has its pixels");
    llm_image_free(&image);

    small.bytes = bmp->len - 1;
    is_int(llm_media_image(pool, &source, &small, NULL, &image, &err),
           LLM_ERROR, "a byte more than is allowed");
    is_int(err.status, 400, "is the client's fault");
    ok(strstr(err.msg, "the file has more than ") != NULL, "%s", err.msg);

    close(fd);
    unlink(path);
}


static void
refuse(const char *what, const void *data, size_t len, const char *code,
    const char *why)
{
    llm_err_t    err;
    llm_image_t  image;

    is_int(decode(data, len, &image, &err), LLM_ERROR, "%s: refused", what);
    is_int(err.status, 400, "%s: 400", what);
    is_str(err.code, code, "%s: code", what);
    ok(strstr(err.msg, why) != NULL, "%s: %s", what, err.msg);
    ok(image.rgb == NULL, "%s: no image", what);
}


static void
png_headers(void)
{
    llm_buf_t  b;

    png_black(&b, 30000, 30000, 1);
    refuse("30000 x 30000", b.data, b.len, "image_too_large",
           "30000 x 30000 pixels");
    llm_buf_free(&b);

    png_black(&b, 70000, 1, 1);
    refuse("70000 x 1", b.data, b.len, "image_too_large",
           "70000 x 1 pixels");
    llm_buf_free(&b);

    /* a header that promises more than there is */
    png_black(&b, 5000, 5000, 10);
    refuse("10 of 5000 rows", b.data, b.len, "image_parse_error",
           "the PNG file is damaged");
    llm_buf_free(&b);

    png_black(&b, 0, 5, 0);
    refuse("0 x 5", b.data, b.len, "image_parse_error", "damaged");
    llm_buf_free(&b);
}


static void
headers(void)
{
    llm_buf_t  b;

    if (reads(".png")) {
        png_headers();

    } else {
        skip("this build reads no PNG");
    }

    if (reads(".gif")) {
        refuse("a GIF of 65535 x 65535", "GIF89a\xff\xff\xff\xff\x00\x00\x00"
               ",\x00\x00\x00\x00\xff\xff\xff\xff\x00\x02", 24,
               "image_too_large", "65535 x 65535 pixels");

    } else {
        skip("this build reads no GIF");
    }

    bmp_black(&b, 60000, 50000, 1);
    refuse("a BMP of 60000 x 50000", b.data, b.len, "image_too_large",
           "60000 x 50000 pixels");
    llm_buf_free(&b);

    bmp_black(&b, 500, 500, 499);
    refuse("499 of 500 rows", b.data, b.len, "image_parse_error",
           "the BMP file ends early");
    llm_buf_free(&b);

    refuse("nothing", "", 0, "image_parse_error", "the file is empty");
    refuse("text", "hello", 5, "invalid_image_format",
           "no image that is known");
    refuse("TIFF", "II*\0....", 8, "invalid_image_format", "TIFF");
    refuse("AVIF", "\0\0\0\x1c" "ftypavif", 12, "invalid_image_format",
           "AVIF");
    refuse("HEIC", "\0\0\0\x1c" "ftypheic", 12, "invalid_image_format",
           "HEIC");
}


static void
shapes(void)
{
    llm_buf_t    b;
    llm_err_t    err;
    llm_image_t  image;

    bmp_black(&b, 1, 65535, 65535);
    is_int(decode(b.data, b.len, &image, &err), LLM_OK, "1 x 65535: %s",
           err.msg);
    is_int(image.height, 65535, "its height");
    llm_image_free(&image);
    llm_buf_free(&b);

    bmp_black(&b, 65535, 1, 1);
    is_int(decode(b.data, b.len, &image, &err), LLM_OK, "65535 x 1: %s",
           err.msg);
    llm_image_free(&image);
    llm_buf_free(&b);
}


/* each file cut at each place, and with each byte changed: an image or an
   error; GIF and BMP may end early without a pixel being lost */

static void
damaged(void)
{
    int                  good, bad, crashed, rc, how;
    size_t               i, at;
    uint8_t             *copy;
    llm_err_t            err;
    llm_image_t          image;
    const media_file_t  *f;

    for (i = 0; i < llm_nelems(media_files); i++) {
        f = &media_files[i];
        good = bad = crashed = 0;
        copy = malloc(f->len);

        for (how = 0; how < 2; how++) {
            for (at = how ? i % 5 : 0; at < f->len; at += how ? 5 : 7) {
                memcpy(copy, f->data, f->len);

                if (how) {
                    copy[at] ^= (uint8_t) (1 << at % 8 | 0x80);
                }

                rc = decode(copy, how ? f->len : at, &image, &err);
                good += rc == LLM_OK;
                bad += rc != LLM_OK && err.status == 400 && err.msg[0];
                crashed += rc != LLM_OK && strstr(err.msg, "crashed") != NULL;

                /* half a file has half the pixels */
                if (how == 0 && at < f->len / 4 && rc == LLM_OK) {
                    crashed++;
                }

                llm_image_free(&image);
            }
        }

        ok(bad > 0 && crashed == 0, "%s, damaged: %d images, %d errors, "
           "%d crashes", f->name, good, bad, crashed);
        free(copy);
    }
}


/* ---- processes ---- */

/* the processes whose parent is this one, at most 16 */

static int
children(pid_t parent, pid_t *pids)
{
    int             n, ppid;
    char            path[300], state, *p, buf[512];
    DIR            *d;
    FILE           *f;
    size_t          len;
    struct dirent  *e;

    n = 0;
    d = opendir("/proc");

    while (d && n < 16 && (e = readdir(d)) != NULL) {
        snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
        f = atoi(e->d_name) > 0 ? fopen(path, "r") : NULL;

        if (f == NULL) {
            continue;
        }

        len = fread(buf, 1, sizeof(buf) - 1, f);
        fclose(f);
        buf[len] = '\0';
        p = strrchr(buf, ')');

        if (p && sscanf(p, ") %c %d", &state, &ppid) == 2 && ppid == parent
            && state != 'Z')
        {
            pids[n++] = atoi(e->d_name);
        }
    }

    if (d) {
        closedir(d);
    }

    return n;
}


static pid_t
only_child(pid_t parent)
{
    pid_t  pids[16];

    return children(parent, pids) == 1 ? pids[0] : 0;
}


/* "Name:\tVALUE" of /proc/PID/status; -1: none */

static int
status_of(pid_t pid, const char *name)
{
    int    v;
    char   path[64], line[256];
    FILE  *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int) pid);
    f = fopen(path, "r");
    v = -1;

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, name, strlen(name)) == 0) {
            v = atoi(line + strlen(name) + 1);
        }
    }

    if (f) {
        fclose(f);
    }

    return v;
}


static int
descriptors(pid_t pid)
{
    int             n;
    char            path[64];
    DIR            *d;
    struct dirent  *e;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int) pid);
    d = opendir(path);
    n = d ? 0 : -1;

    while (d && (e = readdir(d)) != NULL) {
        n += e->d_name[0] != '.';
    }

    if (d) {
        closedir(d);
    }

    return n;
}


/* may the process write into its descriptor?  -1: not known */

static int
writes(pid_t pid, int fd)
{
    int       v;
    char      path[64], line[256];
    FILE     *f;
    unsigned  flags;

    snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int) pid, fd);
    f = fopen(path, "r");
    v = -1;

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "flags: %o", &flags) == 1) {
            v = (flags & O_ACCMODE) != O_RDONLY;
        }
    }

    if (f) {
        fclose(f);
    }

    return v;
}


static int
environment_lacks(pid_t pid, const char *name)
{
    char    path[64], buf[65536];
    FILE   *f;
    size_t  n;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int) pid);
    f = fopen(path, "r");

    if (f == NULL) {
        return 0;
    }

    n = fread(buf, 1, sizeof(buf), f);
    fclose(f);

    return memmem(buf, n, name, strlen(name)) == NULL;
}


/* What is done while a decoder waits for its pixels to be read: an image is
   larger than a socket's buffer, so the decoder is there in info(). */

typedef enum { LOOK, KILL, TIME, CRASH, WAIT, KILL_ALL, REFUSE, CANCEL } what_t;

static _Atomic uint32_t  cancelled;

typedef struct {
    what_t    what;
    int       seccomp;
    int       privileges;
    int       fds;
    int       life;                     /* it can write into the pipe that says
                                           that it lives */
    size_t    len;
} meddle_t;


/* a process that is not there is not process 0, which is this group */

static void
end(pid_t pid, int how)
{
    if (pid <= 0 || kill(pid, how) != 0) {
        ok(0, "there is no process to be ended");
    }
}


static void
pause_ms(long ms)
{
    struct timespec  ts = { 0, ms * 1000000 };

    nanosleep(&ts, NULL);
}


static int
meddle_info(void *ctx, const llm_media_info_t *info, llm_err_t *err)
{
    pid_t      pid, program;
    meddle_t  *m = ctx;

    (void) info;
    program = only_child(getpid());
    pid = only_child(program);

    switch (m->what) {

    case LOOK:
        m->seccomp = status_of(pid, "Seccomp:");
        m->privileges = status_of(pid, "NoNewPrivs:");
        m->fds = descriptors(pid);
        m->life = writes(pid, 3);
        break;

    case KILL:
        end(pid, SIGKILL);
        break;

    case TIME:
        end(pid, SIGXCPU);
        break;

    case CRASH:
        /* sanitizers catch the usual ones */
        end(pid, SIGSYS);
        break;

    case WAIT:
        while (program && only_child(program)) {
            pause_ms(5);
        }

        break;

    case KILL_ALL:
        end(program, SIGKILL);
        break;

    case CANCEL:
        cancelled = 1;
        break;

    case REFUSE:
        return llm_fail(err, "no more");
    }

    return LLM_OK;
}


static int
meddle_data(void *ctx, const void *data, size_t len, llm_err_t *err)
{
    meddle_t  *m = ctx;

    (void) data;
    (void) err;
    m->len += len;

    return LLM_OK;
}


static uint32_t  m_light;               /* of the limits */


static int
meddle(meddle_t *m, what_t what, uint32_t timeout, llm_err_t *err)
{
    int                  rc;
    llm_buf_t            b;
    llm_media_sink_t     sink = { m, meddle_info, meddle_data };
    llm_media_limits_t   l = limits;
    llm_media_source_t   source = { .fd = -1 };

    memset(m, 0, sizeof(*m));
    memset(err, 0, sizeof(*err));
    m->what = what;
    l.timeout = timeout;
    l.light = m_light;

    bmp_black(&b, 1500, 1500, 1500);
    source.data = b.data;
    source.len = b.len;
    source.cancelled = &cancelled;
    cancelled = 0;
    rc = llm_media_decode(pool, LLM_MEDIA_IMAGE, &source, &l, &sink, err);
    llm_buf_free(&b);

    return rc;
}


static void
still_decodes(const char *after)
{
    llm_err_t    err;
    llm_image_t  image;

    is_int(decode(bmp->data, bmp->len, &image, &err),
           LLM_OK, "%s the next image is decoded %s", after, err.msg);
    llm_image_free(&image);
}


static void
processes(void)
{
    pid_t      program;
    meddle_t   m;
    llm_err_t  err;

    is_int(meddle(&m, LOOK, 60000, &err), LLM_OK, "looked at %s", err.msg);
    is_int(m.len, 1500 * 1500 * 3, "all bytes have come");

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    is_int(m.seccomp, 2, "a decoder has a filter of system calls");
#endif
    is_int(m.privileges, 1, "and can get no privileges");

    /* what is not this user's cannot be looked at */
    if (m.fds >= 0) {
        is_int(m.fds, 4, "its descriptors: a socket, two of nothing, a pipe");
        is_int(m.life, 0, "whose end it cannot feign");
    }

    program = only_child(getpid());
    ok(program > 0, "llm-media runs");
    ok(environment_lacks(program, "LLM_MEDIA_TEST_SECRET"),
       "and has no part of this environment");

    is_int(meddle(&m, KILL, 60000, &err), LLM_ERROR, "killed");
    is_int(err.status, 503, "not for the image's sake");
    ok(strstr(err.msg, "image was killed from outside (signal 9)") != NULL,
       "%s", err.msg);
    still_decodes("killed:");

    is_int(meddle(&m, TIME, 60000, &err), LLM_ERROR, "out of its time");
    is_int(err.status, 400, "an error of the request");
    ok(strstr(err.msg, "more time of the CPU") != NULL, "%s", err.msg);

    is_int(meddle(&m, CRASH, 60000, &err), LLM_ERROR, "crashed");
    is_int(err.status, 400, "an error of the request");
    ok(strstr(err.msg, "its decoder crashed (signal 31)") != NULL, "%s",
       err.msg);
    still_decodes("crashed:");

    is_int(meddle(&m, WAIT, 100, &err), LLM_ERROR, "took too long");
    is_int(err.status, 400, "an error of the request");
    ok(strstr(err.msg, "takes longer than 100 ms") != NULL, "%s", err.msg);
    still_decodes("late:");

    m_light = UINT32_MAX;
    is_int(meddle(&m, WAIT, 100, &err), LLM_LATER, "took too long for now");
    m_light = 0;
    still_decodes("later:");

    is_int(meddle(&m, REFUSE, 60000, &err), LLM_ERROR, "not wanted");
    is_str(err.msg, "no more", "the sink's error");
    still_decodes("not wanted:");

    is_int(meddle(&m, CANCEL, 60000, &err), LLM_ERROR, "cancelled");
    ok(strstr(err.msg, "was cancelled") && m.len < 1500 * 1500 * 3,
       "before all bytes have come");
    still_decodes("cancelled:");
    is_int(only_child(getpid()), program, "all by one llm-media");

    is_int(meddle(&m, KILL_ALL, 60000, &err), LLM_ERROR, "llm-media killed");
    is_int(err.status, 503, "an error of the server");
    ok(strstr(err.msg, "has died: it is started again") != NULL, "%s",
       err.msg);
    still_decodes("dead:");
    ok(only_child(getpid()) != program, "by another llm-media");

    /* between two jobs nobody sees it */
    program = only_child(getpid());
    end(program, SIGKILL);

    while (program && only_child(getpid()) == program) {
        pause_ms(5);
    }

    still_decodes("dead between:");
}


/* ---- many ---- */

#define THREADS  8
#define JOBS     25

static void *
many_thread(void *arg)
{
    int                 *right = arg;
    size_t               i;
    llm_err_t            err;
    llm_image_t          image;
    const media_file_t  *f;

    for (i = 0; i < JOBS; i++) {
        f = bmp + i % N_BMP;

        if (decode(f->data, f->len, &image, &err) == LLM_OK
            && distance(&image, f->width, f->height, f->rgb) == 0)
        {
            (*right)++;
        }

        llm_image_free(&image);
    }

    return NULL;
}


static void
many(void)
{
    int        i, sum, right[THREADS] = { 0 };
    pthread_t  t[THREADS];

    for (i = 0; i < THREADS; i++) {
        pthread_create(&t[i], NULL, many_thread, &right[i]);
    }

    for (i = 0, sum = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
        sum += right[i];
    }

    is_int(sum, THREADS * JOBS, "images of %d threads", THREADS);
}


static void
absent(void)
{
    llm_err_t            err;
    llm_image_t          image;
    llm_media_pool_t    *none;
    llm_media_source_t   source = { "x", 1, -1, NULL };

    none = llm_media_pool_create("/nowhere", 0);
    is_int(llm_media_image(none, &source, &limits, NULL, &image, &err),
           LLM_ERROR, "no llm-media");
    is_int(err.status, 500, "an error of the server");
    ok(strstr(err.msg, "install it beside the module") != NULL, "%s", err.msg);
    llm_media_pool_free(none);
}


/* the shared files; four of them drop alpha, which is laid on white here */

static char *
slurp(const char *path, size_t *len)
{
    FILE       *f;
    llm_buf_t   b;

    llm_buf_init(&b, 0);
    f = fopen(path, "rb");

    if (f == NULL) {
        return NULL;
    }

    while (llm_buf_reserve(&b, 65536) != NULL) {
        *len = fread(b.data + b.len, 1, 65536, f);

        if (*len == 0) {
            break;
        }

        b.len += *len;
    }

    fclose(f);
    *len = b.len;
    (void) llm_buf_addc(&b, '\0');

    return b.data;
}


static void
fixture(const char *dir, const cJSON *item)
{
    int           rc, d;
    char          path[1100], *data, *rgb;
    size_t        len, n;
    llm_err_t     err;
    llm_image_t   image;
    const char   *name;
    const cJSON  *step, *size;

    name = cJSON_GetObjectItem(item, "file")->valuestring;
    step = cJSON_GetObjectItem(item, "max_step");
    size = cJSON_GetObjectItem(item, "size");
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    data = slurp(path, &len);

    if (data == NULL || !reads(name)) {
        skip(name);
        free(data);
        return;
    }

    rc = decode(data, len, &image, &err);
    free(data);

    if (cJSON_IsTrue(cJSON_GetObjectItem(item, "error"))) {
        ok(rc == LLM_ERROR && err.status == 400, "%s: %s", name, err.msg);
        return;
    }

    ok(rc == LLM_OK
       && (int) image.width == cJSON_GetArrayItem(size, 0)->valueint
       && (int) image.height == cJSON_GetArrayItem(size, 1)->valueint,
       "%s: decoded %s", name, err.msg);

    snprintf(path, sizeof(path), "%s/%s.rgb", dir, name);
    rgb = strstr(name, "alpha") || strstr(name, "trans") || rc != LLM_OK
          ? NULL : slurp(path, &n);

    if (rgb && cJSON_IsNumber(step)) {
        d = distance(&image, image.width, image.height, (uint8_t *) rgb);
        ok(d <= step->valueint, "%s: %d steps", name, d);
    }

    free(rgb);
    llm_image_free(&image);
}


static void
fixtures(void)
{
    char         dir[1060], path[1100], *text;
    cJSON       *list, *item;
    size_t       len;

    if (tap_fixtures() == NULL) {
        skip("there are no shared fixtures");
        return;
    }

    snprintf(dir, sizeof(dir), "%s/vision/decode", tap_fixtures());
    snprintf(path, sizeof(path), "%s/spec.json", dir);
    text = slurp(path, &len);

    if (text == NULL) {
        skip("the shared fixtures have no vision/decode");
        return;
    }

    list = cJSON_Parse(text);
    free(text);
    ok(cJSON_GetArraySize(list) > 20, "%d shared files",
       cJSON_GetArraySize(list));

    cJSON_ArrayForEach(item, list) {
        fixture(dir, item);
    }

    cJSON_Delete(list);
}


int
main(void)
{
    llm_media_limits_default(&limits);
    limits.timeout = 600000;
    setenv("LLM_MEDIA_TEST_SECRET", "1", 1);
    pool = llm_media_pool_create(objs(), 0);

    formats();
    sizes();
    light();
    files();
    headers();
    shapes();
    damaged();
    processes();
    many();
    absent();
    fixtures();

    llm_media_pool_free(pool);
    is_int(only_child(getpid()), 0, "llm-media has ended");

    return done_testing();
}
