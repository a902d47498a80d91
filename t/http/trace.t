#!/usr/bin/perl

# W3C trace context, in and out.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new(workers => 3, locations => <<'END')->start;
        location /v1 {
            add_header traceresponse $llm_traceparent always;
            add_header x-ids $llm_trace_id:$llm_span_id:$llm_parent_id always;
            add_header x-state $llm_tracestate always;
            llm_api;
        }
        location = /health { llm_health; }
        location /on {
            proxy_set_header traceparent $llm_traceparent;
            proxy_set_header tracestate $llm_tracestate;
            proxy_pass http://127.0.0.1:%%PORT%%/echo;
            add_header x-ids $llm_trace_id:$llm_span_id:$llm_parent_id;
        }
        location /echo { return 200 "$http_traceparent $http_tracestate"; }
        location /fall {
            add_header x-ids $llm_trace_id:$llm_span_id;
            llm_api;
            llm_intercept_errors on;
            error_page 404 = @other;
        }
        location @other {
            add_header x-more $llm_trace_id:$llm_span_id;
            return 200 $llm_trace_id:$llm_span_id;
        }
END

my ($trace, $parent) = ('0af7651916cd43dd8448eb211c80319c',
                        'b7ad6b7169203331');
my $hex = qr/[0-9a-f]/;


# (trace, span, parent, flags, state) of a request with these header lines

sub ids {
    my (@lines) = @_;

    my $res = $t->request(raw => join "\r\n", 'GET /v1/models HTTP/1.1',
        'Host: a', 'Connection: close', @lines, '', '');
    my ($id, $span, $from) = split /:/, $res->{headers}{'x-ids'}, -1;
    my ($flags) = $res->{headers}{traceresponse}
                =~ /^00-\Q$id\E-\Q$span\E-(\d\d)$/;

    like("$id-$span", qr/^$hex{32}-$hex{16}$/, 'ids');

    return ($id, $span, $from, $flags, $res->{headers}{'x-state'});
}


# ---- in ----

for my $case ([ "00-$trace-$parent-01", '01' ],
              [ "00-$trace-$parent-00", '00' ],
              [ "00-$trace-$parent-ff", '03' ],
              [ "00-$trace-$parent-08", '00' ],
              [ "01-$trace-$parent-01", '01' ],
              [ "cc-$trace-$parent-01-what-will-be", '01' ])
{
    my ($header, $want) = @$case;
    my ($id, $span, $from, $flags, $state)
        = ids("Traceparent: $header", 'tracestate: a=1,b=2');

    is($id, $trace, "$header: goes on");
    is($from, $parent, 'from there');
    isnt($span, $parent, 'with a span of its own');
    is($flags, $want, 'the flags');
    is($state, 'a=1,b=2', 'tracestate');
}

for my $bad ('', '00', "00-$trace-$parent", "00-$trace-$parent-0",
             "00-$trace-$parent-01-", "00-$trace-$parent-011",
             "ff-$trace-$parent-01", "0g-$trace-$parent-01",
             "FF-$trace-$parent-01", "cc-$trace-$parent-01.what",
             '00-' . uc($trace) . "-$parent-01",
             "00-$trace-" . uc($parent) . '-01',
             "00-$trace-$parent-0X", '00-' . '0' x 32 . "-$parent-01",
             "00-$trace-" . '0' x 16 . '-01', "00_$trace-$parent-01",
             "00-$trace$parent-01--", "00-${trace}a-$parent-01",
             "00-$trace-$parent-01, 00-$trace-$parent-01",
             "00-" . substr($trace, 1) . "x-$parent-01", 'x' x 4000)
{
    my ($id, $span, $from, $flags, $state)
        = ids("traceparent: $bad", 'tracestate: a=1');

    isnt($id, $trace, 'a new trace: "' . substr($bad, 0, 70) . '"');
    is($from, '', 'from nowhere');
    is($flags, '01', 'recorded');
    is($state // '', '', 'without the other one\'s state');
}

my ($id) = ids("traceparent: 00-$trace-$parent-01",
               "traceparent: 00-$trace-$parent-01");
isnt($id, $trace, 'two of them are none');

is((ids("traceparent: 00-$trace-$parent-01", 'tracestate: a=1', 'x: y',
        'tracestate: b=2', 'tracestate:'))[4], 'a=1,b=2',
   'two lists are one');
is((ids("traceparent: 00-$trace-$parent-01"))[4] // '', '', 'no list');

my %ids = map { my ($i, $s) = ids(); ($i => 1, $s => 1) } 1 .. 50;
is(scalar keys %ids, 100, 'new ids are new in every worker');


# ---- out ----

sub on {
    my (%headers) = @_;

    my $res = $t->get('/on', headers => \%headers);
    my ($id, $span, $from) = split /:/, $res->{headers}{'x-ids'}, -1;

    like($res->{body}, qr/^00-$id-$span-0\d /, 'the next one gets our span');

    return ($res->{body}, $id, $from);
}

my ($body, $from);

($body, $id, $from) = on(Traceparent => "00-$trace-$parent-00",
                         Tracestate => 'congo=t61rcWkgMzE');
is("$id $from", "$trace $parent", 'of the same trace');
like($body, qr/-00 congo=t61rcWkgMzE$/, 'with its flags and state');

($body, $id, $from) = on(Traceparent => 'x', Tracestate => 'congo=t61rcWkgMzE');
is($from, '', 'of a new trace');
like($body, qr/-01 $/, 'recorded, without a state');

# an error, and a request that goes elsewhere

my $res = $t->post('/v1/completions', '{',
                   headers => { traceparent => "00-$trace-$parent-01" });
is($res->{status}, 400, 'an error');
like($res->{headers}{traceresponse}, qr/^00-$trace-$hex{16}-01$/,
     'says its trace');

$res = $t->post('/fall/completions', { prompt => 'a', model => 'none' });
is($res->{body}, $res->{headers}{'x-more'}, 'one request, one span');

$t->stop;
done_testing();
