#!/usr/bin/perl

# llm transcribe: the transcripts of the shared fixtures, which are OpenAI's
# program's; formats, options and errors with a model that is made here.

use strict;
use warnings;

use File::Temp qw(tempdir);
use FindBin;
use LLM::JSON;
use LLM::Whisper qw(au model wav);
use Test::More;

my $root = $ENV{LLM_ROOT} || "$FindBin::Bin/../..";
my $objs = $ENV{LLM_OBJS} || "$root/objs";
my $fixtures = ($ENV{LLM_FIXTURES} || "$root/../shared/fixtures") . '/audio';
my $dir = tempdir(CLEANUP => 1);


sub put {
    my ($name, $data) = @_;

    open my $f, '>:raw', "$dir/$name" or die "$dir/$name: $!";
    print $f $data;
    close $f or die "$dir/$name: $!";

    return "$dir/$name";
}


sub get {
    my ($name) = @_;

    open my $f, '<:raw', $name or die "$name: $!";
    local $/;

    return scalar <$f>;
}


# standard output, standard error, exit status

sub transcribe {
    return llm('transcribe', @_);
}


sub llm {
    my @args = @_;
    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        open STDOUT, '>', "$dir/out" or die $!;
        open STDERR, '>', "$dir/err" or die $!;
        exec "$objs/llm", @args or exit 127;
    }

    waitpid $pid, 0;

    return (get("$dir/out"), get("$dir/err"), $?);
}


sub verbose {
    my ($out, $err, $status) = transcribe(@_, '--format', 'verbose_json');

    return $status == 0 ? decode_json($out) : { text => "failed: $err" };
}


# the times of segments that have a text, and of their words

sub moments {
    my ($of) = @_;
    my @segments = grep { length $_->{text} } @{ $of->{segments} };

    return join ' ', map {
        my $words = $_->{words} // [];

        (sprintf('%.2f-%.2f', $_->{start}, $_->{end}),
         map { sprintf '%s %.2f-%.2f', $_->{word}, $_->{start}, $_->{end} }
             @$words);
    } @segments;
}


my $model = put('model.bin', model(51865));
my $wav = put('sound.wav', wav());
my @plain = ($model, $wav, '--thresholds', 'off');

my $all = verbose(@plain, '--words');

is($all->{task}, 'transcribe', 'a transcript: its task');
like($all->{language}, qr/^[a-z ]+$/, 'the language that was found');
is($all->{duration}, 2, 'the duration');
is($all->{usage}{seconds}, 2, 'the usage');
cmp_ok(length $all->{text}, '>', 5, 'a text');
is(join('', map { $_->{text} } @{ $all->{segments} }) =~ s/^\s+|\s+$//gr,
   $all->{text}, 'which is that of its segments');
is(scalar(grep { $_->{start} > $_->{end} } @{ $all->{segments} }), 0,
   'segments end after they begin');
is(scalar(@{ $all->{words} }),
   scalar(map { @{ $_->{words} } } @{ $all->{segments} }), 'words');
is_deeply(verbose(@plain, '--words', '--threads', '1'), $all,
          'the same with one thread');

my $own = verbose(@plain);

is($own->{words}, undef, 'no words unless they are wanted');
is($own->{language}, $all->{language}, 'the same language');

my ($text) = transcribe(@plain);
my ($json) = transcribe(@plain, '--format', 'json');
my ($srt) = transcribe(@plain, '--format', 'srt');
my ($vtt) = transcribe(@plain, '--format', 'vtt');
my @told = grep { length $_->{text} } @{ $own->{segments} };

utf8::decode($text);
is($text, "$own->{text}\n", 'text');
is(decode_json($json)->{text}, $own->{text}, 'json');
is(() = $srt =~ /^\d\d:\d\d:\d\d,\d{3} --> \d\d:\d\d:\d\d,\d{3}$/mg,
   scalar @told, 'srt');
like($vtt, qr/^WEBVTT\n\n\d\d:\d\d:\d\d\.\d{3} --> /, 'vtt');

my ($bench, $err, $status) = llm('bench', $model, '--audio', $wav, '--clips', 3,
                                 '--reps', 1);
my @counts = map { (split / \| /)[3, 4] } (split /\n/, $bench)[2, 3];

is($status, 0, 'llm bench of a speech model') or diag($err);
is("@counts[0, 2]", '1 3', 'alone, and three clips at once');
is($counts[3], 3 * $counts[1], 'which are the same clips');

is(verbose(@plain, '--translate', '--language', 'de')->{task}, 'translate',
   'a translation');
is(verbose(@plain, '--language', 'German')->{language}, 'german',
   'a language by its name');
isnt(verbose(@plain, '--language', 'de')->{text},
     verbose(@plain, '--language', 'de', '--prompt', 'Word 300 and 400.')
         ->{text}, 'a prompt is seen');
is(verbose(@plain, '--temperature', '0.7')->{segments}[0]{temperature}, 0.7,
   'a temperature');
is_deeply(verbose(@plain, '--temperature', '0.7'),
          verbose(@plain, '--temperature', '0.7'), 'chance can be had again');
is(scalar(grep { $_->{seek} } @{ verbose(@plain, '--no-timestamps')
                                     ->{segments} }), 0,
   'without times there is one window');
is(verbose($model, $wav)->{duration}, 2, 'with thresholds');

SKIP: {
    skip 'libsndfile is not installed', 1
        unless `'$objs/llm-media' --formats` =~ /^AU yes/m;

    is_deeply(verbose($model, put('sound.au', au()), '--thresholds', 'off'),
              $own, 'another format has the same transcript');
}


# what is refused

my $english = put('english.bin', model(51864));

for ([ qr/usage: llm transcribe WHISPER AUDIO/, $model ],
     [ qr/takes two files, not "c" too/, $model, $wav, 'c' ],
     [ qr/no such file/i, $model, "$dir/none.wav" ],
     [ qr/no such file/i, "$dir/none.bin", $wav ],
     [ qr/sound\.cut: the WAV file is cut off/, $model,
       put('sound.cut', substr wav(), 0, 1000) ],
     [ qr/page\.html: the audio cannot be decoded: the file is no sound/, $model,
       put('page.html', '<html>') ],
     [ qr/--format: "doc" is unknown/, @plain, '--format', 'doc' ],
     [ qr/--thresholds: "0" is unknown/, $model, $wav, '--thresholds', '0' ],
     [ qr/--temperature: "2" is not/, @plain, '--temperature', '2' ],
     [ qr/the language "klingon" is not known/, @plain, '--language',
       'klingon' ],
     [ qr/English only/, $english, $wav, '--translate' ],
     [ qr/"de" \(german\), but English only/, $english, $wav, '--language', 'de' ],
     [ qr/qwen3 is no model of speech/, "$root/models/demo.gguf",
       $wav ])
{
    my ($message, @args) = @$_;
    my ($out, $err, $status) = transcribe(@args);

    ok($status >> 8 == 1 && $out eq '' && $err =~ $message,
       "refused: $message") or diag("$status: $err");
}


# OpenAI's program's transcripts; of quantised models one, by exact arithmetic,
# which takes long

SKIP: {
    skip 'there are no shared fixtures', 1 unless -e "$fixtures/speech.wav";

    for my $path (glob "$fixtures/w-*.json") {
        my ($name) = $path =~ m{([^/]+)\.json$};
        my $file = -e "$fixtures/$name.bin" ? "$fixtures/$name.bin"
                                            : "$fixtures/$name";
        my $decode = decode_json(get($path))->{decode};

        for my $case (sort keys %$decode) {
            next if $case =~ /^(?:long|zero pad|no timestamps)/
                    || $name =~ /q\d/ && $case !~ /^(?:auto|plain)$/;

            my $want = $decode->{$case};
            my $o = $want->{options};
            my @args = ($file, "$fixtures/speech.wav", '--thresholds', 'off');

            push @args, '--isa', 'reference' if $name =~ /q\d/;
            push @args, '--language', $o->{language} if $o->{language};
            push @args, '--translate' if ($o->{task} // '') eq 'translate';
            push @args, '--prompt', $o->{initial_prompt}
                if $o->{initial_prompt};
            push @args, '--words' if $want->{words};

            my $got = verbose(@args);

            is($got->{text}, $want->{text} =~ s/^\s+|\s+$//gr,
               "$name, $case: its text");
            is(moments($got), moments($want),
               "$name, $case: times of its segments and words");
        }
    }
}


done_testing();
