#!/usr/bin/perl

# What nginx -t takes and what it refuses, for each directive and parameter of
# docs/directives.md, by the kind of its value: nothing, an empty one, a negative, an
# overflowing one, a word, one beyond the bounds that the page names, two.  What
# is refused is refused with file, line and name, and nothing crashes.

use strict;
use warnings;

use LLM::Reference;
use LLM::Test;
use POSIX qw(mkfifo);
use Test::More;

my %page = LLM::Reference::pages();
my $overflow = '99999999999999999999';


# ---- what is right and wrong of each kind of value ----

# bounds of the page: "from A to B", "at least A"

my %good = (
    N => [], SIZE => [ '1m' ], TIME => [ '30s', '365d' ],
    RATE => [ '5', '5/s', '5/m', '5/h', '5/d' ], PRICE => [ '0', '0.125', '1' ],
    WEIGHT => [ '0.5' ], DATE => [ '2099-12-31', '2099-12-31T12:00:00Z' ],
    TEXT => [ 'text' ], NAME => [ 'fine' ], 'NAME,...' => [ 'fine', 'a,b' ],
    'NAME:SIZE' => [ 'fine:1m', 'fine:32k' ], FILE => [], MODEL => [],
    PATH => [ 'models/demo.gguf' ], URI => [ '/fine', '$arg_uri' ],
    KEY => [ '$arg_key', 'all' ], VALUE => [ '$arg_value' ],
    DIR => [ 'models' ], JSON => [ q('{"seed": 7}') ],
);

my @no_number = ('', '-1', 'word', '1.5', $overflow, '0x10', '1 ');

my @no_text = ('', "a\tb", "\x7f", "\xff", "a\xc3", "\xed\xa0\x80",
               "\xf4\x90\x80\x80");

my %bad = (
    N => \@no_number,
    SIZE => [ '', '-1', 'word', '1.5m', '12q', 'm', $overflow, "${overflow}m",
              '1048577m', '0' ],
    TIME => [ '', '-1', 'word', '5x', '366d', $overflow, "${overflow}s",
              '9223372036854775807ms' ],
    RATE => [ @no_number, '5/w', '/m', '5/', '5//s', '5/ms' ],
    PRICE => [ '', '-1', 'word', '1.001', '2', '0.0001', $overflow ],
    WEIGHT => [ '', '-1', 'word', '0', '0.0001', '1000.001', $overflow ],
    DATE => [ '', '-1', 'word', '2026', '2026-02-30', '2026-13-01',
              '2026-12-31T25:00:00Z', '2026-12-31T12:00:00', $overflow ],
    TEXT => \@no_text, NAME => \@no_text,
    'NAME,...' => [ @no_text, ',', 'a,', ',a', 'a,,b' ],
    'NAME:SIZE' => [ '', 'z', ':', ':1m', 'z:', 'z:-1', 'z:word', 'z:31k',
                     'llm:1m', 'llm_engines:1m', 'llm_idempotency:1m',
                     'llm_tenants_0:1m',
                     'llm_admin:1m', 'llm_figures:1m',
                     "z:$overflow", 'z:1048576m' ],
    FILE => [ '', 'none', 'none/none', 'logs', 'pipe' ],
    MODEL => [ '', 'none' ], PATH => [ '' ], URI => [ '', 'word', '-1' ],
    KEY => [ '' ], VALUE => [],
    DIR => [ '', 'none', 'llm-keys', 'pipe' ],
    JSON => [ '', 'word', '-1', '[]', q('{"seed"}'), q('{"model": "demo"}') ],
);

# where a parameter has others than those of its kind

my %own = (
    'llm_admin state=' => { good => [ 'new.json' ],
                            bad => [ '', 'none/new.json', 'logs', 'pipe' ] },
    'llm_admin like=' => { good => [ 'demo' ] },
    'llm_alias VALUE' => { bad => [ 'none' ] },
    'llm_priority VALUE' => { good => [ '-100', '100', '0', '""' ],
                              bad => [ '101', '-101', 'word', '1.5', '-',
                                       '--1', $overflow ] },
    'llm_token_limit zone=' => { good => [ 'keys' ], bad => [ '', 'none' ] },
    'llm_token_zone state=' => { good => [ 'new.json' ],
                                 bad => [ '', 'none/new.json', 'logs',
                                          'pipe' ] },
    'llm_model kv_cache=' => { bad => [ '', '-1', '0', '63k', 'word', '1.5m',
                                        '12q', 'm', $overflow,
                                        "${overflow}m", '67108865m' ] },
    'llm_media_memory SIZE' => { bad => [ '', '-1', '0', '1023k', 'word',
                                          $overflow, '1048576m' ] },

    # a file that cannot be used makes its model unusable, no more

    'llm_model mmproj=' => { good => [ 'models/demo.gguf' ],
                             bad => [ '' ] },
    'llm_model packed=' => { words => [], good => [ 'panels', 'off' ],
                             bad => [ '', 'llm-keys', 'pipe' ] },
    'llm_model split=' => { words => [ 'layers' ], bad => [ 'rows' ] },
    'llm_model template=' => { good => [ 'chat.jinja' ] },
    'llm_model warmup=' => { good => [ 'warmup.jsonl' ],
                             bad => [ '', 'none', 'logs', 'llm-keys.bad' ] },
    'llm_model successor=' => { bad => [ @no_text, 'qwen', 'gpt-4o' ] },
    'llm_api_keys FILE' => { good => [ 'llm-keys' ],
                             bad => [ '', 'none', 'logs', 'pipe', 'empty',
                                      'llm-keys.bad' ] },
    'llm_api MODEL' => { good => [ 'small', 'large' ] },
    'llm_api fallback=' => { good => [ 'large' ] },
    'llm_health MODEL' => { good => [ 'demo' ] },
    'llm_capture SIZE' => { good => [ '1', 'off' ] },
    'llm_idempotency SIZE' => { bad => [ '', '-1', '0', '63k', 'word',
                                         $overflow, '1048576m' ] },
    'llm_route message=' => { good => [ '0', '64k' ],
                              bad => [ '', '-1', 'word', '65537',
                                       $overflow ] },
    'llm_route prompt=' => { good => [ '0', '64k' ],
                             bad => [ '', '-1', 'word', '65537',
                                      $overflow ] },
    'llm_shared_memory SIZE' => { bad => [ '', '-1', '0', '255k', 'word',
                                           $overflow, '1048576m' ] },
    'llm_idempotency valid=' => { bad => [ '', '-1', '0', '500ms', 'word',
                                           '366d', $overflow ] },
    'llm_model idle=' => { bad => [ '', '-1', '0', '500ms', 'word', '366d',
                                    $overflow ] },
    'llm_model retry=' => { good => [ '1s', '1d', 'off' ],
                            bad => [ '', '-1', '0', '500ms', 'word', 'on',
                                     '86401s', $overflow ] },
);


# good and bad values by the bounds that a page names

sub bounds {
    my ($said) = @_;
    my (@good, @bad);

    if ($said =~ /\bfrom ([\d]+) to (\d+)\b/) {
        push @good, $1, $2;
        push @bad, $2 + 1, $1 > 0 ? $1 - 1 : ();
    }

    if ($said =~ /\bat least (\d+)(ms|[skm])\b/) {
        push @good, "$1$2";
        push @bad, "0", $1 > 1 ? ($1 - 1) . $2 : ();
    }

    return (\@good, \@bad);
}


sub values_of {
    my ($name, $item) = @_;

    my ($param, $kind) = $item =~ /^(\w+=)?(.*)$/;
    my $said = $page{$name}{says}{$item} // $page{$name}{says}{''};
    my $own = $own{"$name " . ($param // $kind)} // {};
    my @words = $own->{words}
                ? @{ $own->{words} }
                : grep { /^[a-z]/ } map { s/\[:N,\.\.\.\]$//r }
                  split /\|/, $kind;

    ($kind) = grep { !/^[a-z]/ } split /\|/, $kind, -1 if $param && @words;
    $kind = '' if !defined $kind || $kind =~ /^[a-z]/;

    fail("$name: which values $item may have is not known here")
        unless $good{$kind} || $own->{good} || @words;

    my ($good, $bad) = bounds($kind =~ /^(?:N|SIZE|TIME|RATE)$/ ? $said : '');
    my @good = (@$good, @{ $own->{good} // $good{$kind} // [] }, @words);
    my @bad = @{ $own->{bad} // $bad{$kind} // [] };

    push @bad, @$bad if !$own->{bad};

    push @bad, '', 'word', map { ("${_}x", uc $_, substr $_, 0, -1) } @words
        if $param && @words;

    if ($said =~ /\bmay\s+contain\s+variables/) {
        push @good, '$arg_a', '$arg_a$arg_b';
    } elsif ($kind =~ /^(?:N|SIZE|TIME|RATE|PRICE|WEIGHT|DATE|)$/) {
        push @bad, '$arg_a';
    }

    my %is_good = map { $_ => 1 } @good;
    my %seen;

    return ([ grep { !$seen{$_}++ } @good ],
            [ grep { !$is_good{$_} && !$seen{$_}++ } @bad ]);
}


# ---- nginx -t ----

# A line of the directive where it may stand, with the rest of its example:
# status, what was said, and the number of the line.

sub try_line {
    my ($name, $line, $rest) = @_;

    my ($where) = grep { my $c = $_; grep { $_ eq $c }
                                     @{ $page{$name}{contexts} } }
                  qw(location server http upstream);
    my $conf = LLM::Reference::configuration(
        $where eq 'http' ? "$rest\n$line"
        : $where eq 'upstream'
            ? "$rest\nupstream u {\nserver 127.0.0.1:1;\n$line\n}"
        : ($rest, $where => "\n$line\n"));

    my $t = LLM::Reference::server($conf);
    my @lines = split /\n/, $conf;
    my ($number) = grep { $lines[$_ - 1] eq $line } 1 .. @lines;

    $t->write_file('empty', '');
    $t->write_file('llm-keys.bad', "{\"id\": \"a\"}\n");
    mkfifo($t->dir . '/pipe', 0600) or die "FIFO: $!";

    return ($t->check, $number);
}


sub quoted {
    my ($s) = @_;

    return $s if $s =~ /^'.*'$/;
    return $s =~ /[\s;{}"']/ || $s eq '' ? '"' . $s =~ s/"//gr . '"' : $s;
}


sub passes {
    my ($name, $line, $rest) = @_;
    my ($status, $out) = try_line($name, $line, $rest);

    is($status, 0, "passes: $line") or diag($out);
}


# of: what must be named, if not the directive, or a word of its name

sub refused {
    my ($name, $line, $rest, $of, $want) = @_;
    my ($status, $out, $number) = try_line($name, $line, $rest);
    my ($said) = $out =~ /\[emerg\] (.*)/;
    my $names = join '|', map { quotemeta } $name, $of, split /_/, $name;

    $said //= '';

    my $named = $said =~ /\b(?:$names)\b/;
    my $right = $said =~ / in \S+nginx\.conf:$number$/;

    ok($status == 1 && $named && $right && (!$want || $said =~ $want),
       "refused: $line")
        or diag("status $status, line $number, " . ($named ? '' : 'unnamed, ')
                . "said:\n$out");
}


# ---- each directive ----

for my $name (sort keys %page) {
    my ($own, $rest) = LLM::Reference::sample($name, $page{$name});
    my @line = @$own;
    my @items = @{ $page{$name}{items} };
    my %flag = map { $_ => 1 } grep { /^[a-z]\w*$/ } @items;

    # the places of what is neither a flag nor named

    my @places = grep { $line[$_] !~ /^\w+=/ && !$flag{$line[$_]} }
                 1 .. $#line;
    my $place = 0;

    passes($name, "@line;", $rest);
    refused($name, "@line; @line;", $rest, $name);
    refused($name, "@line unknown=1;", $rest, 'unknown',
            qr/"unknown=1"|invalid number of arguments|invalid value/);

    refused($name, "$name;", $rest, $name)
        unless grep { /^\Q$name\E(?: \[[^\]]*\])*;$/ } @{ $page{$name}{lines} };

    for my $item (@items) {
        my ($param) = $item =~ /^(\w+=)/;
        my ($good, $bad) = values_of($name, $item);
        my @put = @line;
        my $one = "$item";

        if ($param) {
            @put = grep { index($_, $param) != 0 } @line;

            my $put = sub { join(' ', @put, quoted("$param$_[0]")) . ';' };
            my $bare = $param =~ s/=$//r;

            passes($name, $put->($_), $rest) for @$good;
            refused($name, $put->($_), $rest, $bare) for @$bad;

            my ($any) = @$good or fail("$name: a good value of $item");

            refused($name, join(' ', @put, quoted("$param$any"),
                                quoted("$param$any")) . ';', $rest, $bare,
                    qr/duplicate|invalid number of arguments/);
            refused($name, "@put $bare;", $rest, $bare) unless $flag{$bare};
            next;
        }

        if ($flag{$item}) {
            next if $item =~ /^(?:on|off|live|ready|prometheus|json)$/;

            my @without = grep { $_ ne $item } @line;

            passes($name, "@without $item;", $rest);
            refused($name, "@without $item $item;", $rest, $item,
                    qr/duplicate|invalid number of arguments/);
            refused($name, "@without $item=1;", $rest, $item)
                unless grep { /^\Q$item\E=/ } @items;
            next;
        }

        # a value at its place, which may be behind the line's end

        my $at = $places[$place++] // scalar @line;
        my $put = sub { my @l = @line; $l[$at] = quoted($_[0]); "@l;" };

        passes($name, $put->($_), $rest) for @$good;
        refused($name, $put->($_), $rest, $name) for @$bad;
    }
}

for my $name (qw(llm_ignore_client_abort llm_intercept_errors)) {
    my (undef, $rest) = LLM::Reference::sample($name, $page{$name});

    passes($name, "$name $_;", $rest) for qw(on off);
    refused($name, "$name $_;", $rest, $name)
        for '""', qw(0 1 -1 true word $arg_a);
}

for my $case ([ llm_health => 'live', 'ready', 'ready demo' ],
              [ llm_metrics => 'prometheus', 'json' ])
{
    my ($name, @args) = @$case;

    passes($name, "$name $_;", 'llm_model demo models/demo.gguf;') for @args;
}

refused('llm_metrics', "llm_metrics $_;", 'llm_model demo models/demo.gguf;',
        'format')
    for '""', 'xml', 'JSON', '$arg_a';


# ---- what does not go together ----

my $demo = 'llm_model demo models/demo.gguf alias=mini;'
         . ' llm_model other models/demo.gguf;';
my $zone = "$demo llm_token_zone \$arg_a zone=z:1m rate=1 state=z.json;";

for my $case (
    [ llm_model => 'llm_model demo models/demo.gguf;', 'name or alias "demo"' ],
    [ llm_model => 'llm_model mini models/demo.gguf;', 'name or alias "mini"' ],
    [ llm_model => 'llm_model a models/demo.gguf alias=a;',
      'name or alias "a"' ],
    [ llm_model => 'llm_model a models/demo.gguf alias=b,b;',
      'name or alias "b"' ],
    [ llm_model => 'llm_model a models/demo.gguf successor=a;',
      '"successor=a" of model "a" is the model itself' ],
    [ llm_model => 'llm_model a models/demo.gguf deprecated=2030-01-02'
                   . ' sunset=2030-01-01;', 'before its deprecation' ],
    [ llm_model => 'llm_model a none.gguf required;', 'not usable: ' ],
    [ llm_model => 'llm_model a models required;', 'not a regular file' ],
    [ llm_model => 'llm_model a pipe required;', 'not a regular file' ],
    [ llm_model => 'llm_model a empty required;', 'not usable: ' ],
    [ llm_alias => 'llm_alias mini demo;', '"mini" is a name of' ],
    [ llm_alias => 'llm_alias MINI demo;', '"MINI" is a name of' ],
    [ llm_alias => 'llm_alias a demo; llm_alias A demo;',
      'duplicate alias "A"' ],
    [ llm_alias => 'llm_alias a b; llm_alias b demo;', '"a" leads to "b"' ],
    [ llm_alias => 'llm_alias a other; llm_api demo;',
      '"a" leads to "other", which is no model of the location' ],
    [ llm_api => 'llm_api demo demo;', 'duplicate parameter "demo"' ],
    [ llm_api => 'llm_api; llm_health;', '"llm_health" directive conflicts' ],
    [ llm_api => 'llm_api; llm_metrics;', '"llm_metrics" directive conflicts' ],
    [ llm_api => 'llm_api; proxy_pass http://127.0.0.1:1;',
      '"llm_api" conflicts with another content handler' ],
    [ llm_api => 'proxy_pass http://127.0.0.1:1; llm_api;',
      '"llm_api" directive conflicts' ],
    [ llm_health => 'llm_health live ready;', 'has no other' ],
    [ llm_health => 'llm_health live probe=1s;', 'has no other' ],
    [ llm_health => 'llm_health demo demo;', 'duplicate parameter "demo"' ],
    [ llm_health => 'llm_health ready ready;', 'duplicate parameter "ready"' ],
    [ llm_health => 'llm_health; stub_status;', '"llm_health" conflicts' ],
    [ llm_api_keys => 'llm_api_keys off check=1s;', 'besides "off"' ],
    [ llm_guard => 'llm_guard off open;', 'besides "off"' ],
    [ llm_idempotency => 'llm_idempotency off valid=1m;', 'besides "off"' ],
    [ llm_max_tokens => 'llm_max_tokens prompt=1 2;', 'unknown parameter "2"' ],
    [ llm_token_zone => 'llm_token_zone $arg_a zone=z:1m rate=1;',
      'already a zone "z"' ],
    [ llm_token_zone => 'llm_token_zone $arg_a zone=y:1m rate=1 state=z.json;',
      'another zone has the same file: "state=z.json"' ],
    [ llm_token_zone => 'llm_token_zone $arg_a zone=y:1m;', 'no rate=' ],
    [ llm_token_zone => 'llm_token_zone $arg_a rate=1;', 'no zone=' ],
    [ llm_token_zone => 'limit_req_zone $arg_a zone=y:1m rate=1r/s;'
                        . ' llm_token_zone $arg_a zone=y:1m rate=1;',
      'zone "y" is already' ],
    [ llm_token_limit => 'llm_token_limit zone=z; llm_token_limit zone=z;',
      'is duplicate' ],
    [ llm_token_limit => 'llm_token_limit burst=1;', 'no zone=' ],
) {
    my ($name, $line, $why) = @$case;

    refused($name, $line, $zone, $line =~ /(model|zone|alias)/ ? $1 : $name,
            qr/\Q$why\E/);
}

refused('llm_token_limit', 'llm_token_limit zone=y burst=5;',
        "$demo llm_token_zone \$arg_a zone=y:1m requests=1;", 'burst',
        qr/zone "y", whose "llm_token_zone" has no "rate="/);
refused($_, "$_;", '', $_, qr/"$_" without any "llm_model"/)
    for qw(llm_api llm_health llm_metrics);
refused('llm_model', 'llm_model last models/demo.gguf;',
        join("\n", map { "llm_model m$_ models/demo.gguf;" } 1 .. 32), 'models',
        qr/more than 32 models/);

done_testing();
