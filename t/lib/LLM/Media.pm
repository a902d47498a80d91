package LLM::Media;

# Pictures and speech for the tests of clients: two small models, the files that
# a client sends, and what is to come back.
#
#   my $t = LLM::Test->new(model => LLM::Media::models() . ...,
#                          http => LLM::Media::http());
#   LLM::Media::files($t);
#   $t->start;
#   LLM::Media::known($t);          # $ENV{LLM_MEDIA}: a file of JSON
#   ... a client ...
#   LLM::Media::pictures_ok($t, 'the client', 3);
#
# The model "sees" is the demo model with an encoder of numbers (LLM::Tower),
# "whisper-1" a Whisper model with weights at random: they say nothing of sense.
# What is to come back is what a plain request of the same content was answered
# before any client was started.  As few pixels decide a word of that answer,
# there is a second yardstick: the prompt of each client's request must be found
# in the prefix cache, to its last page, where the plain request has left it:
# rows of a picture are found by the digest of its pixels.

use strict;
use warnings;

use LLM::JSON qw(decode_json encode_json);
use LLM::Test;
use LLM::Tower;
use LLM::Whisper ();
use Test::More;

use constant PAGE => 16;                # tokens that are cached together

my $QUESTION = 'What do you see in this picture? Say it in a few words.';
my $EDGE = 'edge-of-a-part';


sub models {
    return join "\n",
        'llm_model sees %%ROOT%%/models/demo.gguf threads=1 parallel=2'
        . ' template=%%DIR%%/images.jinja mmproj=%%DIR%%/mmproj.gguf;',
        'llm_model tiny %%DIR%%/tiny.bin threads=1 parallel=2'
        . ' alias=whisper-1;', '';
}


sub http {
    return 'log_format media "$llm_model $status $llm_prompt_tokens'
           . ' $llm_cached_tokens $uri"; access_log logs/media.log media;';
}


sub files {
    my ($t) = @_;

    LLM::Tower::make($t->dir . '/mmproj.gguf');
    $t->write_file('images.jinja', $LLM::Tower::TEMPLATE);
    $t->write_file('tiny.bin', LLM::Whisper::model(51865));
    $t->write_file('picture.png',
                   LLM::Tower::png(40, 30, sub { (200, 30, $_[0]) }));
    $t->write_file('speech.wav', LLM::Whisper::wav());
}


sub asked {
    my ($t, @content) = @_;

    my $res = $t->post('/v1/chat/completions', {
        model => 'sees', temperature => 0, max_tokens => 12,
        messages => [ { role => 'user', content => \@content } ] });

    die "no answer: $res->{body}" unless $res->{status} == 200;

    return { said => $res->{json}{choices}[0]{message}{content},
             tokens => $res->{json}{usage}{prompt_tokens} };
}


sub heard {
    my ($t, $path, $file, %fields) = @_;
    my $bytes = LLM::Test::slurp($file);
    my $form = '';

    $form .= "--$EDGE\r\nContent-Disposition: form-data; name=\"$_\"\r\n\r\n"
             . "$fields{$_}\r\n" for sort keys %fields;
    $form .= "--$EDGE\r\nContent-Disposition: form-data; name=\"file\"; "
             . "filename=\"a\"\r\n\r\n$bytes\r\n--$EDGE--\r\n";

    my $res = $t->post("/v1/audio/$path", $form, headers => {
        'Content-Type' => "multipart/form-data; boundary=$EDGE" });

    die "no transcript: $res->{body}" unless $res->{status} == 200;

    return $res->{json} // $res->{body};
}


# asks plainly for what clients will ask

sub known {
    my ($t) = @_;
    my $dir = $t->dir;
    my $image = { type => 'image_url', image_url => {
        url => LLM::Tower::url(LLM::Test::slurp("$dir/picture.png")) } };
    my $text = { type => 'text', text => $QUESTION };
    my @speech = ("$dir/speech.wav", model => 'whisper-1',
                  temperature => '0.4');
    my $words = heard($t, 'transcriptions', @speech, language => 'en',
                      response_format => 'verbose_json',
                      'timestamp_granularities[]' => 'word');
    my $webm = "$LLM::Test::ROOT/t/fuzz/corpus/recording/tone.webm";
    my $ffmpeg = `'$LLM::Test::OBJS/llm-media-ffmpeg' --formats 2>&1`;

    my %known = (
        picture => "$dir/picture.png", question => $QUESTION,
        first => asked($t, $image, $text), last => asked($t, $text, $image),
        speech => "$dir/speech.wav",
        heard => heard($t, 'transcriptions', @speech, language => 'en')->{text},
        # words decide where a window ends, and so may change the text
        worded => $words->{text}, words => $words->{words},
        srt => heard($t, 'transcriptions', @speech, language => 'en',
                     response_format => 'srt'),
        translated => heard($t, 'translations', @speech)->{text},
        $ffmpeg =~ / yes/ ? (recording => $webm, recorded =>
            heard($t, 'transcriptions', $webm, model => 'whisper-1')->{text})
                          : (),
    );

    $t->write_file('media.json', encode_json(\%known));
    $ENV{LLM_MEDIA} = "$dir/media.json";

    new_lines($t, 2);
}


# Lines of requests with a picture since the last call, when there are $n.  A
# line is written when all of its answer is sent: its client may be gone then.

my %read;

sub new_lines {
    my ($t, $n) = @_;
    my @new;

    LLM::Test::wait_for(10, sub {
        @new = grep { /^sees / && !/count_tokens$/ }
               split /\n/, substr $t->log('media.log'), $read{$t} // 0;
        return @new >= $n;
    });

    $read{$t} = length $t->log('media.log');

    return @new;
}


# the last $n requests of a client, at least: each was answered, and its prompt
# is the one of the plain request

sub pictures_ok {
    my ($t, $name, $n) = @_;
    my @new = new_lines($t, $n);
    my @bad = grep {
        my (undef, $status, $tokens, $cached) = split / /;

        $status != 200
            || ($tokens ne '-' && $cached < int(($tokens - 1) / PAGE) * PAGE);
    } @new;

    ok(@new >= $n && !@bad, "$name: its pictures are those of the plain"
                            . " request") or diag(join "\n", "$n:", @new);
}

1;
