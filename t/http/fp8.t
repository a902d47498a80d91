#!/usr/bin/perl

# weights=fp8 and kv=fp8 on the emulated GPU: the model still says sensible
# things, the same alone and beside others, and twice the pages fit; where
# there is no fp8 a request gets 503 with the reason.

use strict;
use warnings;

use File::Temp qw(tempdir);
use LLM::Test;
use Test::More;

my $demo = "$LLM::Test::ROOT/models/demo.gguf";
my $dir = tempdir(CLEANUP => 1);


sub half {
    my ($h) = @_;
    my ($exp, $mant) = ($h >> 10 & 31, $h & 1023);
    my $v = $exp ? (1024 + $mant) * 2 ** ($exp - 25) : $mant * 2 ** -24;

    return $h & 0x8000 ? -$v : $v;
}


# the demo model's Q8_0 as F32, exactly: a type that becomes fp8

sub widen {
    my ($from, $to) = @_;

    open(my $f, '<:raw', $from) or die "$from: $!";
    my $in = do { local $/; <$f> };
    my $at = 0;

    my $take = sub {
        my ($fmt, $size) = @_;

        $at += $size;
        return unpack($fmt, substr($in, $at - $size, $size));
    };

    my $string = sub {
        my $n = $take->('Q<', 8);

        $at += $n;
        return substr($in, $at - $n, $n);
    };

    my %size = (0 => 1, 1 => 1, 2 => 2, 3 => 2, 4 => 4, 5 => 4, 6 => 4,
                7 => 1, 10 => 8, 11 => 8, 12 => 8);
    my $value;

    $value = sub {
        my ($kind) = @_;

        return $string->() if $kind == 8;

        if ($kind == 9) {
            my ($of, $n) = $take->('L< Q<', 12);

            $value->($of) for 1 .. $n;
            return;
        }

        $at += $size{$kind} // die "a value of type $kind";
    };

    my (undef, undef, $n_tensors, $n_keys) = $take->('L< L< Q< Q<', 24);

    for (1 .. $n_keys) {
        $string->();
        $value->($take->('L<', 4));
    }

    my $head = substr($in, 0, $at);
    my (@tensors, $data);

    for (1 .. $n_tensors) {
        my %t = (name => $string->());

        $t{dims} = [ map { $take->('Q<', 8) } 1 .. $take->('L<', 4) ];
        ($t{type}, $t{offset}) = $take->('L< Q<', 12);
        push @tensors, \%t;
    }

    my $base = int(($at + 31) / 32) * 32;

    $data = '';

    for my $t (@tensors) {
        my $n = 1;

        $n *= $_ for @{ $t->{dims} };
        $t->{new} = length $data;

        if ($t->{type} == 8) {
            my $blocks = substr($in, $base + $t->{offset}, $n / 32 * 34);

            for (my $i = 0; $i < length $blocks; $i += 34) {
                my ($d, @q) = unpack('S< c32', substr($blocks, $i, 34));

                $d = half($d);
                $data .= pack('f<32', map { $_ * $d } @q);
            }

        } else {
            $data .= substr($in, $base + $t->{offset}, 4 * $n);
        }

        $data .= "\0" x (-length($data) % 32);
        $head .= pack('Q</a*', $t->{name})
                 . pack('L< Q<*', scalar @{ $t->{dims} }, @{ $t->{dims} })
                 . pack('L< Q<', 0, $t->{new});
    }

    open(my $out, '>:raw', $to) or die "$to: $!";
    print $out $head, "\0" x (-length($head) % 32), $data;
    close($out) or die "$to: $!";
}


sub served {
    my ($file, $params, %opt) = @_;

    return LLM::Test->new(model => "llm_model demo $file threads=2"
                          . " parallel=4 ctx=256 $params default;",
                          locations => <<'END', %opt);
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics json; }
END
}


sub chat {
    my ($text, %more) = @_;

    return { messages => [ { role => 'user', content => $text } ],
             max_tokens => 16, temperature => 0, %more };
}


sub refused {
    my ($name, $params, $why, %opt) = @_;
    my $t = served($demo, $params, %opt)->start(cold => 1);

    ok(LLM::Test::wait_for(20, sub { $t->get('/health')->{body} =~ $why }),
       "$name: health says why") or diag($t->log);

    my $res = $t->post('/v1/chat/completions', chat('Hello'));

    is($res->{status}, 503, "$name: 503");
    like($res->{json}{error}{message}, $why, "$name: with the reason");
    $t->stop(name => $name);
}


refused('weights on the CPU', 'device=cpu weights=fp8',
        qr/weights=fp8: the CPU has no fp8.*compute capability 8\.9/);
refused('KV on the CPU', 'device=cpu kv=fp8', qr/kv=fp8: the CPU has no fp8/);
refused('products on the CPU', 'device=cpu products=fp8',
        qr/products=fp8: the CPU has no fp8.*compute capability 8\.9/);

SKIP: {
    skip 'there is no llm_emu.so in this build', 1
        unless -e "$LLM::Test::OBJS/llm_emu.so";

    {
        local $ENV{LLM_EMU_CAPABILITY} = 80;

        refused('an older GPU', 'device=emu kv=fp8',
                qr/kv=fp8: .* has compute capability 8\.0; 8\.9/,
                main => 'env LLM_EMU_CAPABILITY;');
    }

    my %pages;

    for my $kv ('', 'kv=fp8') {
        my $t = served($demo, "device=emu weights=fp8 kv_cache=4m $kv")
            ->start;

        like($t->log('error.log'), qr/\[warn\].*weights=fp8: matrices of Q8_0/,
             'what is quantised stays, and the log says so');

        $pages{$kv} = $t->get('/metrics')->{json}{models}[0]{kv_pages};
        $t->stop(name => "kv_cache, $kv");
    }

    cmp_ok($pages{'kv=fp8'} / $pages{''}, '>', 1.9, 'twice the pages')
        or diag(explain(\%pages));
    cmp_ok($pages{'kv=fp8'} / $pages{''}, '<=', 2, 'no more than they take');

    widen($demo, "$dir/wide.gguf");

    my $t = served("$dir/wide.gguf", 'device=emu weights=fp8 kv=fp8')->start;

    like($t->get('/health')->{json}{models}[0]{device},
         qr/fp8 weights, fp8 KV/, 'health names the types');

    my %want = ('What is 2 + 2?' => qr/2 \+ 2 = 4\./,
                'What is the capital of France?' => qr/Paris/);
    my %said;

    for my $text (sort keys %want) {
        $said{$text} = $t->post('/v1/chat/completions', chat($text))
            ->{json}{choices}[0]{message}{content};
        like($said{$text}, $want{$text}, $text);
    }

    my @open = map { $t->open('/v1/chat/completions', chat($_)) }
               (sort keys %want) x 2;

    is($open[$_]->response->{json}{choices}[0]{message}{content},
       $said{(sort keys %want)[$_ % 2]}, "one of four: $_") for 0 .. 3;

    $t->stop(name => 'fp8');

    $t = served("$dir/wide.gguf", 'device=emu products=fp8')->start;

    like($t->get('/health')->{json}{models}[0]{device}, qr/fp8 products/,
         'health names the products');

    for my $text (sort keys %want) {
        my $res = $t->post('/v1/chat/completions', chat($text))->{json};

        like($res->{choices}[0]{message}{content}, $want{$text},
             "$text with products in fp8");
    }

    $t->stop(name => 'products');
}

done_testing();
