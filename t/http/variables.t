#!/usr/bin/perl

# The variables $llm_... in the access log, in headers, after errors and
# after an error_page redirect.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new(pace => 0.5, main => 'worker_shutdown_timeout 1s;',
    http => <<'END', locations => <<'END2')->start;
    log_format llm '$uri|$status|$llm_model|$llm_request_id|$llm_tenant|'
                   '$llm_prompt_tokens|$llm_cached_tokens|'
                   '$llm_completion_tokens|$llm_finish_reason|'
                   '$llm_queue_time|$llm_ttft|$llm_tpot|'
                   '$llm_max_tokens|$llm_prefill_rate|$llm_decode_rate';
    access_log logs/llm.log llm;
    llm_tenant $http_x_user weight=$http_x_weight;
END
        location /v1 { llm_api; }
        location = /health { llm_health; access_log off; }
        location /short { llm_timeout 700ms; llm_api; }
        location = /figures { llm_metrics json; access_log off; }
        location /fall { llm_api; llm_intercept_errors on;
                         error_page 404 = @other; }
        location @other { return 200 "other"; }
        location /none { return 204; }
END2

my @names = qw(uri status model id tenant prompt cached completion finish
               queue ttft tpot max prefill decode);
my $seen = 0;

# the log line of the request made last

sub logged {
    my @lines;

    LLM::Test::wait_for(5, sub {
        @lines = split /\n/, $t->log('llm.log');
        @lines > $seen;
    }) or die 'no line in the access log';

    is(scalar @lines, ++$seen, 'one line');

    my %v;
    @v{@names} = split /\|/, $lines[-1];

    return \%v;
}

my $res = $t->post('/v1/completions', { prompt => 'one two', max_tokens => 5,
    ignore_eos => \1 }, headers => { 'X-User' => 'ann', 'X-Weight' => '2.5' });
my $v = logged();
my $usage = $res->{json}{usage};

is($v->{model}, 'demo', 'model');
is($v->{id}, $res->{headers}{'x-request-id'}, 'request_id');
is($v->{tenant}, 'ann', 'tenant');
is($v->{prompt}, $usage->{prompt_tokens}, 'prompt_tokens');
is($v->{cached}, $usage->{prompt_tokens_details}{cached_tokens},
   'cached_tokens');
is($v->{completion}, 5, 'completion_tokens');
is($v->{finish}, 'length', 'finish_reason');
like($v->{queue}, qr/^\d+\.\d{6}$/, 'queue_time');
like($v->{ttft}, qr/^\d+\.\d{6}$/, 'ttft');
like($v->{tpot}, qr/^\d+\.\d{6}$/, 'tpot');
is($v->{max}, 5, 'max_tokens');
cmp_ok(abs($v->{decode} * $v->{tpot} - 1), '<', 0.01, 'decode_rate');
cmp_ok(abs($v->{prefill} * ($v->{ttft} - $v->{queue})
           - $v->{prompt} + $v->{cached}), '<=', 0.1, 'prefill_rate');
cmp_ok($v->{queue}, '<=', $v->{ttft}, 'queue_time is part of ttft');

$t->open_long(max_tokens => 30)->events;
$v = logged();
is($v->{completion}, 30, 'a stream');
is($v->{tenant}, '-', 'no tenant');

my $s = $t->open_long(max_tokens => 1500);
$s->event for 1 .. 5;
$s->close;
$v = logged();
is($v->{model}, 'demo', 'a client that went away: model');
like($v->{prompt}, qr/^\d+$/, 'a client that went away: prompt_tokens');
is($v->{finish}, 'abort', 'a client that went away: finish_reason');
cmp_ok($v->{completion}, '>=', 5, 'a client that went away: tokens');
like($v->{ttft}, qr/^\d+\.\d{6}$/, 'a client that went away: ttft');
like($v->{tpot}, qr/^\d+\.\d{6}$/, 'a client that went away: tpot');

# what was cut is accounted for: not streamed, out of time, at a shutdown

$s = $t->open('/v1/completions', { prompt => 'a', ignore_eos => \1,
                                   max_tokens => 1500 });
LLM::Test::wait_for(30, sub {
    $t->figures->{generation_tokens} > 5 + 30 + 5 + 200;
});
$s->close;
$v = logged();
is($v->{finish}, 'abort', 'a body that nobody waited for: finish_reason');
cmp_ok($v->{completion}, '>=', 100, 'a body that nobody waited for: tokens');
like($v->{ttft}, qr/^\d+\.\d{6}$/, 'a body that nobody waited for: ttft');

for my $stream (\0, \1) {
    my $name = 'out of time, ' . ($$stream ? 'streamed' : 'whole');

    $res = $t->post('/short/completions', { prompt => 'a', n => 8,
        ignore_eos => \1, max_tokens => 1900, stream => $stream });
    $v = logged();

    SKIP: {
        skip 'this machine is too fast', 3 if $v->{finish} eq 'length';

        is($v->{finish}, 'abort', "$name: finish_reason");
        cmp_ok($v->{completion}, '>', 0, "$name: tokens");
        like($v->{ttft}, qr/^\d+\.\d{6}$/, "$name: ttft");
    }
}

$t->post('/v1/completions', { prompt => 'a', model => 'none' });
$v = logged();
is($v->{status}, 404, 'an error');
is($v->{model}, '-', 'no model');
is($v->{completion}, '-', 'no tokens');
like($v->{id}, qr/^\w{32}$/, 'but a request_id');

$t->post('/fall/completions', { prompt => 'a', model => 'none' });
$v = logged();
is($v->{status}, 200, 'another location answers');
like($v->{id}, qr/^\w{32}$/, 'the request_id is kept');

$t->get('/none');
$v = logged();
is($v->{id}, '-', 'elsewhere there are none');

$t->post('/v1/completions', { prompt => 'a', max_tokens => 1 },
         headers => { 'X-User' => 'bob', 'X-Weight' => 'heavy' });
ok($t->wait_log(qr/invalid weight "heavy" of tenant "bob"/),
   'a wrong weight is logged');
logged();

# at a shutdown

$s = $t->open_long(max_tokens => 1900, n => 16);
$s->event for 1 .. 5;
$t->stop(signal => 'QUIT');

$v = logged();
is($v->{finish}, 'abort', 'a stream that a shutdown cut: finish_reason');
cmp_ok($v->{completion}, '>=', 5, 'a stream that a shutdown cut: tokens');
like($v->{ttft}, qr/^\d+\.\d{6}$/, 'a stream that a shutdown cut: ttft');
like($v->{tpot}, qr/^\d+\.\d{6}$/, 'a stream that a shutdown cut: tpot');


# a body that was parsed in a thread is still there for nginx's own variable

$t = LLM::Test->new(http => <<'END')->start;
    client_body_buffer_size 1m;
    log_format body '$request_body';
    access_log logs/body.log body;
END

$res = $t->post('/v1/completions', { prompt => 'a', max_tokens => 1,
                                     metadata => { x => 'y' x 100_000 } });
is($res->{status}, 200, 'a large body');
ok(LLM::Test::wait_for(5, sub { $t->log('body.log') =~ /(?:y{1000}){100}/ }),
   'is in a log that has $request_body');
$t->stop(name => 'a log of bodies');

done_testing();
