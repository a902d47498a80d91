#!/usr/bin/perl

# llm_fetch: images named by URLs are fetched through a location of the
# operator: what it is asked, what becomes of its answers, sizes and times;
# its rules hold for each URL; nothing is left in the memory for media, whoever
# leaves or is killed.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use LLM::H2;
use LLM::Test;
use LLM::Tower;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

my $BIG = 300_000;
my ($t, $origin, $port);


# ---- an origin ----

# By the path: /ok/N (N bytes with a length), /long/N (chunked), /close/N (until
# it closes), /cut (less than its length), /status/N, /text, /empty, /slow (the
# first bytes, then nothing), /never (not even a header).  What it was asked is
# a line of $dir/asked each; "gone" is one whose asker has left.

sub start_origin {
    my ($s, $dir) = @_;

    $origin = fork // die "fork: $!";

    return if $origin;

    $SIG{CHLD} = 'IGNORE';
    $SIG{TERM} = 'DEFAULT';
    $SIG{PIPE} = 'IGNORE';

    while (my $c = $s->accept) {
        my $pid = fork // next;

        if ($pid == 0) {
            eval { answer($c, $dir) };
            POSIX::_exit(0);
        }

        close $c;
    }

    POSIX::_exit(0);
}

sub note_down {
    my ($dir, $what) = @_;

    open my $f, '>>', "$dir/asked" or die "asked: $!";
    syswrite $f, JSON::PP->new->canonical->encode($what) . "\n";
    close $f;
}

sub put {
    my ($c, $text) = @_;

    while (length $text) {
        my $n = syswrite $c, $text or return;
        substr $text, 0, $n, '';
    }
}

sub answer {
    my ($c, $dir) = @_;
    my ($text, $n) = ('', 1);

    while ($n && $text !~ /\r\n\r\n/) {
        $n = sysread $c, $text, 65536, length $text;
    }

    my ($method, $path) = $text =~ m{^(\S+) (\S+) HTTP} or return;

    note_down($dir, { method => $method, path => $path, head => $text });

    my ($kind, $size) = $path =~ m{^/(\w+)(?:/(\d+))?};
    my $type = "Content-Type: image/png\r\nConnection: close\r\n";
    my $body = 'x' x ($size // 0);

    return put($c, "HTTP/1.1 200 OK\r\n${type}Content-Length: "
                   . length($body) . "\r\n\r\n$body") if $kind eq 'ok';
    return put($c, "HTTP/1.1 $size Said\r\n${type}Content-Length: 3\r\n\r\nwhy")
        if $kind eq 'status';
    return put($c, "HTTP/1.1 200 OK\r\n${type}Content-Length: 0\r\n\r\n")
        if $kind eq 'empty';
    return put($c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
                   . "Content-Length: 5\r\n\r\nhello") if $kind eq 'text';
    return put($c, "HTTP/1.1 200 OK\r\n$type\r\n$body") if $kind eq 'close';
    return put($c, "HTTP/1.1 200 OK\r\n${type}Content-Length: 99\r\n\r\nshort")
        if $kind eq 'cut';

    if ($kind eq 'long') {
        put($c, "HTTP/1.1 200 OK\r\n${type}Transfer-Encoding: chunked\r\n\r\n");
        put($c, sprintf "%x\r\n%s\r\n", length $_, $_)
            for unpack '(a4000)*', $body;
        return put($c, "0\r\n\r\n");
    }

    put($c, "HTTP/1.1 200 OK\r\n${type}Content-Length: $BIG\r\n\r\n"
            . 'x' x 50_000) if $kind eq 'slow';

    IO::Select->new($c)->can_read(60);
    note_down($dir, { gone => $path });
}

sub notes {
    open my $f, '<', $t->dir . '/asked' or return;

    return map { JSON::PP->new->decode($_) } grep { /\n\z/ } <$f>;
}

sub is_gone {
    my ($what) = @_;

    ok(LLM::Test::wait_for(60, sub { grep { ($_->{gone} // '') eq $what }
                                     notes() }),
       "the origin of $what sees that nobody waits");
}


# ---- nginx ----

my $s = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1')
    or die "no port: $!";

$port = $s->sockport;

$t = LLM::Test->new(
    model => 'llm_model sees %%ROOT%%/models/demo.gguf threads=1 parallel=2'
             . ' template=%%DIR%%/images.jinja mmproj=%%DIR%%/mmproj.gguf'
             . ' default;',
    workers => 2,
    main => 'worker_shutdown_timeout 60s;',
    http => <<"END",
        client_max_body_size 40m;
        llm_media_memory 1m;
        llm_max_image_size ${BIG};
        proxy_cache_path %%DIR%%/cache keys_zone=c:1m;

        server {
            listen 127.0.0.1:%%PORT2%% http2;
            location /v1 { llm_api; llm_fetch /fetch; }
            location = /fetch { internal; proxy_pass \$llm_fetch_url; }
        }

        map \$llm_fetch_url \$fetch_from {
            default "";
            "~^http://127\\.0\\.0\\.1:$port/"  \$llm_fetch_url;
        }
END
    locations => <<'END');
        location /v1 { llm_api; llm_fetch /fetch; }
        location /cached/ { llm_api; llm_fetch /cache?x=1; }
        location /hasty/ { llm_api; llm_fetch /fetch timeout=300ms; }
        location /late/ { llm_api; llm_fetch /fetch; llm_timeout 300ms; }
        location /file/ { llm_api; llm_fetch /disk; }
        location /off/ { llm_api; }
        location /var/ { llm_api; llm_fetch $arg_fetch; }

        location = /fetch {
            internal;
            if ($fetch_from = "") { return 403; }
            proxy_pass $fetch_from;
            proxy_set_header X-Tag $request_id;
        }
        location = /cache {
            internal;
            proxy_pass $fetch_from;
            proxy_cache c;
            proxy_cache_key $llm_fetch_url;
            proxy_cache_valid 200 1h;
        }
        location = /disk {
            internal;
            default_type image/png;
            alias %%DIR%%/disk.png;
        }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

LLM::Tower::make($t->dir . '/mmproj.gguf');
$t->write_file('images.jinja', $LLM::Tower::TEMPLATE);
$t->write_file('disk.png', 'x' x 200_000);

start_origin($s, $t->dir);
close $s;
$t->start;

sub body {
    my (@paths) = @_;

    return { model => 'sees', max_tokens => 2, messages => [ {
        role => 'user', content => [ map { { type => 'image_url', image_url =>
            { url => m{^\w+:} ? $_ : "http://127.0.0.1:$port$_" } } }
            @paths ] } ] };
}

sub ask {
    my ($paths, %opt) = @_;

    return $t->post($opt{path} // '/v1/chat/completions', body(@$paths),
                    headers => { Authorization => 'Bearer secret',
                                 Cookie => 'a=b' });
}

# what comes to the engine is a 400 of its decoder: the bytes are no image

sub comes {
    my ($paths, $what, %opt) = @_;
    my $res = ask($paths, %opt);

    is($res->{status}, 400, $what);
    like($res->{json}{error}{message}, qr/no image that is known/,
         'it was fetched, and came to the engine');
}

sub fails {
    my ($paths, $status, $words, $what, %opt) = @_;
    my $res = ask($paths, %opt);

    is($res->{status}, $status, $what);
    like($res->{json}{error}{message}, $words, 'with its reason');

    return $res;
}

sub is_empty {
    my ($what) = @_;

    ok(LLM::Test::wait_for(60, sub {
        my $f = eval { $t->get('/figures')->{json}{media_memory} };
        $f && $f->{used} == 0;
    }), "$what: nothing is left");
}


# ---- what comes ----

comes([ '/ok/1000' ], 'a file');

my ($asked) = notes();

is("$asked->{method} $asked->{path}", 'GET /ok/1000', 'is asked for');
unlike($asked->{head}, qr/secret|cookie|content-length/i,
       'without the headers of the client');
like($asked->{head}, qr/^Host: 127\.0\.0\.1:$port\r$/m, 'by its own host');
like($asked->{head}, qr/^X-Tag: \w{32}\r$/m, 'variables have values there');

comes([ "/ok/$BIG" ], 'one of the largest size');
comes([ "/long/$BIG" ], 'one without a length');
comes([ "/close/$BIG" ], 'one that ends with its connection');
comes([ '/ok/1', '/long/100000', '/ok/20000' ], 'several');
comes([ '/ok/5', 'data:image/png;base64,AAAA', '/ok/6' ],
      'and some that came with the request');
comes([ '/ok/7#part' ], 'one with a fragment');
is((notes())[-1]{path}, '/ok/7', 'which the origin does not see');
comes([ '/ok/9' ], 'a location by a variable',
      path => '/var/chat/completions?fetch=/fetch');
fails([ '/ok/9' ], 400, qr/has not set llm_fetch/, 'an empty one is none',
      path => '/var/chat/completions');
fails([ '/ok/9' ], 500, qr/cannot fetch files/, 'an invalid one',
      path => '/var/chat/completions?fetch=fetch');
comes([ 'http://any.example/' ], 'a location with a file',
      path => '/file/chat/completions');
is_empty('these');

my $n = notes();

comes([ '/ok/250000', '/ok/250000' ], 'one that is cached',
      path => '/cached/chat/completions');
is(notes() - $n, 1, 'is asked for once');
comes([ '/ok/250000' ], 'and again', path => '/cached/chat/completions');
is(notes() - $n, 1, 'comes from the cache');



# ---- what does not ----

my $res = fails([ '/status/404' ], 400, qr{'http://127\.0\.0\.1:$port/status/404' could }, 'a status');
like($res->{json}{error}{message}, qr/ be fetched: the answer has the status 404/,
     'which it says');
is($res->{json}{error}{code}, 'media_fetch_failed', 'has a code');
is($res->{json}{error}{param}, 'messages[0].content[0]', 'and names the part');
fails([ '/ok/5', '/status/302' ], 400, qr/status 302/, 'a redirect');
fails([ '/status/500' ], 400, qr/status 500/, 'an error of the origin');
fails([ '/text' ], 400, qr/is "text\/html", not an image/, 'a page');
fails([ '/empty' ], 400, qr/is empty/, 'nothing');
fails([ '/cut' ], 400, qr/transfer was cut off/, 'one that breaks off');
fails([ '/ok/' . ($BIG + 1) ], 400,
      qr/has ${\($BIG + 1)} bytes, more than the $BIG/, 'one that is too large');
fails([ '/long/' . ($BIG + 1) ], 400, qr/has more than $BIG bytes/,
      'and says so only when it comes');
fails([ '/close/5000000' ], 400, qr/has more than $BIG bytes/,
      'or is far too large');
fails([ 'http://127.0.0.1:1/' ], 400, qr/status 403/,
      'one that the location refuses');
fails([ '/ok/5', 'http://127.0.0.1:1/', '/ok/5' ], 400, qr/:1\/'.*status 403/,
      'also after one that it allows: its rules hold for each');
fails([ '/ok/5' ], 400, qr/has not set llm_fetch/, 'without llm_fetch',
      path => '/off/chat/completions');
fails([ map { "/ok/$BIG" } 1 .. 4 ], 400, qr/does not fit with the others/,
      'files that do not fit together');
is_empty('these');


# ---- time ----

fails([ '/slow' ], 400, qr/did not come within 300 ms/, 'a slow origin',
      path => '/hasty/chat/completions');
is_gone('/slow');
fails([ '/never' ], 400, qr/did not come within 300 ms/, 'a silent one',
      path => '/hasty/chat/completions');
is_gone('/never');
$res = fails([ '/slow/1' ], 504, qr/longer than the server allows/,
             'llm_timeout', path => '/late/chat/completions');
is($res->{json}{error}{code}, 'timeout', 'has its own error');
is_empty('what came too late');


# ---- clients that leave, workers that are killed ----

sub used { return $t->get('/figures')->{json}{media_memory}{used} }

my @open = map { $t->open('/v1/chat/completions', body("/slow/$_")) } 2 .. 4;

ok(LLM::Test::wait_for(60, sub { used() >= 3 * $BIG * 0.9 }),
   'three wait, with room for their files');
$res = fails([ "/ok/$BIG" ], 429, qr/has no room now/, 'a fourth has none');
ok($res->{headers}{'retry-after'}, 'and is told to come again');
$_->close for @open;
is_gone("/slow/$_") for 2 .. 4;
is_empty('clients that left');

@open = map { $t->open('/v1/chat/completions', body("/slow/$_")) } 5 .. 7;
ok(LLM::Test::wait_for(60, sub { used() >= 3 * $BIG * 0.9 }), 'again');

my @workers = $t->workers;

$t->kill('KILL', $_) for @workers;
ok(LLM::Test::wait_for(60, sub {
    my %now = map { $_ => 1 } $t->workers;
    2 == keys %now && !grep { $now{$_} } @workers;
}), 'all workers are killed and replaced');
is_empty('workers that were killed');
$_->close for @open;
ok($t->wait_ready, 'there is an engine again');
comes([ '/ok/1000' ], 'and files are fetched');

# a worker that shuts down ends what it has begun

my $late = $t->open('/v1/chat/completions', body('/slow/8'));

ok(LLM::Test::wait_for(60, sub { used() >= $BIG * 0.9 }), 'one waits');
$t->reload;
is_empty('after a reload the memory is another one');
$late->close;
is_gone('/slow/8');

# streams of HTTP/2

my $h2 = LLM::H2->new(port => $t->{port2});
my @ids = map { $h2->post('/v1/chat/completions', body(@$_)) }
          [ '/ok/1000', '/long/100000' ], [ '/status/404' ], [ '/slow/9' ];

ok($h2->wait_done($ids[0])->{data} =~ /no image that is known/, 'a stream of HTTP/2');
ok($h2->wait_done($ids[1])->{data} =~ /status 404/, 'beside another one');
ok(LLM::Test::wait_for(60, sub { used() >= $BIG * 0.9 }), 'and one that waits');
$h2->rst($ids[2]);
is_gone('/slow/9');
is_empty('a stream that was reset');

kill 'KILL', $origin;
$t->stop(allow => qr/signal 9/);

done_testing();
