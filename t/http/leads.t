#!/usr/bin/perl

# What leads nowhere is told by nginx -t, where that is certain, and nothing is
# said where it is not: a location of one path with llm_api, and the URI of a
# llm_guard.

use strict;
use warnings;

use LLM::Test;
use Test::More;


# of: { http, server }; the warnings of ours, with the text of their line

sub warned {
    my ($of) = @_;

    my $t = LLM::Test->new(%$of);
    my ($rc, $out) = $t->check;
    my @lines = split /\n/, $t->expand($t->conf);

    is($rc, 0, 'nginx -t passes') or diag($out);

    return map {
        my ($what, $n) = /\[warn\] \S+ (.*) in \S+nginx\.conf:(\d+)$/
            or BAIL_OUT("not a line of the configuration: $_");
        "$what: " . $lines[$n - 1] =~ s/^\s+//r;
    } grep { /\[warn\].*llm_(?:api|guard)/ } split /\n/, $out;
}


# ---- locations of one path ----

sub path { 'location = ' . $_[0] }

for my $of ('/x', '/api', '/v1', '/v1/', '/v1/complete', '/v2/completions',
            '/v1/completions/', '/a/chat/completions')
{
    my $line = path($of) . ' { llm_api; }';

    is(join("\n", warned({ locations => $line })),
       '"llm_api" has no endpoint for the only path of the location '
       . "\"= $of\": $line", "warned of: $line");
}

for my $line (path('/v1/completions') . ' { llm_api; }',
              path('/completions') . ' { llm_api; }',
              path('/a/v1/chat/completions') . ' { llm_api; }',
              path('/v1/models') . ' { llm_api; }',
              path('/v1/models/demo') . ' { llm_api; }',
              path('/x') . ' { rewrite ^ /v1/completions break; llm_api; }',
              path('/x') . ' { if ($arg_a) { rewrite ^ /v1/models break; }'
                         . ' llm_api; }',
              path('/x') . ' { llm_health; }', 'location /x { llm_api; }',
              'location ~ ^/x$ { llm_api; }', 'location @x { llm_api; }')
{
    is(join("\n", warned({ locations => $line })), '', "not of: $line");
}


# ---- guards ----

my $api = "location /v1 { llm_api; }\n";

sub nowhere { "there is no location for the URI \"$_[0]\" of \"llm_guard\"" }
sub ours { "the URI \"$_[0]\" of \"llm_guard\" leads to a location that cannot"
           . ' be a guard' }

for my $case (

    # none has the path

    [ 'llm_guard /guard;', '', nowhere('/guard') ],
    [ 'llm_guard /guard?a=b;', 'location = /guard?a=b { return 204; }',
      nowhere('/guard?a=b') ],
    [ 'llm_guard /guard;', 'location = /guard/ { return 204; }',
      nowhere('/guard') ],
    [ 'llm_guard /guard;', 'location /guards { return 204; }',
      nowhere('/guard') ],
    [ 'llm_guard /guard;', 'location @guard { return 204; }',
      nowhere('/guard') ],

    # it is one of ours

    [ 'llm_guard /v1;', '', ours('/v1') ],
    [ 'llm_guard /v1/guard;', '', ours('/v1/guard') ],
    [ 'llm_guard /g;', 'location = /g { llm_health; }', ours('/g') ],
    [ 'llm_guard /g;', 'location = /g { llm_metrics; }', ours('/g') ],
    [ 'llm_guard /g/a;', 'location /g { llm_admin; }', ours('/g/a') ],
    [ 'llm_guard /a/g;', "location /a {\nlocation /a/g { llm_metrics; }\n}",
      ours('/a/g') ],

    # there is one, or there may be

    [ 'llm_guard /guard;', 'location = /guard { return 204; }' ],
    [ 'llm_guard /guard?a=b;', 'location = /guard { return 204; }' ],
    [ 'llm_guard /guard/a;', 'location /guard { return 204; }' ],
    [ 'llm_guard /v1/guard;', 'location = /v1/guard { return 204; }' ],
    [ 'llm_guard /v1/guard;', 'location ^~ /v1/guard { return 204; }' ],
    [ 'llm_guard /a/g;', "location /a {\nlocation /a/g { return 204; }\n}" ],
    [ 'llm_guard /guard;', 'location / { proxy_pass http://127.0.0.1:1; }' ],
    [ 'llm_guard /guard;', 'location ~ g { return 204; }' ],
    [ 'llm_guard /v1/guard;', 'location ~ g { return 204; }' ],
    [ 'llm_guard /guard;', 'rewrite ^/guard$ /a;' ],
    [ 'llm_guard /%67uard;', 'location = /guard { return 204; }' ],
    [ 'llm_guard //guard;', 'location = /guard { return 204; }' ],
    [ 'llm_guard /$arg_a;', '' ], [ 'llm_guard off;', '' ],
) {
    my ($line, $server, $want) = @$case;

    is(join("\n", warned({ locations => "$line\n$api$server" })),
       $want ? "$want: $line" : '', "$line with: $server");
}

# in each server that has it, and no more than once in each

is(join("\n", warned({ http => <<'END',
    llm_guard /guard;
    server { listen 127.0.0.1:%%PORT2%%;
             location /v1 { llm_api; }
             location = /guard { return 204; } }
END
    locations => "$api location /a { llm_api; }" })),
   nowhere('/guard') . ': llm_guard /guard;', 'a guard of all servers');

is(join("\n", warned({ http => 'llm_guard /guard;', locations =>
    'location = /health { llm_health; }' })), '', 'one that nobody needs');

# ---- mirror ----

sub mirrored {
    my ($rc, $out) = LLM::Test->new(@_)->check;

    is($rc, 0, 'nginx -t passes') or diag($out);

    return join ' ', $out =~ /\[warn\] .*"mirror (\S+)" leads to/g;
}

is(mirrored(locations => 'location /v1 { llm_api; }'
            . ' location /a { mirror /v1/chat/completions; mirror /copy;'
            . ' proxy_pass http://127.0.0.1:1; }'
            . ' location /copy { return 204; }'),
   '/v1/chat/completions', 'warned of: a mirror to llm_api');
is(mirrored(server => 'mirror /admin;',
            locations => 'location /v1 { llm_api; }'
            . ' location /admin { llm_admin; }'),
   '/admin', 'once, though it is inherited');
is(mirrored(locations => 'location /v1 { mirror off; llm_api; }'
            . ' location /a { mirror /h; return 204; }'
            . ' location /h { llm_health; }'),
   '', 'not of: one that is off, one to health');

done_testing();
