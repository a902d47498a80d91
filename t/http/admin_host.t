#!/usr/bin/perl

# llm_admin: requests without a key must be for a name of its server, which
# they may be as often as they like, in all blocks of its location.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new(
    workers => 2,
    server => 'server_name llm.example.com *.wild.example .dot.example'
            . ' www.pre.* ~^re(?<cap>\d+)\.example$;',
    locations => <<'END');
        location = /health { llm_health; }
        location /admin { llm_admin; }
        location /within { location /within/admin { llm_admin; } }
        location /if { llm_admin; if ($arg_x) { set $y 1; } }
        location /few { limit_except GET { allow 127.0.0.1; deny all; }
                        llm_admin; }
END

$t->start;

sub code {
    my ($host, $path, %opt) = @_;

    my $res = $t->request(method => 'GET', path => $path, %opt,
                          headers => { Host => $host });

    return join ' ', $res->{status}, $res->{json}{error}{code} // ();
}

my @ours = ('llm.example.com', 'LLM.example.com:1', 'a.b.wild.example',
            'dot.example', 'a.dot.example', 'www.pre.com', 're1.example');

for my $host (@ours) {
    is(code($host, '/admin/models'), 200, "for $host");
}

for my $host ('example.com', 'wild.example', 'xdot.example', 'www.pre',
              're.example', 'llm.example.com.evil')
{
    is(code($host, '/admin/models'), '403 unknown_host', "not for $host");
}

# memory of the configuration's reading is others' by now

is(join(' ', grep { $_ ne '200' } map { code($_, '/admin/models') }
                                     (@ours) x 5),
   '', 'many times');

for my $case ([ '/within/admin/models' ], [ '/if/models' ],
              [ '/if/models?x=1' ], [ '/few/models' ],
              [ '/few/models/demo/load', 'POST', 202 ])
{
    my ($path, $method, $code) = @$case;
    my @method = (method => $method // 'GET');

    is(code('llm.example.com', $path, @method), $code // 200,
       "$path for a name of the server");
}

for my $path ('/if/models?x=1', '/within/admin/models') {
    is(code('evil.example', $path), '403 unknown_host',
       "$path for another name");
}

$t->reload;
ok($t->wait_ready, 'ready again');

is(join(' ', grep { $_ ne '200' } map { code($_, '/admin/models') }
                                     (@ours) x 5),
   '', 'after a reload, too');

$t->stop;

done_testing();
