#!/usr/bin/perl

# What other clients wait while one client's requests take long to prepare:
#
#   ./build.sh bench beside
#
#   LLM_BENCH_REPS  rounds (3)
#
# The long ones: four chats, each with ten images of 8192 x 8192 pixels; a rerank
# of 2048 texts with a query of 100,000 words, cut.  Prints the seconds of others,
# medians: alone, and beside each.

use strict;
use warnings;

use Compress::Zlib qw(deflateInit Z_OK);
use IO::Select;
use LLM::GGUF;
use LLM::Test;
use LLM::Tower;
use Time::HiRes qw(time);

my $reps = $ENV{LLM_BENCH_REPS} || 3;
my $runs = 0;

my $t = LLM::Test->new(
    http => 'client_max_body_size 8m;',
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 default;'
           . 'llm_model sees %%ROOT%%/models/demo.gguf threads=1'
           . ' template=%%DIR%%/images.jinja mmproj=%%DIR%%/mmproj.gguf;'
           . 'llm_model ranks %%DIR%%/ranks.gguf threads=1 ctx=512;',
    locations => 'location / { llm_api; } location = /health { llm_health; }');

LLM::Tower::make($t->dir . '/mmproj.gguf');
my $demo = "$LLM::Test::ROOT/models/demo.gguf";
my ($width) = `$LLM::Test::OBJS/llm info $demo`
              =~ /^qwen3\.embedding_length = (\d+)/m or die;

LLM::GGUF::make($demo, $t->dir . '/ranks.gguf',
    kv => { 'qwen3.pooling_type' => [ u32 => 4 ],
            'qwen3.classifier.output_labels' => [ strs => 'yes', 'no' ],
            'tokenizer.chat_template.rerank' =>
                [ str => "{query}\n{document}\nyes" ] },
    tensors => { 'cls.output.weight' =>
        [ [ $width, 2 ], map { sin($_) } 1 .. 2 * $width ] });
$t->write_file('images.jinja', $LLM::Tower::TEMPLATE);


# an image of one colour, a row at a time

sub image {
    my ($width, $height) = @_;
    my $row = "\0" . "\x80" x (3 * $width);
    my ($z) = deflateInit();
    my $data = '';

    $data .= ($z->deflate($row))[0] for 1 .. $height;
    $data .= ($z->flush)[0];

    return { type => 'image_url', image_url => { url => LLM::Tower::url(
        "\x89PNG\r\n\x1a\n"
        . LLM::Tower::chunk('IHDR', pack 'NNCCCCC', $width, $height, 8, 2, 0, 0,
                                         0)
        . LLM::Tower::chunk('IDAT', $data)
        . LLM::Tower::chunk('IEND', '')) } };
}

sub chat {
    my ($model, $text, @images) = @_;

    return ('/v1/chat/completions', { model => $model, max_tokens => 1,
        messages => [ { role => 'user', content => @images
            ? [ @images, { type => 'text', text => $text } ] : $text } ] });
}

my $small = image(40, 30);
my $large = image(8192, 8192);

my %others = (
    'a small image' => sub { chat('sees', 'small ' . $runs++, $small) },
    'a new schema' => sub {
        my ($path, $body) = chat('demo', 'a');

        return ($path, { %$body, response_format => { type => 'json_schema',
            json_schema => { name => 'a', schema => { type => 'object',
                properties => { 'a' . $runs++ => { type => 'string' } } } } } });
    },
    'tokens of 100 KB' => sub {
        ('/tokenize', { model => 'demo', content => 'hello ' x 17_000 })
    });

my %long = (
    '1 alone' => sub { () },
    '2 large images' => sub {
        map { [ $t->open(chat('sees', "large $_", ($large) x 10)) ] } 1 .. 4
    },
    '3 a long rerank' => sub {
        [ $t->open('/rerank', { model => 'ranks', query => ' word' x 100_000,
                                texts => [ ('word ' x 100) x 2048 ],
                                truncate => \1 }) ]
    });

$t->start;
$t->wait_ready or die $t->log;

my %took;

for (1 .. $reps) {
    for my $long (sort keys %long) {
        my @clients = map { $_->[0] } $long{$long}->();

        sleep 1 if @clients;

        for my $other (sort keys %others) {
            my $begin = time;
            my $res = $t->post($others{$other}->());

            die "$other: $res->{body}" if $res->{status} != 200;
            push @{ $took{$long}{$other} }, time - $begin;
        }

        for (grep { IO::Select->new($_->{socket})->can_read(0) } @clients) {
            my $res = $_->response;

            die "$long: $res->{body}" if $res->{status} != 200;
        }

        printf "# %s: %d of %d still run\n", $long, scalar(grep {
            !IO::Select->new($_->{socket})->can_read(0) } @clients),
            scalar @clients if @clients;

        close $_->{socket} for @clients;
        LLM::Test::wait_for(120, sub {
            $t->get('/load')->{body} =~ /:0\}/ });
    }
}

print "| | ", join(' | ', sort keys %others), " |\n|---|", '---:|' x keys %others,
      "\n";

for my $long (sort keys %took) {
    print "| $long | ", join(' | ', map {
        my @all = sort { $a <=> $b } @{ $took{$long}{$_} };

        sprintf '%.2f', $all[@all / 2];
    } sort keys %others), " |\n";
}
