#!/usr/bin/perl

# TLS and HTTP/2, with curl as the client.

use strict;
use warnings;

use LLM::Made qw(certificate);
use LLM::Test;
use Test::More;

plan skip_all => 'curl without HTTP/2'
    if `curl --version 2>/dev/null` !~ /HTTP2/;

my $t = LLM::Test->new(pace => 0.5,
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=2 parallel=1;',
    server => <<'END');
        listen 127.0.0.1:%%PORT2%% ssl http2;
        ssl_certificate cert.pem;
        ssl_certificate_key key.pem;
END

my $dir = $t->dir;

certificate($dir)
    or plan skip_all => 'no certificate from openssl';

$t->start;

my $url = "https://127.0.0.1:$t->{port2}";

my %ask = (prompt => 'one two', temperature => 0, max_tokens => 200,
           ignore_eos => \1);
my $want = $t->post('/v1/completions', \%ask)->{json}{choices}[0]{text};


sub curl {
    my ($body, @args) = @_;

    $t->write_file('body', LLM::JSON->new->utf8->encode($body));

    my $pid = open(my $out, '-|') // die "fork: $!";

    if ($pid == 0) {
        exec 'curl', '-sSkN', '--max-time', 60, '-H',
             'Content-Type: application/json', '--data-binary',
             "\@$dir/body", @args, "$url/v1/completions"
            or exit 127;
    }

    return ($out, $pid);
}


for my $http ('--http1.1', '--http2') {
    my ($out) = curl(\%ask, $http);
    my $json = eval { LLM::JSON->new->utf8->decode(join '', <$out>) };

    is($json->{choices}[0]{text}, $want, "$http over TLS");

    ($out) = curl({ %ask, stream => \1 }, $http);

    my $text = join '', <$out>;
    my $got = join '', map { /^data: (\{.*)/
        ? LLM::JSON->new->utf8->decode($1)->{choices}[0]{text} // '' : () }
        split /\n\n/, $text;

    is($got, $want, "$http: a stream");
    like($text, qr/data: \[DONE\]\n\n\z/, "$http: to its end");
    close $out;

    # a client that goes away (in HTTP/2 with the whole connection)

    my $pid;
    my $before = $t->figures->{generation_tokens};

    ($out, $pid) = curl({ %ask, stream => \1, max_tokens => 1900 }, $http);
    sysread $out, my $some, 100;
    kill 'KILL', $pid;
    close $out;

    is($t->post('/v1/completions', { prompt => 'b', max_tokens => 1 })
           ->{status}, 200, "$http: the next request");
    cmp_ok($t->figures->{generation_tokens} - $before, '<', 1900,
           "$http: the place of one that went away is free");
}


# many streams on one HTTP/2 connection

$t->write_file('body', LLM::JSON->new->utf8->encode({ %ask, stream => \1 }));

my @args = map { ('-o', "$dir/out$_", "$url/v1/completions") } 1 .. 10;

is(system('curl', '-sSkN', '--no-progress-meter', '--http2',
          '--parallel', '--parallel-max', 10,
          '--max-time', 60, '-H', 'Content-Type: application/json',
          '--data-binary', "\@$dir/body", @args), 0, 'ten streams at once');

for my $i (1 .. 10) {
    open my $f, '<', "$dir/out$i" or die "out$i: $!";
    local $/;
    my $text = <$f>;
    my $got = join '', map { /^data: (\{.*)/
        ? LLM::JSON->new->utf8->decode($1)->{choices}[0]{text} // '' : () }
        split /\n\n/, $text;

    is($got, $want, "stream $i of ten");
}

$t->stop;

done_testing();
