#!/usr/bin/perl

# llm_proxied_usage with servers of other APIs: an account pays what Ollama and
# llama-server's own paths say that they have used, streamed or not, in pieces
# of one byte, too; an answer that breaks off is estimated by its pieces.

use strict;
use warnings;

use IO::Socket::INET;
use LLM::JSON;
use LLM::Test;
use POSIX ();
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Test::More;

my $JSON = LLM::JSON->new->utf8->canonical;
my $true = LLM::JSON::true;
my $false = LLM::JSON::false;
my $old;


# ---- what the other server answers: path, type, texts, prompt, cached, answer;
#      "broken" has no end, so its three pieces are counted ----

my %ollama = (model => 'old', created_at => '2026-01-01T00:00:00Z');
my %end = (%ollama, done => $true, done_reason => 'stop',
           total_duration => 4883583458, prompt_eval_count => 26,
           prompt_eval_duration => 342546000, eval_count => 5);
my %native = (tokens_predicted => 4, tokens_evaluated => 30,
              timings => { cache_n => 20, prompt_n => 10, predicted_n => 4 });
my @lines = map { $JSON->encode({ %ollama, done => $false, response => $_ })
                  . "\n" } ('"eval_count": 99', "{\n", 'usage');

my %forms = (
    chat => [ '/api/chat', 'application/json',
        $JSON->encode({ %end, message => { role => 'assistant',
                                           content => 'four' } }), 26, 0, 5 ],
    'chat-stream' => [ '/api/chat', 'application/x-ndjson',
        join('', (map { $JSON->encode({ %ollama, done => $false, message =>
                            { role => 'assistant', content => $_ } }) . "\n" }
                  'fo', 'ur'),
             $JSON->encode({ %end, message => { content => '' } }) . "\n"),
        26, 0, 5 ],
    generate => [ '/api/generate', 'application/json; charset=utf-8',
        $JSON->encode({ %end, response => 'four', context => [ 1 .. 99 ] }),
        26, 0, 5 ],
    'generate-stream' => [ '/api/generate', 'application/x-ndjson',
        join('', @lines, $JSON->encode({ %end, response => '',
                                         context => [ 1 .. 99 ] }) . "\n"),
        26, 0, 5 ],
    embed => [ '/api/embed', 'application/json',
        $JSON->encode({ model => 'old', embeddings => [ [ 0.5, -1 ] ],
                        total_duration => 14143917,
                        prompt_eval_count => 8 }), 8, 0, 0 ],
    load => [ '/api/generate', 'application/json',
        $JSON->encode({ %ollama, response => '', done => $true,
                        done_reason => 'load' }), 0, 0, 0 ],
    completion => [ '/completion', 'application/json',
        $JSON->encode({ %native, index => 0, content => 'four',
                        stop => $true }), 30, 20, 4 ],
    'completion-stream' => [ '/completion', 'text/event-stream',
        join('', (map { 'data: ' . $JSON->encode({ content => $_,
                            stop => $false, tokens_predicted => 1,
                            tokens_evaluated => 30 }) . "\n\n" } 'fo', 'ur'),
             'data: ' . $JSON->encode({ %native, content => '',
                                        stop => $true }) . "\n\n"),
        30, 20, 4 ],
    broken => [ '/api/generate', 'application/x-ndjson', join('', @lines),
                undef, 0, 3 ],
);


# ---- the other server: X-Form says what it answers, X-Bytes in which pieces

sub start_old {
    my ($s) = @_;

    $old = fork // die "fork: $!";

    return if $old;

    $SIG{CHLD} = 'IGNORE';
    $SIG{TERM} = 'DEFAULT';

    while (my $c = $s->accept) {
        my $pid = fork // next;

        if ($pid == 0) {
            eval { answer($c) };
            POSIX::_exit(0);
        }

        close $c;
    }

    POSIX::_exit(0);
}

sub answer {
    my ($c) = @_;
    my ($text, $n) = ('', 1);

    while ($n && !($text =~ /^Content-Length: (\d+).*?\r\n\r\n(.*)/msi
                   && length $2 >= $1))
    {
        $n = sysread $c, $text, 65536, length $text;
    }

    my ($name) = $text =~ /^X-Form: (\S+)\r/mi or return;
    my ($bytes) = $text =~ /^X-Bytes: (\d+)/mi or return;
    my ($path, $type, $body) = @{ $forms{$name} };

    $text =~ /^POST \Q$path\E / or return;
    setsockopt $c, IPPROTO_TCP, TCP_NODELAY, 1;
    syswrite $c, "HTTP/1.1 200 OK\r\nContent-Type: $type\r\n"
                 . "Connection: close\r\n\r\n" or return;

    for my $piece (unpack "(a$bytes)*", $body) {
        syswrite $c, $piece or return;
    }
}

END { kill 'TERM', $old if $old }


# ---- nginx: models that are not here are there ----

my $s = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1')
    or die "no port: $!";
my $port = $s->sockport;
my $t = LLM::Test->new(
    model => LLM::Test::default_model(),
    http => 'llm_token_zone $http_x_tenant zone=z:1m rate=1/h;',
    server => 'llm_intercept_errors on;',
    locations => <<"END");
        llm_token_limit zone=z burst=100000;
        location / { llm_api; error_page 404 = \@old; }
        location /api { llm_api; error_page 404 = \@old; }
        location \@old {
            llm_proxied_usage on;
            proxy_buffering off;
            proxy_pass http://127.0.0.1:$port;
        }
        location /admin { llm_admin; }
        location = /health { llm_health; }
END

start_old($s);
$t->start;

sub used {
    my ($who) = @_;
    my ($account) = grep { $_->{key} eq $who }
                    map { @{ $_->{accounts} } }
                    @{ $t->get('/admin/usage?zone=z')->{json}{data} };

    return join ' ', map { $account->{$_} // 0 }
                     qw(requests prompt_tokens cached_tokens completion_tokens);
}

my $ask = $JSON->encode({ model => 'old', prompt => 'What is 2 + 2?',
                          input => 'a', messages => [ { role => 'user',
                              content => 'What is 2 + 2?' } ] });

for my $name (sort keys %forms) {
    my ($path, $type, $body, $prompt, $cached, $answer) = @{ $forms{$name} };

    $prompt //= int(length($ask) / 4);

    for my $bytes (1, 7, 1_000_000) {
        my $who = "$name-$bytes";
        my $want = "1 $prompt $cached $answer";
        my $res = $t->post($path, $ask, headers => {
            'X-Tenant' => $who, 'X-Form' => $name, 'X-Bytes' => $bytes });

        is($res->{status}, 200, "$who: answered") or diag($res->{body});
        ok($res->{body} eq $body, 'unchanged');
        LLM::Test::wait_for(20, sub { used($who) eq $want });
        is(used($who), $want, 'and paid');
    }
}

my @estimates = $t->log =~ /tokens are estimated/g;

is(scalar @estimates, 3, 'only what broke off is estimated');

$t->stop;

done_testing();
