#!/usr/bin/perl

# llm_alias: names that follow a rule.  Who gets which model, what a name, a
# key and a level of the configuration have to do with it, what is a mistake.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::JSON;
use LLM::Test;
use Test::More;
use Time::HiRes qw(time);

my $requests = $LLM::Test::SLOW > 1 ? 2000 : 10000;

my $models = join ' ', map {
    "llm_model $_ %%ROOT%%/models/demo.gguf threads=1 parallel=4 kv_cache=64m;"
} 'one alias=gpt-4o-mini,Uno default', 'two alias=dos', 'three';

$models =~ s{(llm_model \w+) (alias\S+)( default)? (\S+)}
            {"$1 $4 $2" . ($3 // '')}ge;

sub key {
    my ($id, %of) = @_;

    return LLM::JSON->new->canonical->encode({ id => $id, %of,
        sha256 => sha256_hex("secret-of-$id") }) . "\n";
}

sub bearer { (headers => { Authorization => "Bearer secret-of-$_[0]" }) }

my $t = LLM::Test->new(
    workers => 3,
    model => $models,
    http => <<'END',
        log_format alias '[$llm_alias|$llm_model|$status]';
        split_clients $llm_tenant $canary { 5% two; * one; }
        split_clients $llm_key_tenant $half { 50% two; * one; }
        map $cookie_color $color { green two; default one; }
        map $llm_key_plan $gold { gold three; }
        llm_alias chat $color;
        llm_alias fixed dos;
END
    server => <<'END',
        access_log logs/alias.log alias;
        llm_alias Beta $http_x_model;
END
    locations => <<'END');
        location /v1 { llm_api; }
        location /canary { llm_tenant $http_x_tenant; llm_alias chat $canary;
                           llm_api; }
        location /late { llm_tenant $llm_user; llm_alias chat $canary;
                         llm_api; }
        location /keys { llm_api_keys keys; llm_alias half $half;
                         llm_alias best $gold; llm_api; }
        location /off { llm_alias CHAT ""; llm_api one two fallback=two; }
        location /small { llm_api one; }
        location /own {
            llm_alias chat three;
            if ($arg_if) { llm_api one three; }
            llm_api;
        }
        location = /health { llm_health; }
END

$t->write_file('keys', key('all') . key('half', models => [ 'half' ])
               . key('two', models => [ 'two' ])
               . key('one', models => [ 'Uno' ])
               . key('gold', plan => 'gold', models => [ 'b*' ]));
$t->start;

my %ask = (prompt => 'a', max_tokens => 1);

sub ask {
    my ($model, %opt) = @_;

    return $t->post($opt{path} // '/v1/completions',
                    { %ask, model => $model, %{ $opt{body} // {} } },
                    headers => $opt{headers});
}

sub model { my $res = ask(@_); return $res->{json}{model} // $res->{status} }
sub code { $_[0]{json}{error}{code} // '' }
sub message { $_[0]{json}{error}{message} // '' }

sub is_code {
    my ($res, $status, $code, $name) = @_;

    is("$res->{status} " . code($res), "$status $code", $name)
        or diag($res->{body});
}


# ---- who gets which ----

is(model('chat'), 'one', 'a map: by default');
is(model('chat', headers => { Cookie => 'color=green' }), 'two',
   'blue and green by a cookie');
is(model('fixed'), 'two', 'a value without variables, which is an alias=');
is(model('Beta', headers => { 'X-Model' => 'three' }), 'three', 'by a header');
is(model('Beta', headers => { 'X-Model' => 'Uno' }), 'one', 'to an alias=');
is(model('one', headers => { Cookie => 'color=green' }), 'one',
   'a model\'s own name is a pin');
is(model('gpt-4o-mini', headers => { Cookie => 'color=green' }), 'one',
   'so is its alias=');
is(model('CHAT'), 'one', 'in another case');
is(model('fix'), '404', 'not by a part');
is(model('chat', headers => { Cookie => 'color=green' },
         body => { prompt => 'a ' x 20_000 }), '400',
   'a body that a thread parses');
is(model('chat', headers => { Cookie => 'color=green' },
         body => { user => 'u' x 20_000 }), 'two', 'a long one that is good');
is($t->post('/v1/messages', { model => 'fixed', max_tokens => 1, messages => [
       { role => 'user', content => 'a' } ] })->{json}{model}, 'two',
   'messages');
is($t->post('/v1/tokenize', { model => 'fixed', prompt => 'a' })->{status},
   200, 'tokenize');
is($t->get('/v1/tokenizer_info?model=fixed')->{status}, 200,
   'without a body');

my $res = $t->get('/v1/models/chat', headers => { Cookie => 'color=green' });
is("$res->{json}{id} $res->{json}{alias_of}", 'chat two', 'GET models/chat');
is_code($t->get('/v1/models/nothing'), 404, 'model_not_found',
        'GET models/nothing');

sub listed {
    my ($path, @who) = @_;

    return join ' ', map { join '=', grep { defined } $_->{id}, $_->{alias_of} }
           @{ $t->get("$path/models", @who)->{json}{data} };
}

my $plain = 'one gpt-4o-mini=one Uno=one two dos=two';

is(listed('/v1'), "$plain three chat=one fixed=two", 'GET models');
is(listed('/v1', headers => { Cookie => 'color=green', 'X-Model' => 'three' }),
   "$plain three Beta=three chat=two fixed=two", 'as this request has them');


# ---- levels ----

is(model('chat', path => '/own/completions'), 'three',
   'a location\'s own goes before the inherited');
is(model('chat', path => '/own/completions?if=1'), 'three', 'in its if, too');
is(model('fixed', path => '/own/completions'), 'two',
   'and what has another name is inherited');
is(model('chat', path => '/off/completions'), 'two',
   'an empty value: there is no such alias, and the fallback answers');
is(listed('/off'), "$plain fixed=two", 'nor is it listed');
is(model('Beta'), '404', 'a header that was not sent');
like(message($res = ask('Beta')), qr/^The model 'Beta' does not exist/,
     'is the same');


# ---- mistakes ----

is_code($res = ask('Beta', headers => { 'X-Model' => "no\x01pe" }), 404,
        'model_not_found', 'a value that is no model');
is($res->{json}{error}{param}, 'model', 'its parameter');
is(message($res), "The alias 'Beta' leads to 'no\\x01pe', which is not a model "
   . 'here.', 'names both');
is(model('Beta', headers => { 'X-Model' => 'chat' }), '404',
   'an alias leads to no alias');
is(model('Beta', headers => { 'X-Model' => 'TWO' }), '404', 'nor nearly');
is_code($t->get('/v1/models/Beta', headers => { 'X-Model' => 'x' }), 404,
        'model_not_found', 'GET models/Beta');
is(ask('Beta', headers => { 'X-Model' => 'x' }, path => '/off/completions')
   ->{status}, 404, 'the fallback does not hide it');
is_code($res = ask('fixed', path => '/small/completions'), 404,
        'model_not_found', 'a model of another location');
is(message($res), "The alias 'fixed' leads to 'dos', which is not a model "
   . 'here.', 'says so');
is(listed('/small'), 'one gpt-4o-mini=one Uno=one chat=one',
   'and is not listed');

ask('Beta', headers => { 'X-Model' => 'x' }) for 1 .. 30;

my @said = $t->log('error.log')
           =~ /\[error\].*\ "llm_alias"\ "Beta"\ leads\ to\ "(.*)",\ which
               \ is\ no\ model\ of\ this\ location,\ in\ \S+nginx\.conf:\d+/gx;
ok(@said >= 1 && @said <= 3, 'each worker says it once') or diag("@said");
is(scalar(grep { $_ eq 'no\x01pe' } @said), 1, 'made clean');


# ---- keys ----

is(model('half', path => '/keys/completions', bearer('half'))
   =~ /^(one|two)$/ ? 1 : 0, 1, 'a key of an alias: wherever it leads');
is_code(ask('one', path => '/keys/completions', bearer('half')), 403,
        'model_not_allowed', 'but not where it leads');
is_code(ask('chat', path => '/keys/completions', bearer('half')), 403,
        'model_not_allowed', 'nor another alias');

my ($half) = listed('/keys', bearer('half')) =~ /^half=(one|two)$/;
ok($half, 'it is what is listed');

is(model('fixed', path => '/keys/completions', bearer('two')), 'two',
   'a key of a model: by an alias');
is_code(ask('chat', path => '/keys/completions', bearer('two')), 403,
        'model_not_allowed', 'that leads there');
is(model('chat', path => '/keys/completions', bearer('one')), 'one',
   'by an alias= of the model');
is(model('best', path => '/keys/completions', bearer('gold')), 'three',
   'by a member of the key');
is(model('best', path => '/keys/completions', bearer('all')), '404',
   'which others do not have');
is(listed('/keys', bearer('gold')), 'best=three', 'listed by a pattern');


# ---- $llm_alias ----

my @log = $t->log('alias.log') =~ /^\[(.*)\]$/mg;
my %log = map { $_ => 1 } @log;

ok($log{'chat|one|200'} && $log{'chat|two|200'}, 'what was asked for');
ok($log{'Beta|-|404'}, 'even if it leads nowhere');
ok($log{'half|-|403'} || $log{'chat|-|403'}, 'or nowhere for this key');
ok($log{'gpt-4o-mini|one|200'}, 'an alias= is one');
ok($log{'-|one|200'}, 'a model\'s name is none');
ok(!grep({ /^CHAT\|/ } @log), 'as it is in the configuration');


# ---- 5 % of the tenants, on all workers ----

my (%first, $socket);

for my $n (1 .. $requests) {
    $res = $t->get('/canary/models/chat', keepalive => 1,
                   $socket && $n % 97 ? (socket => $socket) : (),
                   headers => { 'X-Tenant' => "tenant-$n" });
    $socket = $res->{socket};
    $first{$n} = $res->{json}{alias_of} // $res->{status};
}

my %n;
$n{$_}++ for values %first;

is(join(' ', sort keys %n), 'one two', 'all are answered');
cmp_ok($n{two}, '>=', 0.04 * $requests, "$n{two} of $requests: 4 % at least");
cmp_ok($n{two}, '<=', 0.06 * $requests, '6 % at most');
diag("$n{two} of $requests requests at 5 %");

my @canary = grep { $first{$_} eq 'two' } sort { $a <=> $b } keys %first;
my @other = grep { $first{$_} eq 'one' } sort { $a <=> $b } keys %first;
my $moved = 0;

for my $n (@canary[0 .. 29], @other[0 .. 29]) {
    for (1 .. 3) {
        $moved++ if model('chat', path => '/canary/completions',
                          headers => { 'X-Tenant' => "tenant-$n" })
                    ne $first{$n};
    }
}

is($moved, 0, 'the same tenant has always the same model, in every worker');

my %late = map { model('chat', path => '/late/completions',
                       body => { user => "u$_" }) => 1 } 1 .. 40;
is(join(' ', keys %late), 'two',
   'a tenant that the body names is not known to a rule: none, all alike');

$t->reload;

is(model('chat', path => '/canary/completions',
         headers => { 'X-Tenant' => "tenant-$canary[0]" }), 'two',
   'nor does a reload move it');

$t->stop;


# ---- what is refused ----

my $two = "$models llm_model four %%ROOT%%/models/demo.gguf;";

for (   [ 'llm_alias;', 'invalid number of arguments' ],
        [ 'llm_alias a;', 'invalid number of arguments' ],
        [ 'llm_alias a b c;', 'invalid number of arguments' ],
        [ 'llm_alias "" one;', 'has an empty name' ],
        [ 'llm_alias a one; llm_alias a two;', 'duplicate alias "a"' ],
        [ 'llm_alias a one; llm_alias A two;', 'duplicate alias "A"' ],
        [ 'llm_alias one two;',
          '"llm_alias" "one" is a name of the "llm_model" "one"' ],
        [ 'llm_alias four $host;',
          '"llm_alias" "four" is a name of the "llm_model" "four"' ],
        [ 'llm_alias uno two;',
          '"llm_alias" "uno" is a name of the "llm_model" "one"' ],
        [ 'llm_alias DOS $host;',
          '"llm_alias" "DOS" is a name of the "llm_model" "two"' ],
        [ 'llm_alias a nothing;', '"llm_alias" "a" leads to "nothing", but '
          . 'there is no such "llm_model"' ],
        [ 'llm_alias a one; llm_alias b a;', '"llm_alias" "b" leads to "a", '
          . 'but there is no such "llm_model"' ],
        [ '} location /few { llm_api one; llm_alias a two;',
          '"llm_alias" "a" leads to "two", which is no model of the '
          . 'location' ])
{
    my ($conf, $why) = @$_;
    my $t = LLM::Test->new(model => '', location => $conf,
                           http => "llm_idempotency off;\n$two");
    my ($rc, $text) = $t->check;

    ok($rc != 0 && $text =~ /\[emerg\].*\Q$why\E.* in \S+nginx\.conf:\d+/,
       "refused: $conf") or diag($text);
}

# the line is that of the directive, and models may come behind it

my $bad = LLM::Test->new(model => '', http => "llm_alias ok \$host;\n\n"
                         . "llm_alias three one;\n$two");
my ($rc, $text) = $bad->check;
my ($said) = $text =~ /"llm_alias" "three" is .*nginx\.conf:(\d+)/;
open my $f, '<', $bad->dir . '/nginx.conf' or die $!;
my @lines = <$f>;
like($lines[($said // 1) - 1], qr/^llm_alias three/, 'the line of the mistake');

done_testing();
