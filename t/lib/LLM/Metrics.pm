package LLM::Metrics;

# A strict parser of llm_metrics: each line is a HELP, a TYPE or a sample; a
# family has one HELP and one TYPE, directly followed by all its samples; no
# sample comes twice; histograms are cumulative and complete.
#
#   my $m = LLM::Metrics->scrape($t);
#   $m->sum('llm_requests_total', code => 200);

use strict;
use warnings;


sub scrape {
    my ($class, $t, $path) = @_;

    my $res = $t->get($path // '/metrics');

    die "$res->{status}: $res->{body}" if $res->{status} != 200;

    return $class->parse($res->{body});
}


sub parse {
    my ($class, $text) = @_;

    my $self = bless { samples => {}, type => {}, help => {}, text => $text },
                     $class;
    my ($family, %seen);

    die 'the last line does not end' if $text !~ /\n\z/;

    for (split /\n/, $text) {
        if (/^# HELP ([a-zA-Z_:][\w:]*) (\S.*)$/) {
            die "two helps: $1" if exists $self->{help}{$1};
            $self->{help}{$1} = $2;
            $family = $1;

        } elsif (/^# TYPE (\S+) (gauge|counter|histogram)$/) {
            die "no help, or two types: $1" if $1 ne ($family // '')
                                              || $self->{type}{$1};
            $self->{type}{$1} = $2;

        } elsif (/^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/) {
            $self->sample($family, $1, $2 // '', $3);
            die "twice: $_" if $seen{"$1 " . ($2 // '')}++;

        } else {
            die "not a line: $_";
        }
    }

    $self->histograms;

    return $self;
}


sub sample {
    my ($self, $family, $name, $labels, $value) = @_;

    my $base = $name;

    $base =~ s/_(?:bucket|sum|count)$//
        if ($self->{type}{$family // ''} // '') eq 'histogram';

    die "$name is not of $family" if $base ne $family;
    die "no number: $value" if $value !~ /^-?[\d.]+(?:e[-+]?\d+)?$/;

    my %labels;

    while ($labels =~ /\G([a-zA-Z_]\w*)="((?:[^"\\]|\\[\\"n])*)"(?:,|\z)/gc) {
        my ($label, $text) = ($1, $2);

        die "label twice: $label" if exists $labels{$label};
        $text =~ s/\\(.)/$1 eq 'n' ? "\n" : $1/ge;
        $labels{$label} = $text;
    }

    die "labels: $labels" if (pos($labels) // 0) != length $labels;

    push @{ $self->{samples}{$name} }, { labels => \%labels,
                                         value => $value };
}


sub histograms {
    my ($self) = @_;

    for my $name (grep { $self->{type}{$_} eq 'histogram' }
                  keys %{ $self->{type} })
    {
        my %last;

        for my $s (@{ $self->{samples}{"${name}_bucket"} // [] }) {
            my %l = %{ $s->{labels} };
            my $le = delete $l{le} // die "$name: no le";
            my $of = join ',', map { "$_=$l{$_}" } sort keys %l;
            my $before = $last{$of} // { le => -1, value => 0 };

            die "$name: buckets are in no order"
                if $before->{le} eq '+Inf'
                   || ($le ne '+Inf' && $le <= $before->{le});
            die "$name: not cumulative" if $s->{value} < $before->{value};
            $last{$of} = { le => $le, value => $s->{value} };
        }

        for my $s (@{ $self->{samples}{"${name}_count"} // [] }) {
            my $of = join ',', map { "$_=$s->{labels}{$_}" }
                               sort keys %{ $s->{labels} };

            die "$name: +Inf is not the count"
                if $last{$of}{le} ne '+Inf'
                   || $last{$of}{value} != $s->{value};
        }
    }
}


# the samples with all of these labels; values may be regexes

sub samples {
    my ($self, $name, %labels) = @_;

    return grep {
        my $l = $_->{labels};

        !grep {
            my $want = $labels{$_};
            my $is = $l->{$_};

            !defined $is || (ref $want ? $is !~ $want : $is ne $want)
        } keys %labels
    } @{ $self->{samples}{$name} // [] };
}


sub sum {
    my ($self, $name, %labels) = @_;

    my $sum = 0;
    $sum += $_->{value} for $self->samples($name, %labels);

    return $sum;
}


# sums by the values of labels, as { 'value of a|value of b' => sum }, without
# samples that are 0

sub by {
    my ($self, $name, @labels) = @_;

    my %sum;

    for my $s ($self->samples($name)) {
        $sum{join '|', map { $s->{labels}{$_} // '' } @labels} += $s->{value}
            if $s->{value} != 0;
    }

    return \%sum;
}


# builds a library that replaces NVML, in a server's folder; gpus() sets its
# numbers

sub nvml {
    my ($class, $t, $define) = @_;

    my $source = "$LLM::Test::ROOT/t/lib/nvml.c";
    my $lib = $t->preload('nvml', '#define DIR "' . $t->dir . "\"\n"
                                  . ($define // '') . "\n"
                                  . "#include \"$source\"\n");

    rename $lib, $t->dir . '/libnvidia-ml.so.1' or die $!;
}


sub gpus {
    my ($class, $t, %n) = @_;

    $t->write_file('gpu.new', join '', map { "$_ $n{$_}\n" } keys %n);
    rename $t->dir . '/gpu.new', $t->dir . '/gpu' or die $!;
}

1;
