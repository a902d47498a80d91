package LLM::Cli;

# Results of objs/llm for a model, to compare a server's answers with.
#
#   my @ids = ids($file, $text, '--special');
#   my @rows = states($file, @ids);             a list of numbers for each id
#   my $out = llm($input, 'info', $file);       the output of any command

use strict;
use warnings;

use Exporter qw(import);
use File::Temp;
use LLM::Test;

our @EXPORT = qw(llm ids states unit);


sub llm {
    my ($input, @args) = @_;

    my $in = File::Temp->new;

    binmode $in, ':utf8';
    print $in $input;
    close $in or die "$in: $!";

    return scalar `$LLM::Test::OBJS/llm @args < $in`;
}


sub ids {
    my ($file, $text, @args) = @_;

    return map { $_ + 0 } split ' ', llm($text, 'tokenize', $file, @args);
}


sub states {
    my ($file, @ids) = @_;

    my @all = unpack 'f<*', llm("@ids", 'embed', $file, '--pooling none');
    my $width = @all / @ids;

    return map { [ @all[$_ * $width .. ($_ + 1) * $width - 1] ] } 0 .. $#ids;
}


# the vector scaled to length 1

sub unit {
    my (@v) = @_;

    my $norm = 0;
    $norm += $_ * $_ for @v;

    return [ map { $_ / sqrt $norm } @v ];
}

1;
