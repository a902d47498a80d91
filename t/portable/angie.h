/*
 * Angie's list of locations, whose entries differ from nginx's: included before
 * a source that walks the list, to test that it compiles for Angie, too.  The
 * other headers are nginx's; angie_version is that of Angie 1.3.
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#define angie_version  1003000

typedef struct {
    ngx_str_t                  name;
#if (NGX_PCRE)
    ngx_http_regex_t          *regex;
#endif
    ngx_http_core_loc_conf_t  *conf;
    unsigned                   named:1;
    unsigned                   exact_match:1;
} angie_place_t;

typedef struct {
    ngx_queue_t                queue;
    angie_place_t             *exact;
    angie_place_t             *inclusive;
} angie_queue_t;

#define ngx_http_core_loc_t        angie_place_t
#define ngx_http_location_queue_t  angie_queue_t
