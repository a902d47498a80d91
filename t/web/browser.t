#!/usr/bin/perl

# The page in headless Chromium, with real servers behind it: one with all that
# it can use, one that wants a key, one with a quota, one whose model is being
# loaded.  "./build.sh test" installs the browser; LLM_CHROMIUM=PATH is another
# one.  LLM_SHOTS=1 writes the screenshots of docs/page.md anew.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::JSON;
use LLM::Made qw(script);
use LLM::Tap;
use LLM::Test;
use LLM::Tower;
use Test::More;

my $web = "$LLM::Test::ROOT/t/web";

plan skip_all => 'no node' if system('node --version > /dev/null 2>&1');
plan skip_all => 'no chromium: "./build.sh test" installs it where there is a'
               . ' package' unless browser();

sub browser {
    return system("node --input-type=module -e '"
                  . "import { chromium } from \"$web/chromium.mjs\";"
                  . "process.exit(chromium() ? 0 : 1)'") == 0;
}


# ---- servers ----

my $hostile = <<'END';
# A <b>title</b>

<script>window.pwned = 1; alert(1)</script> and <img src=x onerror="pwned=1">

[one](javascript:window.pwned=1) [two](data:text/html,x) [three](//evil.test/x)
[four](https://good.test/?a="onmouseover="pwned=1) ![five](https://evil.test/i)

| a | <svg onload=pwned=1> |
|---|---|
| **x** | [y](vbscript:z) |

```html"><script>pwned=1</script>
<iframe src="javascript:parent.pwned=1"></iframe>
```

- one
  - two
END

my %script = (
    plain => 'It is **done**, by `code`.',
    hostile => $hostile,
    long => join(' ', map { "word$_" } 1 .. 1500),
    think => "<think>\nIt may be *seven*.\n</think>\n\nSeven.",
    call => "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\":"
          . " \"Rome\"}}\n</tool_call>",
    told => 'It is warm.'
);

my ($port_keys, $port_quota) = map { LLM::Test::free_port() } 1, 2;
my $secret = 'sk-llm-' . 'k' x 43;

my $t = LLM::Test->new(
    pace => 2,
    connections => 2048,
    model => LLM::Test::default_model()
             =~ s{%%ROOT%%/models}{%%DIR%%/models}r
        . 'llm_model script %%DIR%%/models/script.gguf ctx=8192'
        . " template=$web/template.jinja threads=1;"
        . ' llm_model sees %%ROOT%%/models/demo.gguf threads=1 parallel=2'
        . ' template=%%DIR%%/images.jinja mmproj=%%DIR%%/mmproj.gguf;',
    http => 'llm_token_zone $binary_remote_addr zone=q:1m requests=1/h;',
    server => 'include %%ROOT%%/conf/llm_page.conf;',
    locations => <<"END");
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
        location /admin {
            allow 127.0.0.1;
            deny all;
            llm_admin models=%%DIR%%/models;
        }
    }
    server {
        listen 127.0.0.1:$port_keys;
        include %%ROOT%%/conf/llm_page.conf;
        llm_api_keys keys;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location /admin { llm_admin; }
    }
    server {
        listen 127.0.0.1:$port_quota;
        include %%ROOT%%/conf/llm_page.conf;
        location /v1 { llm_token_limit zone=q; llm_api; }
END

my $slow = LLM::Test->new(pace => 150,
                          model => LLM::Test::default_model() =~ s/;/ lazy;/r,
                          server => 'include %%ROOT%%/conf/llm_page.conf;');

for ($t, $slow) {
    symlink "$LLM::Test::ROOT/web", $_->dir . '/llm_page'
        or die "llm_page: $!";
}

$t->write_file('script.json', LLM::JSON->new->utf8->encode(\%script));
mkdir $t->dir . '/models' or die "models: $!";
script($t->dir);
rename $t->dir . '/script.gguf', $t->dir . '/models/script.gguf' or die $!;
symlink "$LLM::Test::ROOT/models/demo.gguf", $t->dir . '/models/demo.gguf'
    or die "demo.gguf: $!";
LLM::Tower::make($t->dir . '/mmproj.gguf');
$t->write_file('images.jinja', $LLM::Tower::TEMPLATE);
$t->write_file('picture.png',
               LLM::Tower::png(40, 30, sub { (200, 30, $_[0]) }));
$t->write_file('keys', sprintf qq({"id": "ann", "sha256": "%s"}\n),
               sha256_hex($secret));
$t->start;

my @url = map { "http://127.0.0.1:$_/" } $t->port, $port_keys, $port_quota,
                                        $slow->port;


# ---- the page ----

tap_ok('chats', 'node', "$web/browser.mjs", 'chats', $url[0]);
tap_ok('images', 'node', "$web/browser.mjs", 'images', $url[0],
       $t->dir . '/picture.png');
tap_ok('copying', 'node', "$web/browser.mjs", 'copies', $url[0]);
tap_ok('conversations', 'node', "$web/browser.mjs", 'conversations', $url[0]);
tap_ok('looks', 'node', "$web/browser.mjs", 'looks', $url[0]);
tap_ok('the server', 'node', "$web/browser.mjs", 'server', @url[0, 1]);
tap_ok('keys', 'node', "$web/browser.mjs", 'keys', $url[1], $secret);
tap_ok('a quota', 'node', "$web/browser.mjs", 'quota', $url[2]);

$slow->start(cold => 1);
tap_ok('a model that is being loaded', 'node', "$web/browser.mjs", 'loading',
       $url[3]);
$slow->stop(name => 'the slow server');

if ($ENV{LLM_SHOTS}) {
    tap_ok('screenshots', 'node', "$web/browser.mjs", 'shots', $url[0],
           "$LLM::Test::ROOT/docs/page");
}

$t->stop;

done_testing();
