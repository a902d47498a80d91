#!/usr/bin/perl

# The figures of requests are the sums of an access log with the same labels:
# after a storm of requests that end in all kinds of ways, over three workers
# and a reload, each count is that of the lines.  So are tenants', but for
# those that find no room, which are one together.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::JSON;
use LLM::Metrics;
use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $CLIENTS = 6;
my $EACH = 40;

my $t = LLM::Test->new(workers => 3, model => <<'END',
    llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=4 default
              alias=mini;
    llm_model second %%ROOT%%/models/demo.gguf threads=1 parallel=2;
    llm_queue 3;
END
    http => <<'END', locations => <<'END2');
    log_format figures escape=none
        '$llm_model|$llm_endpoint|$status|$http_x_tenant|$llm_error|'
        '$llm_prompt_tokens|$llm_cached_tokens|$llm_completion_tokens|'
        '$llm_tenant';
    log_format none '';
    access_log logs/figures.log figures;
    llm_tenant $http_x_tenant;
    limit_req_zone $server_protocol zone=slow:1m rate=1r/m;
END
        location /v1 { llm_api; }
        location /short { llm_timeout 200ms; llm_api; }
        location /closed { llm_api_keys keys; llm_api; }
        location /slow { limit_req zone=slow; limit_req_status 429;
                         llm_api; }
        location /small { client_max_body_size 200; llm_api; }
        location /gone { return 410; llm_api; }
        location /page { llm_api; error_page 404 429 = @page;
                         llm_intercept_errors on; }
        location @page { return 418; }
        location /denied { deny all; error_page 403 /said; llm_api; }
        location = /said { return 403 no; }
        location = /other { return 204; }
        location = /metrics { llm_metrics tenants=3; access_log off; }
        location = /plain { llm_metrics; access_log off; }
        location = /json { llm_metrics json tenants=2; access_log off; }
        location = /health { llm_health; access_log off; }
END2

$t->write_file('keys', encode_json({ id => 'ann', sha256 => sha256_hex('s'),
                                     scopes => [ 'models' ] }) . "\n");
$t->start;

LLM::Test::wait_for(60, sub {
    $t->get('/v1/models')->{status} == 200
        && $t->post('/v1/completions', { model => 'second', prompt => 'a',
               max_tokens => 1 }, headers => { 'X-Tenant' => 'first' })
             ->{status} == 200
}) or die 'no second model';


# ---- the storm ----

my %a = (prompt => 'Once upon a time', max_tokens => 8, ignore_eos => \1);
my @tenants = ('first', "sec\xc3\xb6nd", 'th"i\rd', 'fourth', 'fifth', '');

my @kinds = (
    (sub { post(@_, '/v1/completions', \%a) }) x 4,
    (sub { post(@_, '/v1/completions', { %a, model => 'second' }) }) x 2,
    sub { post(@_, '/v1/completions', { %a, model => 'mini', n => 3 }) },
    sub { post(@_, '/v1/completions', { %a, stream => \1 }) },
    sub { post(@_, '/v1/chat/completions', { max_tokens => 5,
              messages => [ { role => 'user', content => 'hi' } ] }) },
    sub { post(@_, '/v1/messages', { max_tokens => 5,
              messages => [ { role => 'user', content => 'hi' } ] }) },
    sub { post(@_, '/v1/tokenize', { prompt => 'a b c' }) },
    sub { post(@_, '/v1/embeddings', { input => 'a' }) },
    sub { post(@_, '/v1/completions', { %a, model => 'none' }) },
    sub { post(@_, '/v1/completions', '{') },
    sub { post(@_, '/v1/completions', { %a, temperature => 'warm' }) },
    sub { post(@_, '/v1/completions', { %a, prompt => 'a b ' x 9000 }) },
    sub { post(@_, '/v1/nothing', \%a) },
    sub { post(@_, '/v1/models', \%a) },
    sub { post(@_, '/closed/completions', \%a) },
    sub { post(@_, '/slow/completions', \%a) },
    sub { post(@_, '/small/completions', { %a, prompt => 'a ' x 200 }) },
    sub { post(@_, '/gone/completions', \%a) },
    sub { post(@_, '/page/completions', { %a, model => 'none' }) },
    sub { post(@_, '/denied/completions', \%a) },
    sub { post(@_, '/short/completions', { %a, n => 8, max_tokens => 900 }) },
    sub { post(@_, '/short/completions', { %a, n => 8, max_tokens => 900,
                                           stream => \1 }) },
    sub { get(@_, '/v1/models') },
    sub { get(@_, '/v1/models/none') },
    (sub { cut(@_, 1) }) x 2,
    sub { cut(@_, 0) },
);


sub post {
    my ($tenant, $path, $body) = @_;
    $t->post($path, $body, headers => { 'X-Tenant' => $tenant });
}

sub get {
    my ($tenant, $path) = @_;
    $t->get($path, headers => { 'X-Tenant' => $tenant });
}

# a client that leaves, after so many events

sub cut {
    my ($tenant, $events) = @_;

    my $s = $t->open('/v1/completions', { %a, max_tokens => 900,
                     stream => \1 }, headers => { 'X-Tenant' => $tenant });

    $events ? $s->event : sleep 0.05;
    $s->close;
}


my @pids;

for my $client (1 .. $CLIENTS) {
    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        srand $client;

        for my $i (1 .. $EACH) {
            my $tenant = $tenants[int rand @tenants];

            # each kind at least once
            my $kind = ($client - 1) * $EACH + $i - 1;
            $kind = int rand @kinds if $kind >= @kinds;
            eval { $kinds[$kind]->($tenant) };
        }

        POSIX::_exit(0);
    }

    push @pids, $pid;
}

# in the midst of it

LLM::Test::wait_for(60, sub { lines() > $CLIENTS * $EACH / 3 });
$t->reload;
$t->wait_ready or die 'no model after the reload';

waitpid $_, 0 for @pids;

sub lines { scalar(() = $t->log('figures.log') =~ /\n/g) }

# all are logged; the figures of old workers, which may still end, included

$t->get('/other');

my ($m, $log);

LLM::Test::wait_for(3, sub {
    my $n = lines();

    $m = LLM::Metrics->scrape($t);
    $log = $t->log('figures.log');

    $m->sum('vllm:num_requests_running') == 0
        && $n == lines()
        && $n - 1 == $m->sum('llm_requests_total')
}) or diag('lines: ' . lines() . ', counted: '
           . $m->sum('llm_requests_total') . "\n" . join "\n",
           grep { /^(?:vllm:num|llm_requests_p|llm_kv_pages_u)/ }
           split /\n/, $m->{text});


# ---- the same of the log ----

my (%by, %rejected, %failed, %tokens, %seen, @lines);

for (split /\n/, $log) {
    my ($model, $endpoint, $status, $tenant, $error, $in, $cached, $out,
        $known) = map { $_ eq '-' ? '' : $_ } split /\|/, $_, -1;

    next if $status == 204;

    push @lines, { endpoint => $endpoint, status => $status,
                   tenant => $known, sent => $tenant, error => $error,
                   in => $in,
                   cached => $cached, out => $out };

    $by{"$model|$endpoint|$status"}++;
    $rejected{"$model|$error"}++ if $error ne '' && $in eq '';
    $failed{"$model|$error"}++ if $error ne '' && $in ne '';
    $tokens{prompt}{$model} += $in if $in;
    $tokens{cached}{$model} += $cached if $cached;
    $tokens{completion}{$model} += $out if $out;
    $seen{$status}++;
}

cmp_ok(scalar @lines, '>=', $CLIENTS * $EACH - 5, 'as many lines as requests');
ok($seen{$_}, "some ended with $_")
    for 200, 400, 401, 403, 404, 405, 410, 413, 418, 429;
note(join ' ', map { "$_: $seen{$_}" } sort keys %seen);

is_deeply($m->by('llm_requests_total', qw(model_name endpoint code)), \%by,
          'requests by model, endpoint and status');
is_deeply($m->by('llm_requests_rejected_total', qw(model_name reason)),
          \%rejected, 'those that were rejected, by reason');
is_deeply($m->by('llm_requests_failed_total', qw(model_name reason)),
          \%failed, 'those that failed');
is_deeply($m->by("llm_request_${_}_tokens_total", 'model_name'),
          $tokens{$_} // {}, "$_ tokens") for qw(prompt cached completion);
ok($failed{'demo|timeout'} || !grep(/timeout/, keys %failed),
   'timeouts are of their model');
is($m->sum('llm_requests_lost_total'), 0, 'none is lost');

# what is refused by us, before or after its body was read, has its tenant

is(join(' ', map { "$_->{endpoint}: $_->{error}" }
             grep { $_->{endpoint} ne '' && $_->{error} ne ''
                    && $_->{tenant} ne $_->{sent} } @lines), '',
   'tenants of refused requests');

# ---- tenants ----

my %shown = map { $_->{labels}{tenant} => 1 }
            $m->samples('llm_tenant_request_prompt_tokens_total');

is(scalar(keys %shown), 5, 'three, the rest, and nobody');
ok($shown{first} && $shown{other} && exists $shown{''},
   'the first to come is among them');

my (%t_by, %t_rejected, %t_failed, %t_tokens);

for (@lines) {
    my $who = exists $shown{$_->{tenant}} ? $_->{tenant} : 'other';

    $t_by{"$who|$_->{endpoint}|$_->{status}"}++;
    $t_rejected{"$who|$_->{error}"}++ if $_->{error} ne '' && $_->{in} eq '';
    $t_failed{"$who|$_->{error}"}++ if $_->{error} ne '' && $_->{in} ne '';
    $t_tokens{prompt}{$who} += $_->{in} if $_->{in};
    $t_tokens{cached}{$who} += $_->{cached} if $_->{cached};
    $t_tokens{completion}{$who} += $_->{out} if $_->{out};
}

is_deeply($m->by('llm_tenant_requests_total', qw(tenant endpoint code)),
          \%t_by, 'of tenants: requests by endpoint and status');
is_deeply($m->by('llm_tenant_requests_rejected_total', qw(tenant reason)),
          \%t_rejected, 'those that were rejected');
is_deeply($m->by('llm_tenant_requests_failed_total', qw(tenant reason)),
          \%t_failed, 'those that failed');
is_deeply($m->by("llm_tenant_request_${_}_tokens_total", 'tenant'),
          $t_tokens{$_} // {}, "$_ tokens") for qw(prompt cached completion);

# every token's time is the model's and a tenant's

for my $name (qw(time_to_first_token inter_token_latency)) {
    cmp_ok($m->sum("vllm:${name}_seconds_count"), '>', 0, "$name");
    is($m->sum("llm_tenant_${name}_seconds_count"),
       $m->sum("vllm:${name}_seconds_count"), 'of tenants: as many');
}

unlike($t->get('/plain')->{body}, qr/^llm_tenant/m,
       'without tenants= none is shown');

# ---- JSON ----

my $json = $t->get('/json')->{json};
my %json;

$json{"$_->{model}|$_->{endpoint}|" . sprintf('%03d', $_->{code})} = $_->{n}
    for @{ $json->{requests} };
is_deeply(\%json, \%by, 'JSON: requests');

%json = map { ("$_->{tenant}|$_->{reason}" => $_->{n}) }
        @{ $json->{tenants}{rejected} };
is_deeply({ map { utf8::encode(my $k = $_); $k => $json{$_} } keys %json },
          \%t_rejected, 'JSON: of tenants');
is_deeply({ map { $_->{model} => $_->{completion} }
            grep { $_->{completion} } @{ $json->{tokens} } },
          $tokens{completion}, 'JSON: tokens');
is(scalar @{ $json->{tenants}{times} }, 5, 'JSON: their times');

$t->stop;


# ---- labels ----

$t = LLM::Test->new(http => 'llm_tenant $http_x_tenant;',
    locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics tenants=20; }
END

my @names = ("tab\there", "b\xffad", 'q"uote', 'back\\slash', 'other',
             'l' x 128, 'm' x 129, "\xe2\x80\xae");

post($_, '/v1/completions', { prompt => 'a', max_tokens => 1 }) for @names;

$m = LLM::Metrics->scrape($t);

is_deeply($m->by('llm_tenant_requests_total', 'tenant'),
          { 'tab\\x09here' => 1, 'b\\xffad' => 1, 'q"uote' => 1,
            'back\\slash' => 1, 'l' x 128 => 1, '\\xe2\\x80\\xae' => 1,
            'other' => 2 }, 'tenants as they are shown');
utf8::decode(my $valid = $m->{text});
ok($valid, 'all is UTF-8');

$t->stop(name => 'labels');


# ---- more combinations than there is room for ----

$t = LLM::Test->new(http => 'llm_tenant $http_x_tenant;',
    locations => join '', <<'END', map { <<"END2" } 400 .. 799)->start;
        location = /said { return 404 no; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics tenants=1; }
        location = /json { llm_metrics json tenants=1; }
END
        location /$_ { llm_api; llm_intercept_errors on;
                       error_page 404 =$_ /said; }
END2

my $sent = 0;

for my $code (400 .. 799) {
    for my $tenant ('', 'a', 'b') {
        $sent += post($tenant, "/$code/none", {})->{status} == $code;
    }
}

$m = LLM::Metrics->scrape($t);

my $lost = $m->sum('llm_tenant_requests_lost_total');

cmp_ok($lost, '>', 0, 'some are not counted one by one');
is($m->sum('llm_tenant_requests_total')
   + $m->sum('llm_tenant_requests_rejected_total') + $lost, 2 * $sent,
   'the others are, and these together');
is($m->sum('llm_requests_total'), $sent, 'there is room for more of models');
is($m->sum('llm_requests_lost_total'), 0, 'so none is lost');

is($t->get('/json')->{json}{tenants}{lost}, $lost, 'JSON says so, too');

$t->stop(name => 'no room');


# ---- another number of tenants begins anew ----

$t = LLM::Test->new(http => 'llm_tenant $http_x_tenant;',
    locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics tenants=2; }
END

for my $n (2 .. 8) {
    post("t$_", '/v1/completions', { prompt => 'a', max_tokens => 1 })
        for 1 .. $n;

    LLM::Test::wait_for(20, sub {
        $m = LLM::Metrics->scrape($t);
        $m->sum('llm_tenant_requests_total') == $n;
    });

    is_deeply($m->by('llm_tenant_requests_total', 'tenant'),
              { map { ("t$_" => 1) } 1 .. $n }, "$n tenants, and no other");

    my $more = $n + 1;

    $t->write_conf($t->conf =~ s/tenants=\d+/tenants=$more/r);

    # which a worker of before does not know of

    my %old = map { $_ => 1 } $t->reload;

    LLM::Test::wait_for(20, sub { !grep { $old{$_} } $t->workers })
        or die 'the workers of before go on';
    $t->wait_ready;
}

$t->stop(name => 'another number');

done_testing();
