#!/usr/bin/perl

# conf/cluster.conf and conf/standby.conf, as they stand but for ports
# and addresses, before three and two real servers: conversations stay where
# their prompts are in the prefix cache; who is busy or gone is passed by, up to
# an answer's first byte; what is cut behind it is told.

use strict;
use warnings;

use LLM::JSON;
use List::Util qw(max min);
use LLM::H2;
use LLM::Test qw(slurp);
use Test::More;

my $CONVERSATIONS = 64;
my $TURNS = 5;


# ---- the servers ----

sub host {
    my ($queue) = @_;

    my $wait = 60 * $LLM::Test::SLOW;

    $queue //= "";

    return LLM::Test->new(
        pace => 0.5,
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
                 . ' parallel=4 ctx=4096 kv_cache=128m default;',
        http => "llm_queue 4 timeout=${wait}s $queue;" . '
                 log_format key "$http_x_mark $llm_route_key";
                 access_log logs/key.log key;
                 llm_token_zone $http_x_quota zone=q:1m requests=3/h;',
        server => 'add_header x-host %%PORT%% always;
                   set_real_ip_from 127.0.0.1;
                   real_ip_header   X-Forwarded-For;',
        locations => <<'END');
        location /v1 { llm_api; llm_tenant $http_x_tenant;
                       llm_token_limit zone=q; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END
}


# a front with a sample, before these; it takes HTTP/2, too

sub front {
    my ($name, $text, @behind) = @_;

    my $temp = join '', map { "${_}_temp_path temp/$_;\n" }
               qw(client_body proxy fastcgi uwsgi scgi);
    my $user = $> == 0 ? 'user root;' : '';

    my $t = LLM::Test->new(conf => <<"END");
load_module %%OBJS%%/ngx_http_llm_module.so;
$user
worker_processes 2;
daemon off;
error_log logs/error.log info;
pid logs/nginx.pid;
events {}
http {
$temp
log_format key '\$http_x_mark \$llm_route_key';
access_log logs/key.log key;
include conf.d/*.conf;
}
END

    my ($dir, $port) = ($t->dir, $t->port);
    my @addresses = map { '127.0.0.1:' . $_->port } @behind;

    is(scalar(() = $text =~ /^\s*server\s+10\.0\.0\.\d:8080/mg),
       scalar @addresses, "$name: its servers");

    $text =~ s/^(\s*listen\s+)8080;/${1}127.0.0.1:$port;
               listen 127.0.0.1:%%PORT2%% http2;/m;
    $text =~ s/\b10\.0\.0\.\d:8080/shift @addresses/ge;

    mkdir "$dir/conf.d" or die $!;
    $t->write_file('llm_errors.conf', slurp('conf/llm_errors.conf'));
    $t->write_file("conf.d/$name", $t->expand($text));

    return $t->start;
}


my @hosts = map { host()->start } 1 .. 3;
my %at = map { $_->port => $_ } @hosts;
my $cluster = slurp('conf/cluster.conf');
my $front = front('cluster.conf', $cluster, @hosts);


# ---- conversations ----

my $system = 'You are a helpful assistant. Answer in short sentences.';

sub words {
    my ($seed, $n) = @_;

    return join ' ', map {
        $seed = ($seed * 1103515245 + 12345) % 2147483648;
        (qw(red green blue house tree river stone cloud north south east west
            seven eight nine))[($seed >> 16) % 15];
    } 1 .. $n;
}


# the reply's figures, and what it takes to go on

sub turn {
    my ($t, $tenant, $talk, $text) = @_;

    push @{ $talk->{messages} }, { role => 'user', content => $text };

    return $t->open('/v1/chat/completions',
        { messages => $talk->{messages}, temperature => 0, max_tokens => 12,
          model => 'demo' }, headers => { 'X-Tenant' => $tenant });
}


# 64 conversations, eight at a time: cached tokens, those of all prompts, and
# the hosts that each conversation came to

sub converse {
    my ($t, $tenant) = @_;
    my ($cached, $prompt, @talks) = (0, 0);

    @talks = map { { seed => $_, hosts => {}, messages => [
        { role => 'system', content => $system } ] } } 1 .. $CONVERSATIONS;

    for my $n (1 .. $TURNS) {
        for (my $i = 0; $i < @talks; $i += 4) {
            my @now = @talks[$i .. $i + 3];
            my @open = map {
                turn($t, $tenant, $_, words($_->{seed} * 100 + $n, 60))
            } @now;

            for my $talk (@now) {
                my $res = shift(@open)->response;
                my $usage = $res->{json}{usage};

                is($res->{status}, 200, "$tenant: an answer")
                    or diag($res->{body}) if $res->{status} != 200;

                push @{ $talk->{messages} }, $res->{json}{choices}[0]{message};
                $talk->{hosts}{ $res->{headers}{'x-host'} }++;
                $cached += $usage->{prompt_tokens_details}{cached_tokens};
                $prompt += $usage->{prompt_tokens};
            }
        }
    }

    return ($cached / $prompt, $prompt, @talks);
}


my ($hit, $asked, @talks) = converse($front, 'hash');
my %home;

$home{ join ' ', keys %{ $_->{hosts} } }++ for @talks;

is(join(' ', sort keys %home), join(' ', sort keys %at),
   'each conversation is on one host, and each host has some');
cmp_ok(min(values %home), '>', 8, "they are spread: @{[ values %home ]}");

my $random = front('random.conf',
                   $cluster =~ s/hash\s+\$llm_route_key\s+consistent;/random;/r,
                   @hosts);
my ($chance, $asked2) = converse($random, 'random');

is($asked2, $asked, 'the same conversations by chance');

# of a conversation's turn all but what is new is there; by chance, what the
# host has seen of it

note(sprintf 'cached of %d prompt tokens: %.1f %% by key, %.1f %% by chance',
     $asked, 100 * $hit, 100 * $chance);
cmp_ok($hit, '>', 0.6, sprintf('cached by key: %.3f', $hit));
cmp_ok($hit, '>', 1.5 * $chance, sprintf('by chance: %.3f', $chance));

$random->stop(name => 'random');


# ---- other requests ----

is($front->get('/v1/models')->{json}{data}[0]{id}, 'demo', 'GET models');
is($front->post('/v1/completions', '{"prompt":')->{status}, 400,
   'a broken body');
is($front->post('/v1/completions', { prompt => 'a', model => 'no' })
     ->{json}{error}{code}, 'model_not_found', "a host's error as it is");
is($front->post('/v1/completions', { prompt => 'a' x 9_000_000 })
     ->{json}{error}{code}, 'request_too_large', "the front's in JSON");

my $long = join ' ', 1 .. 400;

# clients are told apart by address, as the sample's comment says, and nobody
# by what he says himself

sub cached {
    my ($from, @headers) = @_;

    my $res = $front->post('/v1/completions',
        { prompt => "address $long", max_tokens => 1 }, from => $from,
        headers => { @headers });

    return $res->{json}{usage}{prompt_tokens_details}{cached_tokens};
}

is(cached('127.0.0.5'), 0, 'a client');
cmp_ok(cached('127.0.0.5'), '>', 0, 'finds its prompt again');
is(cached('127.0.0.6', 'X-Forwarded-For' => '127.0.0.5'), 0,
   'another one does not');

for my $case ([ 'completions', { prompt => $long, max_tokens => 4 } ],
              [ 'responses', { input => "r $long", max_output_tokens => 4 } ],
              [ 'messages', { max_tokens => 4, messages => [
                  { role => 'user', content => "m $long" } ] } ])
{
    my ($path, $body) = @$case;
    my %hosts = map {
        my $res = $front->post("/v1/$path", $body);

        is($res->{status}, 200, "$path: an answer") or diag($res->{body});
        $res->{headers}{'x-host'} => 1;
    } 1 .. 4;

    is(scalar keys %hosts, 1, "$path: by one host");
}


# a host's log has the same key, also of a body that was parsed in a thread and
# is not needed any more

my $res = $front->post('/v1/completions', {
    prompt => 'thread', max_tokens => 1, metadata => { a => 'x' x 40_000 } },
    headers => { 'X-Mark' => 'large' });

is($res->{status}, 200, 'a large body');
ok($front->wait_log(qr/^large [0-9a-f]{32}$/m, 'key.log'),
   'a front may log the key');

my ($key) = $front->log('key.log') =~ /^large (\S+)$/m;

ok($at{ $res->{headers}{'x-host'} }->wait_log(qr/^large $key$/m, 'key.log'),
   'and a host logs the same');


# ---- who is full ----

# one conversation's host has four places, and four may wait: others take over

my @crowd = map {
    $front->open('/v1/completions',
                 { prompt => 'a', ignore_eos => \1, max_tokens => 200 })
} 1 .. 14;
my @answers = map { $_->response } @crowd;
my %served;

$served{ $_->{headers}{'x-host'} }++ for @answers;

is(join(' ', map { $_->{status} } @answers), join(' ', (200) x 14),
   'more than a host has room for: all are answered');
cmp_ok(scalar keys %served, '>', 1, 'by several');
cmp_ok(max(values %served), '>=', 8, 'the first is full');

@crowd = map {
    $front->open('/v1/completions',
                 { prompt => 'a', ignore_eos => \1, max_tokens => 800 })
} 1 .. 40;
@answers = map { $_->response } @crowd;

my @refused = grep { $_->{status} == 429 } @answers;

cmp_ok(scalar @refused, '>', 0, 'more than all have room for: some are not');
is(scalar(grep { $_->{status} == 200 } @answers) + @refused, 40,
   'and no other way');
is($refused[0]{json}{error}{code}, 'queue_full', "in a host's words");
is($refused[0]{headers}{'x-llm-error'}, 'queue_full', 'a word for proxies');
ok($refused[0]{headers}{'retry-after'}, 'when to come again');

# that they were full is forgotten: each conversation is where it was

my @again = map { turn($front, 'hash', $_, 'And now?')->response } @talks[0 .. 9];

is(join(' ', map { $_->{headers}{'x-host'} } @again),
   join(' ', map { keys %{ $_->{hosts} } } @talks[0 .. 9]),
   'then each conversation is where it was');


# ---- a quota that is used up: no other host is asked for more ----

@answers = map {
    $front->post('/v1/completions', { prompt => 'a', max_tokens => 1 },
                 headers => { 'X-Quota' => 'ann' })
} 1 .. 8;

is(join(' ', map { $_->{status} } @answers),
   '200 200 200 429 429 429 429 429', 'what a quota has, and no more');
is($answers[-1]{json}{error}{code}, 'rate_limit_exceeded', "in a host's words");
is(scalar(keys %{{ map { $_->{headers}{'x-host'} => 1 } @answers }}), 1,
   'of the one that has the account');


# ---- a host is killed ----

# by its first message each conversation has a host: a text for each of them

my %text;

for my $n (1 .. 50) {
    my $res = $front->post('/v1/completions',
                           { prompt => "try $n", max_tokens => 1 });

    push @{ $text{ $res->{headers}{'x-host'} } }, "try $n";
}

my ($gone) = @hosts;
my $down = $gone->port;

# none of these is at its end when the host is killed

my $LONG = 1500;

my @streams = map {
    my $stream = $front->open('/v1/completions', {
        prompt => $_, stream => \1, ignore_eos => \1, max_tokens => $LONG });
    $stream->event;
    $stream;
} map { $text{ $_->port }[0] } @hosts, $gone;

my $h2 = LLM::H2->new(port => $front->{port2});
my $id = $h2->post('/v1/completions', {
    prompt => $text{$down}[0], stream => \1, ignore_eos => \1,
    max_tokens => $LONG });

$h2->wait_event($id);

# what has no first byte: a whole answer that is being computed; whole ones and
# streams that wait for a place, as many as may, so they come after it has its

sub has {
    my ($running, $waiting) = @_;

    return LLM::Test::wait_for(20, sub {
        my $f = $gone->figures;

        LLM::Client::read_ready(@streams, $h2);
        $f->{running} == $running && $f->{waiting} == $waiting;
    });
}

my @waiting;

for ([1, 1], [2, 5]) {
    my ($from, $to) = @$_;

    push @waiting, map {
        $front->open('/v1/completions', {
            prompt => $text{$down}[1], ignore_eos => \1, max_tokens => $LONG,
            $_ > 3 ? (stream => \1) : () })
    } $from .. $to;

    ok(has(4, $to - 1), "a host has $to with no byte yet");
}

kill 'KILL', -$gone->{pid};
waitpid $gone->{pid}, 0;
delete $gone->{pid};

LLM::Client::read_all(@streams, @waiting);

for my $i (0 .. $#streams) {
    my $here = $streams[$i]->read_header->{headers}{'x-host'};
    my @events = $streams[$i]->events;
    my $done = @events && $events[-1]{data} && $events[-1]{data} eq '[DONE]';

    is(!!$streams[$i]{truncated}, $here == $down,
       "stream $i: cut with its host, and told") ;
    is(!!$done, $here != $down, 'or whole');
}

my $cut = $h2->wait_done($id);

ok($cut->{rst} && !$cut->{done}, 'over HTTP/2 by a reset');
unlike($cut->{data}, qr/\[DONE\]/, 'without an end');

for my $i (0 .. $#waiting) {
    my $open = $waiting[$i]->read_header;

    is($open->{status}, 200, "request $i had no byte yet: answered");
    isnt($open->{headers}{'x-host'}, $down, 'by another host');

    if ($i < 3) {
        is($open->response->{json}{usage}{completion_tokens}, $LONG, 'whole');

    } else {
        is(($open->events)[-1]{data}, '[DONE]', 'to its end');
    }
}

# while it is away nothing is lost, and who had another host keeps it

my %moved;

for my $talk (@talks) {
    my ($was) = keys %{ $talk->{hosts} };
    my $res = turn($front, 'hash', $talk, 'Go on.')->response;
    my $is = $res->{headers}{'x-host'};

    push @{ $talk->{messages} }, $res->{json}{choices}[0]{message};
    $moved{"$res->{status} " . ($was == $down ? 'homeless' : 'at home')
           . ($is == $was ? ' stays' : ' moves')}++;
}

is(join(', ', sort keys %moved), '200 at home stays, 200 homeless moves',
   'while a host is away its conversations move, and no others');
is($front->get('/health')->{status}, 200, 'there are others');

# ---- and comes back

$gone->start;

# it is tried again after fail_timeout

ok(LLM::Test::wait_for(30, sub {
    $front->post('/v1/completions', { prompt => $text{$down}[0],
        max_tokens => 1 })->{headers}{'x-host'} == $down;
}), 'a host that is back is found');

my @back = map { turn($front, 'hash', $_, 'Go on.')->response } @talks[0 .. 9];

is(join(' ', map { "$_->{status} $_->{headers}{'x-host'}" } @back),
   join(' ', map { '200 ' . join '', keys %{ $_->{hosts} } } @talks[0 .. 9]),
   'and its conversations are there again');

# ---- one that is told to end

$hosts[1]->kill('QUIT');
ok(LLM::Test::wait_for(20, sub { $hosts[1]->ended }), 'a host that quits');

my @quit = map {
    $front->post('/v1/completions', { prompt => $_, max_tokens => 4 })
} map { @{ $text{$_}}[0 .. 3] } keys %text;

is(scalar(grep { $_->{status} == 200 } @quit), scalar @quit, 'nothing is lost');

# ---- none is left

$_->stop(name => 'a host') for @hosts[0, 2];

$res = $front->post('/v1/completions', { prompt => 'a' });

is($res->{status}, 503, 'without hosts');
is($res->{json}{error}{code}, 'no_host', 'in JSON');
is($front->get('/health')->{status}, 503, 'the front is not healthy');

$front->stop(name => 'cluster.conf');


# ---- a standby ----

my ($first, $second) = map { host()->start } 1 .. 2;
my $pair = front('standby.conf', slurp('conf/standby.conf'), $first,
                 $second);


sub ask {
    return $pair->post('/v1/completions', { prompt => 'a', max_tokens => 4 });
}

is(join(' ', map { ask()->{headers}{'x-host'} } 1 .. 6),
   join(' ', ($first->port) x 6), 'standby.conf: the first serves');

@crowd = map {
    $pair->open('/v1/completions',
                { prompt => 'a', ignore_eos => \1, max_tokens => 400 })
} 1 .. 12;
@answers = map { $_->response } @crowd;
%served = ();
$served{ $_->{headers}{'x-host'} }++ for @answers;

is(join(' ', map { $_->{status} } @answers), join(' ', (200) x 12),
   'until it is full');
cmp_ok($served{ $second->port } // 0, '>', 0, 'then the second one does, too');
is(ask()->{headers}{'x-host'}, $first->port, 'and no longer than that');

@waiting = map {
    $pair->open('/v1/completions',
                { prompt => 'a', ignore_eos => \1, max_tokens => 600 })
} 1 .. 3;

ok(LLM::Test::wait_for(20, sub { $first->figures->{running} == 3 }),
   'the first is at work');

kill 'KILL', -$first->{pid};
waitpid $first->{pid}, 0;
delete $first->{pid};

is(join(' ', map {
       my $r = $_->response;
       "$r->{status} $r->{headers}{'x-host'} "
           . $r->{json}{usage}{completion_tokens};
   } @waiting), join(' ', ('200 ' . $second->port . ' 600') x 3),
   'and is killed: the second one answers');
is(ask()->{headers}{'x-host'}, $second->port, 'from now on');
is($pair->get('/health')->{status}, 200, 'the pair is healthy');

$first->start;
ok(LLM::Test::wait_for(30, sub {
    ask()->{headers}{'x-host'} == $first->port;
}), 'until the first is back');

$first->stop(name => 'first');
$second->stop(name => 'second');
$pair->stop(name => 'standby.conf');


# ---- one that has room, but no time (llm_queue ttft=) ----

($first, $second) = (host('ttft=1ms')->start, host()->start);
$pair = front('standby.conf', slurp('conf/standby.conf'), $first,
              $second);

# it knows its speed, and then has as much to do as it can

is($first->post('/v1/completions', { prompt => $long, max_tokens => 50,
                                     ignore_eos => \1 })->{status}, 200,
   'a host without work');

my $held = $first->open('/v1/completions', {
    prompt => 'a', max_tokens => 3900, n => 16, ignore_eos => \1 });

ok(LLM::Test::wait_for(20, sub { $first->figures->{running} == 4 }),
   'and with all that it can do');
is($first->post('/v1/completions', { prompt => 'a', max_tokens => 4 })
     ->{json}{error}{code}, 'overloaded', 'it would be too late with more');

$res = ask();
is("$res->{status} $res->{headers}{'x-host'}", '200 ' . $second->port,
   'it is passed by');
$held->close;

$first->stop(name => 'first');
$second->stop(name => 'second');
$pair->stop(name => 'a host without time');


# ---- llm_upstream: behind the method, and before or behind keepalive ----

for my $case ([ 'hash a; llm_upstream; keepalive 2;' ],
              [ 'hash a; keepalive 2; llm_upstream;' ], [ 'llm_upstream;' ],
              [ 'llm_upstream; hash a;', '"llm_upstream" must come after the '
                . 'balancing method of the upstream "u"' ],
              [ 'llm_upstream; llm_upstream;', 'is duplicate' ],
              [ 'llm_upstream on;', 'invalid number of arguments' ])
{
    my ($text, $want) = @$case;
    my ($status, $said) = LLM::Test->new(model => '', locations => '',
        http => "upstream u { server 127.0.0.1:1; $text }")->check;

    is($status, $want ? 1 : 0, $want ? "refused: $text" : $text)
        or diag($said);
    like($said, qr/\Q$want\E.* in \S+nginx\.conf:\d+/s, 'with file and line')
        if $want;
}

done_testing();
