#!/usr/bin/perl

# A filter that puts another location's output before a stream: what was held
# back behind it goes out when it has ended, not with the next token.

use strict;
use warnings;

use IO::Socket::INET;

use LLM::Test;
use Test::More;

my $v = `nginx -V 2>&1`;

plan skip_all => 'nginx has no addition module'
    if $v !~ /--with-http_addition_module/;

my $late = LLM::Test::free_port();
my $t = LLM::Test->new(pace => 0.5,
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=1'
           . ' default;'
           . ' llm_model long ' . LLM::Test::random_model(2, 40960)
           . ' threads=1;',
    locations => <<"END")->start;
        location /v1 { llm_api; }
        location /framed {
            llm_api; llm_heartbeat 0;
            add_before_body /before; add_after_body /after;
            addition_types text/event-stream;
        }
        location /before {
            proxy_pass http://127.0.0.1:$late;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
        }
        location /after { return 200 ": after\\n\\n"; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

my $server = IO::Socket::INET->new(Listen => 8, LocalAddr => '127.0.0.1',
                                   LocalPort => $late, ReuseAddr => 1)
    or die "no port: $!";

# the engine's only place is taken, so that no token comes meanwhile

my $busy = $t->open_long(max_tokens => 1900);
$busy->event;

my %ask = (prompt => 'a', max_tokens => 5, ignore_eos => \1, stream => \1);
my $s = $t->open('/framed/completions', { %ask, echo => \1 });

# the addition waits until our own output is held back behind it

my $peer = $server->accept;
$peer->recv(my $request, 8192);

$busy->close;
ok(LLM::Test::wait_for(20, sub { $t->figures->{finished}{length} >= 1 }),
   'an answer is there, held back');

$peer->send("HTTP/1.0 200 OK\r\n\r\n: before\n\n");
$peer->close;

my $body = $s->response->{body};

like($body, qr/^: before\n\ndata: /, 'the addition comes first');
like($body, qr/data: \[DONE\]\n\n: after\n\n$/, 'and another one last');

# held back: the header's flush alone, before the first token of a prompt
# that takes a while

$s = $t->open('/framed/completions', { %ask, model => 'long',
                                       prompt => 'word ' x 12000 });
$peer = $server->accept;
$peer->recv($request, 8192);
$peer->send("HTTP/1.0 200 OK\r\n\r\n: before\n\n");
$peer->close;
$s->read_header;
is($s->{status}, 200, 'the header is there');
$body = $s->piece;
like($body, qr/^: before\n\n/, 'what was added is there');
is($t->get('/figures')->{json}{models}[1]{generation_tokens}, 0,
   'and there is no token yet');
$s->close;

$t->stop;

done_testing();
