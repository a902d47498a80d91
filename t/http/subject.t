#!/usr/bin/perl

# A new subject of requests is one file and one row: the module is built once
# again with a nginx module that refuses requests by a word, and its name in
# the list of `config`.  Nothing else is compiled: neither what serves requests
# nor another subject knows of it.

use strict;
use warnings;

use File::Temp qw(tempdir);
use LLM::Test qw(slurp);
use Test::More;

my ($root, $objs) = ($LLM::Test::ROOT, $LLM::Test::OBJS);

plan skip_all => "no build of the module in $objs"
    unless -e "$objs/nginx/Makefile" && -d "$objs/nginx-src";

my $dir = tempdir('llm-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $name = 'ngx_http_llm_moderation';

# the file

my $source = <<'END';
#include "http/conf/ngx_http_llm_conf.h"
#include "http/request/ngx_http_llm_stage.h"


typedef struct {
    ngx_str_t                    word;
} ngx_http_llm_moderation_conf_t;


/* of a request, in r->pool */

typedef struct {
    ngx_uint_t                   found;
} ngx_http_llm_moderated_t;


static ngx_int_t ngx_http_llm_add_moderation(ngx_conf_t *cf);
static void *ngx_http_llm_create_moderation_conf(ngx_conf_t *cf);
static char *ngx_http_llm_merge_moderation_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_llm_moderation_body(ngx_http_llm_body_t *body);
static void ngx_http_llm_moderation_input(ngx_http_llm_body_t *body,
    u_char *p, size_t len);
static ngx_int_t ngx_http_llm_moderation_parsed(ngx_http_llm_body_t *body);


static ngx_http_llm_stage_t  ngx_http_llm_moderation_stage = {
    .body = ngx_http_llm_moderation_body,
    .input = ngx_http_llm_moderation_input,
    .parsed = ngx_http_llm_moderation_parsed
};


static ngx_command_t  ngx_http_llm_moderation_commands[] = {

    { ngx_string("llm_moderation"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_llm_moderation_conf_t, word),
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_llm_moderation_module_ctx = {
    ngx_http_llm_add_moderation,           /* preconfiguration */
    NULL,                                  /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_llm_create_moderation_conf,   /* create location configuration */
    ngx_http_llm_merge_moderation_conf     /* merge location configuration */
};


ngx_module_t  ngx_http_llm_moderation_module = {
    NGX_MODULE_V1,
    &ngx_http_llm_moderation_module_ctx,   /* module context */
    ngx_http_llm_moderation_commands,      /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_llm_add_moderation(ngx_conf_t *cf)
{
    return ngx_http_llm_add_stage(cf, &ngx_http_llm_moderation_stage);
}


static void *
ngx_http_llm_create_moderation_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_llm_moderation_conf_t));
}


static char *
ngx_http_llm_merge_moderation_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_llm_moderation_conf_t *prev = parent;
    ngx_http_llm_moderation_conf_t *conf = child;

    ngx_conf_merge_str_value(conf->word, prev->word, "");

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_llm_moderation_body(ngx_http_llm_body_t *body)
{
    ngx_http_llm_moderated_t        *m;
    ngx_http_llm_moderation_conf_t  *conf;

    conf = ngx_http_llm_get_loc_conf(body->ctx->conf,
                                     ngx_http_llm_moderation_module);

    if (conf->word.len == 0) {
        return NGX_OK;
    }

    m = ngx_pcalloc(body->ctx->request->pool,
                    sizeof(ngx_http_llm_moderated_t));
    if (m == NULL) {
        return NGX_ERROR;
    }

    ngx_http_llm_set_data(body->ctx, m, ngx_http_llm_moderation_stage);

    return NGX_OK;
}


static void
ngx_http_llm_moderation_input(ngx_http_llm_body_t *body, u_char *p,
    size_t len)
{
    ngx_http_llm_moderated_t        *m;
    ngx_http_llm_moderation_conf_t  *conf;

    m = ngx_http_llm_get_data(body->ctx, ngx_http_llm_moderation_stage);

    if (m == NULL) {
        return;
    }

    conf = ngx_http_llm_get_loc_conf(body->ctx->conf,
                                     ngx_http_llm_moderation_module);

    m->found = memmem(p, len, conf->word.data, conf->word.len) != NULL;
}


static ngx_int_t
ngx_http_llm_moderation_parsed(ngx_http_llm_body_t *body)
{
    ngx_http_llm_moderated_t  *m;

    m = ngx_http_llm_get_data(body->ctx, ngx_http_llm_moderation_stage);

    if (m == NULL || !m->found) {
        return NGX_OK;
    }

    llm_fail_with(&body->err, 403, "moderated", NULL,
                  "The request has a word that is not allowed here.");

    return NGX_ERROR;
}
END


sub spew {
    my ($file, $text) = @_;

    open my $f, '>', $file or die "$file: $!";
    print $f $text;
    close $f or die "$file: $!";
}


spew("$dir/$name.c", $source);

# the row, behind the guard's

my $row = 'ngx_http_llm_guard_module';
my ($list) = slurp("$root/config") =~ /^ngx_module_name="([^"]*)"/m;
my @modules = grep { $_ ne '\\' } split ' ', $list;

is(scalar(grep { $_ eq $row } @modules), 1, 'config has a list of modules');

# what nginx's configure makes of both, in a copy of the build folder

system('cp', '-rp', "$objs/nginx", "$dir/nginx") == 0 or die 'cp';

my $table = slurp("$dir/nginx/ngx_http_llm_module_modules.c");

is(join(' ', $table =~ /^    &(\w+),$/mg), join(' ', @modules),
   'which is what was built');

$table =~ s/^(.*)\b$row\b(.*\n)/$1$row$2$1${name}_module$2/mg;
spew("$dir/nginx/ngx_http_llm_module_modules.c", $table);

my $makefile = slurp("$dir/nginx/Makefile");

$makefile =~ s{\Q$objs\E/nginx(?=[/\s])}{$dir/nginx}g;
$makefile =~ s{^\S+/libllm\.a:\s+llm_library\n(?:\t.*\n)+}{}m;

my ($rule) = $makefile =~ m{^(\S+/ngx_http_llm_guard\.o:.*?\n)\n}ms;

$makefile =~ s{^(\t\S*)/ngx_http_llm_guard\.o \\\n}{$&$1/$name.o \\\n}mg;
$rule =~ s{ngx_http_llm_guard\.o}{$name.o}g;
$rule =~ s{\S+/ngx_http_llm_guard\.c}{$dir/$name.c}g;
spew("$dir/nginx/Makefile", "$makefile\n$rule\n");

my %before = map { $_ => (stat)[9] } glob "$dir/nginx/addon/*/*.o";
my $module = "$dir/nginx/ngx_http_llm_module.so";
my $said = `make -s -C $objs/nginx-src -f $dir/nginx/Makefile $module 2>&1`;

is($?, 0, 'it builds') or diag($said);
is(join(' ', grep { !$before{$_} || $before{$_} != (stat)[9] }
             glob "$dir/nginx/addon/*/*.o"),
   "$dir/nginx/addon/access/$name.o", 'of one file');

{
    local $LLM::Test::OBJS = "$dir/nginx";

    my $t = LLM::Test->new(locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location /strict/v1 { llm_api; llm_moderation forbidden; }
END

    my %request = (prompt => 'a forbidden word', max_tokens => 1);

    is($t->post('/v1/completions', \%request)->{status}, 200,
       'where it is off a request is answered');

    my $r = $t->post('/strict/v1/completions', \%request);

    is($r->{status}, 403, 'where it is on the word is refused');
    is($r->{json}{error}{code}, 'moderated', 'and why is said');

    $request{prompt} = 'another word';
    is($t->post('/strict/v1/completions', \%request)->{status}, 200,
       'others are answered');

    $t->stop;
}

done_testing();
