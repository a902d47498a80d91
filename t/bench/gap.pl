#!/usr/bin/perl

# The longest gap between two tokens of a stream while another client's image is
# encoded:
#
#   ./build.sh bench gap [SIDE ...]
#
#   LLM_BENCH_TYPE  of the weights of both files (q8_0; or f16)
#
# The model and its encoder are random weights in Qwen3-VL-2B's shape; an image
# has SIDE x SIDE pixels (512, 1024, 2048).  The stream takes part in each step,
# so a gap is a step and what the encoder does before it.  Prints milliseconds:
# the median and the longest of the gaps alone, as many as then come beside the
# image, and of those.

use strict;
use warnings;

use LLM::Test;
use LLM::Tower;
use Time::HiRes qw(time);

use constant ALONE => 100;              # gaps

my @sides = @ARGV ? @ARGV : (512, 1024, 2048);
my $type = $ENV{LLM_BENCH_TYPE} || 'q8_0';
my $bench = "$LLM::Test::OBJS/bench";
my $root = $LLM::Test::ROOT;

/^[1-9]\d*\z/ or die "not a SIDE: $_\n" for @sides;
mkdir $bench;

my $model = "$bench/qwen3-vl-2b-$type.gguf";

if (!-e $model) {
    system('python3', "$root/t/bench/mkmodel.py", 'qwen3-vl-2b', $type,
           "$model.part", '--vocab', "$root/models/demo.gguf") == 0
        or die "mkmodel.py failed\n";
    rename "$model.part", $model or die "$model: $!\n";
}

chomp(my $tower = `python3 $root/t/bench/media.py --make qwen3-vl-2b-$type`);
die "media.py failed\n" if $?;

my $t = LLM::Test->new(
    http => 'client_max_body_size 20m;',
    model => "llm_model sees $model ctx=16384 parallel=2 kv_cache=2g"
           . " template=%%DIR%%/images.jinja mmproj=$tower;",
    locations => 'location / { llm_api; } location = /health { llm_health; }');

(my $template = $LLM::Tower::TEMPLATE) =~
    s/<start_of_image>/<|vision_start|><|image_pad|><|vision_end|>/;
$t->write_file('images.jinja', $template);
$t->start;
$t->wait_ready(600) or die $t->log;


# an image of noise, and a question about it

sub question {
    my ($side) = @_;
    my $png = LLM::Tower::png($side, $side, sub { map { int rand 256 } 1 .. 3 });

    return $t->open('/v1/chat/completions', { max_tokens => 1, messages => [
        { role => 'user', content => [
            { type => 'image_url',
              image_url => { url => LLM::Tower::url($png) } },
            { type => 'text', text => 'What is it?' } ] } ] }, timeout => 3600);
}


# reads events until $enough->() is true, and gives the milliseconds between them

sub gaps {
    my ($stream, $enough) = @_;
    my ($last, @gaps);

    while (!$enough->(scalar @gaps)) {
        my $event = $stream->event or die "the stream has ended\n";

        push @gaps, 1000 * ($event->{time} - $last) if defined $last;
        $last = $event->{time};
    }

    return sort { $a <=> $b } @gaps;
}

print "| pixels | gaps | median | longest | beside: gaps | median | longest |\n",
      "|---:|---:|---:|---:|---:|---:|---:|\n";

for my $side (@sides) {
    my $stream = $t->open('/v1/completions', { prompt => 'a', stream => \1,
        ignore_eos => \1, max_tokens => 12000 }, light => 1, timeout => 3600);
    my @alone = gaps($stream, sub { $_[0] == ALONE });
    my $asked = question($side);
    my @beside = gaps($stream, sub {
        IO::Select->new($asked->{socket})->can_read(0) });
    my $res = $asked->response;

    die "the image: $res->{body}\n" if $res->{status} != 200;

    close $stream->{socket};
    printf "| %d x %d | %d | %.0f | %.0f | %d | %.0f | %.0f |\n", $side, $side,
           map { (scalar @$_, $$_[@$_ / 2], $$_[-1]) } \@alone, \@beside;
}
