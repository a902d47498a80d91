#!/usr/bin/perl

# Fair shares between tenants: what counts is the tokens computed for each,
# over its weight, not how many requests it has or how long they are.  While
# both of two tenants wait, their shares never differ by more than a request
# of each.  And of preparation, where CPU time counts.

use strict;
use warnings;

use LLM::Test;
use List::Util qw(max);
use Test::More;

my $t = LLM::Test->new(
    pace => 0.5,
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=1;',
    # a request is logged when it ends, not when its client closes
    http => <<'END', locations => <<'END2')->start;
    log_format cost '$http_x_round $llm_tenant $llm_prompt_tokens '
                    '$llm_cached_tokens $llm_completion_tokens';
    lingering_close off;
END
        location /v1 { llm_api; llm_tenant $http_x_tenant weight=$http_x_weight;
                       access_log logs/cost.log cost; }
        # nobody reads its answer, and it is not to be parked for that
        location /first { llm_api; llm_tenant first; access_log off;
                          llm_stream_buffer 64m; }
        location = /health { llm_health; access_log off; }
        location = /metrics { llm_metrics; access_log off; }
END2

my $serial = 0;


# what is asked: [ tenant, weight, requests, words of the prompt, tokens ];
# what comes back: [ tenant, tokens computed ], in the order of service

sub served {
    my ($round, @asked) = @_;

    # holds the place until all are there, choice after choice
    my $running = $t->open('/first/completions', { prompt => 'a', n => 20,
        max_tokens => 3900, ignore_eos => \1, stream => \1, priority => 100 },
        light => 1);

    $running->event;

    my @clients;

    for (@asked) {
        my ($tenant, $weight, $n, $words, $tokens) = @$_;

        push @clients, $t->open('/v1/completions', {
            prompt => ++$serial . ' ' . join(' ', 1 .. $words),
            max_tokens => $tokens, ignore_eos => \1, cache_prompt => \0 },
            headers => { 'X-Tenant' => "$tenant-$round", 'X-Weight' => $weight,
                         'X-Round' => $round }) for 1 .. $n;
    }

    $t->wait_queued(scalar @clients)
        or BAIL_OUT('the requests are not in the queue');

    $running->close;

    is(scalar(grep { $_->response->{status} == 200 } @clients),
       scalar @clients, "$round: all are served");

    my @lines;

    LLM::Test::wait_for(5, sub {
        @lines = grep { /^$round / } split /\n/, $t->log('cost.log');
        @lines == @clients;
    });

    return map {
        my (undef, $tenant, $prompt, $cached, $tokens) = split / /;
        [ $tenant =~ s{-.*}{}r, $prompt - $cached + $tokens ];
    } @lines;
}


sub check {
    my ($round, $weights, @order) = @_;
    my %weight = %$weights;
    my ($a, $b) = sort keys %weight;
    my (%left, %most, %got);

    for (@order) {
        my ($tenant, $tokens) = @$_;
        my $cost = $tokens / $weight{$tenant};

        $left{$tenant}++;
        $got{$tenant} = 0;
        $most{$tenant} = max($most{$tenant} // 0, $cost);
    }

    my ($worst, $n) = (0, 0);

    for (@order) {
        my ($tenant, $tokens) = @$_;

        last if --$left{$tenant} == 0;      # it no longer waits
        $got{$tenant} += $tokens / $weight{$tenant};
        $worst = max($worst, abs($got{$a} - $got{$b}));
        $n++;
    }

    my $limit = $most{$a} + $most{$b};

    cmp_ok($worst, '<=', $limit, sprintf '%s: shares of %d and %d differed by'
           . ' %.0f tokens at most', $round, $got{$a}, $got{$b}, $worst);
    cmp_ok(max(values %got), '>', 2 * $limit, "$round: over $n requests")
        or diag(explain(\@order));
}


# few and long against many and short; the long ones were there first

check('long and short', { a => 1, b => 1 },
    served('1', [ 'a', 1, 8, 150, 4 ], [ 'b', 1, 50, 8, 4 ]));

# a prompt and what is generated count alike

check('prompts and answers', { a => 1, b => 1 },
    served('2', [ 'a', 1, 10, 100, 1 ], [ 'b', 1, 16, 1, 150 ]));

# weights

check('weights of 3 and 1', { a => 3, b => 1 },
    served('3', [ 'a', 3, 24, 20, 20 ], [ 'b', 1, 24, 20, 20 ]));

check('weights of 0.5 and 2', { a => 0.5, b => 2 },
    served('4', [ 'a', 0.5, 20, 20, 20 ], [ 'b', 2, 20, 20, 20 ]));

# a weight that is none counts as 1

check('weights of "x" and 1', { a => 1, b => 1 },
    served('5', [ 'a', 'x', 16, 20, 20 ], [ 'b', 1, 16, 20, 20 ]));

ok($t->wait_log(qr/invalid weight "x" of tenant "a-5", using 1/),
   'and is logged');

# ---- preparation ----

# refused once it has taken about all that a schema may take; each is another

sub heavy {
    my $n = shift;
    my %patterns;

    for my $i (0 .. 11) {
        my $pattern = sprintf '%c.{0,%d}%c', 97 + $i, 9 + $n, 109 + $i;
        $patterns{$pattern} = { type => 'string', minLength => $i + $n };
    }

    return { type => 'object', patternProperties => \%patterns };
}


sub with_schema {
    my ($tenant, $schema) = @_;

    return $t->open('/v1/completions', { prompt => 'a', max_tokens => 1,
        response_format => { type => 'json_schema',
            json_schema => { name => 'x', schema => $schema } } },
        headers => { 'X-Tenant' => $tenant, 'X-Round' => 'p' });
}


# what others ask for is not behind all that one tenant has asked for before

my @flood = map { with_schema('flood', heavy($_)) } 1 .. 16;
my $other = with_schema('other', { type => 'object', properties =>
    { alone => { type => 'integer' } }, required => ['alone'] });

is($other->response->{status}, 200, 'a schema beside 16 that take long');

my $refused = 0;

for (@flood) {
    my $response = $_->response;
    $refused++ if $response->{status} == 400
                  && $response->{body} =~ /too large/;
}

is($refused, 16, 'which are refused in the end');

my @order;

LLM::Test::wait_for(5, sub {
    @order = $t->log('cost.log') =~ /^p (\w+)/mg;
    @order == 17;
});

my ($at) = grep { $order[$_] eq 'other' } 0 .. $#order;

cmp_ok($at, '<', 8, 'it is not behind them');

$t->stop;

done_testing();
