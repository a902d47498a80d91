package LLM::Made;

# Files that tests make in a server's folder: a certificate, a model that
# answers by a script, a model with other weights; see LLM::Test.

use strict;
use warnings;

use Exporter qw(import);

use LLM::Test;

our @EXPORT_OK = qw(certificate other_weights script);


# makes cert.pem and key.pem for localhost; false: no openssl

sub certificate {
    my ($dir) = @_;

    return system("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -batch"
                  . " -subj /CN=localhost -keyout $dir/key.pem"
                  . " -out $dir/cert.pem 2>/dev/null") == 0;
}


# makes DIR/script.gguf from DIR/script.json or another script

sub script {
    my ($dir, $json) = @_;

    system('python3', "$LLM::Test::ROOT/t/agents/mkscript.py",
           $json // "$dir/script.json", "$dir/script.gguf") == 0
        or die 'no script.gguf';
}


# the bytes of a model with the second half set to zero: all weights except the
# embedding and a layer or two, so that it gives other answers

sub other_weights {
    my ($model) = @_;
    my $half = int(length($model) / 2);

    substr($model, -$half) = "\0" x $half;

    return $model;
}


1;
