#!/usr/bin/perl

# device=: the CUDA backend's kernels, run by the emulator, give the CPU
# backend's tokens, greedy ones and drawn ones, alone and for many streams at
# once; a GPU that is not there is a 503 with the reason, and device=auto says
# why it took the CPU.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $emu = -e "$LLM::Test::OBJS/llm_emu.so";
my $gpu = -e '/dev/nvidiactl';

# none of them has two next tokens that are about as likely: the backends
# round in different places, and the larger of two equals is anybody's

my @prompts = (
    'Once upon a time', 'The capital of France is',
    'What is 2 + 2?', 'The sky is', 'The capital of Spain is',
    'A dog and a cat', 'nginx serves', '{"name": "Ann", "age":'
);

# requests that draw; a low temperature where the CPU's text is compared, for
# logits that differ in their last bits give other tokens now and then

my %draw = (max_tokens => 6, ignore_eos => \1, return_token_ids => \1);
my @draws = (
    [ 'temperature', 1, temperature => 0.2, seed => 21 ],
    [ 'top_p', 1, temperature => 0.3, top_p => 0.9, seed => 12 ],
    [ 'top_k', 1, temperature => 0.3, top_k => 5, seed => 13 ],
    [ 'min_p', 1, temperature => 0.3, min_p => 0.1, seed => 14 ],
    [ 'penalties', 1, temperature => 0, repetition_penalty => 1.3,
      presence_penalty => 0.5, frequency_penalty => 0.5 ],
    [ 'min_tokens', 1, temperature => 0, min_tokens => 6,
      ignore_eos => \0 ],
    [ 'logprobs', 1, temperature => 0.2, seed => 25, logprobs => 5 ],
    [ 'three choices', 1, temperature => 0.3, seed => 16, n => 3 ],
    [ 'all of it, hot', 0, temperature => 1.4, seed => 17, top_p => 0.95,
      top_k => 50, min_p => 0.001, repetition_penalty => 1.1,
      presence_penalty => 0.2, logprobs => 3, n => 3 ],
    [ 'hot', 0, temperature => 2, seed => 18, logprobs => 0 ],
    [ 'typical_p, the host draws', 0, temperature => 1, seed => 19,
      typical_p => 0.9, logprobs => 2 ]
);


sub draw {
    my ($i) = @_;
    my (undef, undef, %more) = @{ $draws[$i] };

    return { prompt => $prompts[$i % @prompts], %draw, %more };
}


sub choices {
    my ($res) = @_;

    return $res->{json}{choices} // $res->{body};
}


sub all_ids {
    my ($choices) = @_;

    return ref $choices ? [ map { $_->{token_ids} } @$choices ] : $choices;
}


# the largest distance between the probabilities of two answers

sub distance {
    my ($one, $two) = @_;
    my $worst = 0;

    for my $c (0 .. $#$one) {
        my ($a, $b) = map { $_->[$c]{logprobs}{token_logprobs} } $one, $two;

        for my $i (0 .. $#$a) {
            my $d = abs($a->[$i] - $b->[$i]);
            $worst = $d if $d > $worst;
        }
    }

    return $worst;
}


sub served {
    my ($device, %opt) = @_;

    return LLM::Test->new(model => 'llm_model demo %%ROOT%%/models/demo.gguf'
        . " device=$device threads=2 parallel=8 ctx=256"
        . ($opt{more} ? " $opt{more}" : '') . ' default;', %opt);
}


sub ask {
    my ($prompt, %more) = @_;

    return { prompt => $prompt, max_tokens => 6, temperature => 0,
             ignore_eos => \1, return_token_ids => \1, %more };
}


sub ids {
    my ($res) = @_;

    return $res->{json}{choices}[0]{token_ids} // $res->{body};
}


# a model that cannot be loaded: health, requests and the log say why

sub refused {
    my ($name, $why, %opt) = @_;

    my $t = served('emu', %opt)->start(cold => 1);

    ok(LLM::Test::wait_for(20, sub { $t->get('/health')->{body} =~ $why }),
       "$name: health says it") or diag($t->log);

    my $res = $t->post('/v1/completions', ask('The sky is'));

    is($res->{status}, 503, 'a request: 503');
    like($res->{json}{error}{message}, $why, 'with the reason');
    like($t->log('error.log'), qr/\[error\].*$why/, 'the log has it');

    cmp_ok($t->figures->{out_of_memory}, '>=', 1, 'and the figures');
    $t->stop(name => $name);
}


# no GPU: the reason in the answer, in /health and in the log

SKIP: {
    skip 'there is a GPU', 1 if $gpu;

    my $t = served('cuda')->start(cold => 1);
    my $why = -e "$LLM::Test::OBJS/llm_cuda.so"
              ? qr/no NVIDIA driver|no CUDA-capable device|driver is for/
              : qr/there is no \S*llm_cuda\.so/;

    ok(LLM::Test::wait_for(20, sub { $t->get('/health')->{body} =~ $why }),
       'cuda without a GPU: health says why') or diag($t->log);
    is($t->get('/health')->{status}, 503, 'and is 503');

    my $res = $t->post('/v1/completions', ask('The sky is'));

    is($res->{status}, 503, 'a request: 503');
    like($res->{json}{error}{message}, $why, 'with the reason');
    like($t->log('error.log'), qr/\[error\].*model "demo": .*$why/,
         'the log has it');
    $t->stop(name => 'cuda');

    $why = qr/no GPU of NVIDIA is seen/;
    $t = served('auto')->start;
    like($t->log('error.log'), qr/\[notice\].*device auto: CPU: .*$why/,
         'auto: the log says why it is not the GPU');
    $t->stop(name => 'auto');
}


# what the CPU says is what the kernels of the GPU have to say

my $t = served('cpu')->start;
my @want = map { ids($t->post('/v1/completions', ask($_))) } @prompts;

is(scalar(grep { ref && @$_ == 6 } @want), 8, 'the CPU gives six tokens each')
    or diag(explain(\@want));

# a bias against what it would have said

push @draws, [ 'logit_bias', 1, temperature => 0,
               logit_bias => { $want[@draws % @prompts][0] => -100 } ];

my @drawn = map { choices($t->post('/v1/completions', draw($_))) }
            0 .. $#draws;

is(scalar(grep { !ref } @drawn), 0, 'the CPU draws')
    or diag(explain(\@drawn));
isnt($drawn[-1][0]{token_ids}[0], $want[$#draws % @prompts][0],
     'a bias: another token');
$t->stop(name => 'cpu');

SKIP: {
    skip 'there is no llm_emu.so in this build', 1 unless $emu;

    $t = served('emu')->start;

    like($t->get('/health')->{json}{models}[0]{device}, qr/emulated/,
         'health names the device');

    is_deeply(ids($t->post('/v1/completions', ask($prompts[$_]))), $want[$_],
              "emu, alone: $prompts[$_]") for 0 .. 1;

    my @streams = map { $t->open('/v1/completions',
                                 ask($_, stream => \1)) } @prompts;

    for my $i (0 .. $#streams) {
        my @ids = map { @{ $_->{json}{choices}[0]{token_ids} // [] } }
                  grep { $_->{json} } $streams[$i]->events;

        is_deeply(\@ids, $want[$i], "emu, one of eight: $prompts[$i]");
    }

    # tokens that the device draws, one request after another

    my @alone;

    for my $i (0 .. $#draws) {
        my ($name, $same) = @{ $draws[$i] };

        $alone[$i] = choices($t->post('/v1/completions', draw($i)));

        next if !$same;

        is_deeply(all_ids($alone[$i]), all_ids($drawn[$i]),
                  "emu draws the CPU's tokens: $name");

        if ($name eq 'logprobs') {
            cmp_ok(distance($alone[$i], $drawn[$i]), '<', 0.05,
                   'and gives their probabilities');
        }
    }

    # and all at once: the same, to the last digit of the probabilities

    my @at_once = map { $t->open('/v1/completions', draw($_)) } 0 .. $#draws;

    for my $i (0 .. $#draws) {
        is_deeply(choices($at_once[$i]->response), $alone[$i],
                  "emu, one of many draws: $draws[$i][0]");
    }

    # a request alone: each of its steps but the first ones

    my $had = $t->figures;
    $t->post('/v1/completions', ask($prompts[0], max_tokens => 24));
    my $has = $t->figures;

    is($has->{steps} - $had->{steps}, 24, 'a step for each token');
    cmp_ok($has->{steps_behind} - $had->{steps_behind}, '>=', 22,
           'the next step was launched while one ran');

    $t->stop(name => 'emu');


    # the layers on two devices: no difference

    $t = served('emu:0,1')->start;

    like($t->get('/health')->{json}{models}[0]{device},
         qr/emulated GPU.* \(emu:0, emu:1\)/, 'health names both devices');
    like($t->log('error.log'),
         qr/: layers 0 to \d, and the embeddings, on emu:0/,
         'the log says which layers are on the first');
    like($t->log('error.log'), qr/: layers \d to 5, and the head, on emu:1/,
         'and which on the second');

    @at_once = map { $t->open('/v1/completions', draw($_)) } 0 .. $#draws;

    for my $i (0 .. $#draws) {
        is_deeply(choices($at_once[$i]->response), $alone[$i],
                  "two devices draw the same: $draws[$i][0]");
    }

    is_deeply(ids($t->post('/v1/completions', ask($prompts[0]))), $want[0],
              'and the CPU\'s tokens');
    cmp_ok($t->figures->{steps_behind}, '>', 0,
           'steps are launched ahead there, too');

    $t->stop(name => 'two devices');


    # and two devices that share each layer: none either

    $t = served('emu:0,1', more => 'split=rows')->start;

    like($t->get('/health')->{json}{models}[0]{device},
         qr/emulated GPU.* \(emu:0, emu:1\)/, 'rows: health names both');
    like($t->log('error.log'), qr/: 2 devices share each layer/,
         'the log says that they share layers');

    @at_once = map { $t->open('/v1/completions', draw($_)) } 0 .. $#draws;

    for my $i (0 .. $#draws) {
        is_deeply(choices($at_once[$i]->response), $alone[$i],
                  "rows on two devices draw the same: $draws[$i][0]");
    }

    is_deeply(ids($t->post('/v1/completions', ask($prompts[0]))), $want[0],
              'and the CPU\'s tokens');
    cmp_ok($t->figures->{steps_behind}, '>', 0,
           'steps are launched ahead there, too');

    $t->stop(name => 'rows on two devices');


    # a load on its way: health says how far it is

    my $file = LLM::Test::random_model(24, 4096);

    $t = LLM::Test->new(pace => 5, model => "llm_model big $file device=emu"
                        . ' ctx=64 parallel=1 default;')->start(cold => 1);

    my (%seen, $health);

    ok(LLM::Test::wait_for(60, sub {
        for (1 .. 50) {
            $health = $t->get('/health');
            return 1 if $health->{status} == 200;
            $seen{$health->{json}{models}[0]{progress} // 'none'}++;
        }

        return;
    }), 'a larger model is loaded');

    my @steps = grep { /^0\.\d+$/ && $_ > 0 } keys %seen;

    cmp_ok(scalar @steps, '>', 1, 'health has shown how far the load was')
        or diag(explain(\%seen));
    ok(!defined $health->{json}{models}[0]{progress}, 'and no more after it');
    $t->stop(name => 'progress');


    # a kernel fails in mid-stream: all that runs gets an error, the engine
    # is built again, and gives the same tokens

    local $ENV{LLM_EMU_FAIL_LAUNCH} = 1500;
    $t = served('emu', main => 'env LLM_EMU_FAIL_LAUNCH;')->start;

    my $stream = $t->open('/v1/completions',
        ask($prompts[0], stream => \1, max_tokens => 200));

    $stream->event;

    my $other = $t->open('/v1/completions',
                         ask($prompts[1], max_tokens => 200));
    my @more = map { $t->open('/v1/completions',
                              ask($prompts[$_], stream => \1,
                                  max_tokens => 200)) } 2 .. 5;
    my @events = $stream->events;
    my $res = $other->response;

    ok((grep { $_->{json} && $_->{json}{choices} } @events),
       'a stream before the failure');
    like($events[-1]{json}{error}{message} // '', qr/launch failure/,
         'the stream ends with an error event');
    is(scalar(grep { $_->{json} && $_->{json}{error} } @events), 1,
       'which is said once');

    for my $s (@more) {
        my @e = $s->read_header->{status} == 200
                ? $s->events : { json => $s->response->{json} };

        is($e[-1]{json}{error}{code}, 'device_error', 'so does each other');
    }

    is($res->{status}, 500, 'the other request: 500');
    is($res->{json}{error}{code}, 'device_error', 'device_error');

    ok($t->wait_ready, 'the engine is built again');
    is_deeply(ids($t->post('/v1/completions', ask($prompts[0]))), $want[0],
              'and gives the same tokens');
    like($t->log('error.log'), qr/a step failed: CUDA: .*launch failure/,
         'the log has the failure');
    like($t->log('error.log'), qr/is loaded again: its device failed/,
         'and the load');
    is($t->figures->{device_errors}, 1, 'so have the figures');
    $t->stop(name => 'a failed kernel');


    # the same, but the error sticks: only another process has the GPU again

    local $ENV{LLM_EMU_STICKY} = 1;
    $t = served('emu',
                main => 'env LLM_EMU_FAIL_LAUNCH; env LLM_EMU_STICKY;')
         ->start;

    my $first = $t->engine_worker;

    $stream = $t->open('/v1/completions',
                       ask($prompts[0], stream => \1, max_tokens => 200));
    @events = $stream->events;
    is($events[-1]{json}{error}{code}, 'device_lost',
       'an error that sticks: the stream ends with an error event');

    ok(LLM::Test::wait_for(60, sub {
        ! grep { $_ == $first } $t->workers
    }), 'worker 0 is gone');
    ok($t->wait_ready, 'another one has the engine');
    is_deeply(ids($t->post('/v1/completions', ask($prompts[0]))), $want[0],
              'and gives the same tokens');
    like($t->log('error.log'),
         qr/\[error\] .*context is lost, this worker is started again/,
         'the log says so');
    unlike($t->log('error.log'), qr/\[alert\]|\[emerg\]/, 'in no alarm');
    is($t->figures->{device_errors}, 1, 'the figures outlive the process');
    $t->stop(name => 'an error that sticks');


    # in a load, for it is of the first kernel now: the process ends, too, but
    # not while it serves another model, and not at once each time

    {
        local $ENV{LLM_EMU_FAIL_LAUNCH} = 1;

        $t = LLM::Test->new(
            main => 'env LLM_EMU_FAIL_LAUNCH; env LLM_EMU_STICKY;',
            model => 'llm_model demo %%ROOT%%/models/demo.gguf device=cpu'
                     . ' threads=1 default;'
                     . ' llm_model gpu %%ROOT%%/models/demo.gguf device=emu'
                     . ' lazy;')->start;
    }

    $first = $t->engine_worker;
    $stream = $t->open_long;

    $res = $t->post('/v1/completions', ask($prompts[0], model => 'gpu'));
    is($res->{status}, 503, 'a load that loses the context: 503');
    like($res->{json}{error}{message}, qr/context is lost to this process/,
         'with the reason');

    $res = $stream->response;
    like($res->{body}, qr/"finish_reason":"length".*\[DONE\]/s,
         'the process stays until the other model has answered')
        or diag(substr($res->{body}, -400));

    for my $again (1 .. 2) {
        ok(LLM::Test::wait_for(60, sub {
            my $now = eval { $t->engine_worker };
            return $now && $now != $first;
        }), "and ends when that is idle: $again");
        ok($t->wait_ready, 'another process is there');
        $first = $t->engine_worker;
        is($t->post('/v1/completions', ask($prompts[0]))->{status}, 200,
           'which serves the other model');
        $t->post('/v1/completions', ask($prompts[0], model => 'gpu'));
    }

    $t->stop(name => 'a load that loses the context');
    delete local $ENV{LLM_EMU_STICKY};


    # memory that is not there: a line in the log and 503

    local $ENV{LLM_EMU_MEMORY} = 6_000_000;
    refused('out of memory', qr/CUDA: device 0: \d+ bytes .*out of memory/,
            main => 'env LLM_EMU_MEMORY;');


    # an allocation that fails in the middle of a load

    delete local $ENV{LLM_EMU_MEMORY};
    local $ENV{LLM_EMU_FAIL_ALLOC} = 60;
    refused('in mid-load',
            qr/CUDA: device 0: \d+ bytes for \S.*: out of memory/,
            main => 'env LLM_EMU_FAIL_ALLOC;');


    # a KV cache that the card cannot hold

    delete local $ENV{LLM_EMU_FAIL_ALLOC};
    local $ENV{LLM_EMU_MEMORY} = 160_000_000;
    refused('kv_cache too large', qr/kv_cache is 1024 MiB, and \d+ MiB are /,
            main => 'env LLM_EMU_MEMORY;', more => 'kv_cache=1g');
}

done_testing();
