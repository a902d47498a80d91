#!/usr/bin/perl

# contrib/man.pl PAGE [COMMAND]: prints a man page, made from docs/.
#
#   contrib/man.pl nginx-llm objs/llm    nginx-llm(1), from docs/cli.md; options
#                                        and architectures from COMMAND --help
#   contrib/man.pl ngx_http_llm          ngx_http_llm(5), from docs/directives.md
#
# The Markdown that it reads is what these pages use: headings, paragraphs,
# tables, lists of one level, blocks of code, and within a line code, bold,
# italics and links.  Anything else is an error, so that no page is wrong
# without a word.

use strict;
use utf8;
use warnings;

use FindBin;
use POSIX qw(strftime);

my $ROOT = "$FindBin::Bin/..";

# SYNOPSIS is roff, skip names headings whose sections are left out

my %PAGES = (
    'nginx-llm' => {
        section  => 1,
        manual   => 'User Commands',
        from     => 'cli',
        what     => 'reads, runs and measures GGUF models, and makes API keys',
        synopsis => <<'END',
.B nginx\-llm
.I COMMAND
.RI [ FILE ]
.RI [ OPTION \&...]
.br
.B nginx\-llm \-\-version
END
        skip     => qr/^build\.sh$/,
        titles   => { 'Commands of llm' => 'DESCRIPTION' },
        edit     => sub { s/`llm (?=\w)/`nginx-llm /g },
        see      => [ 'ngx_http_llm (5)', 'nginx (8)' ],
    },

    'ngx_http_llm' => {
        section  => 5,
        manual   => 'File Formats',
        from     => 'directives',
        what     => 'directives and variables of ngx_http_llm_module, which'
                    . ' serves language models from nginx',
        synopsis => <<'END',
.B load_module modules/ngx_http_llm_module.so;
END
        skip     => qr/^$/,
        titles   => {},
        see      => [ 'nginx (8)', 'nginx-llm (1)' ],
    },
);

my ($name, $command) = @ARGV;
my $page = $PAGES{$name // ''}
    or die "usage: man.pl ", join(' | ', sort keys %PAGES), " [COMMAND]\n";
my $file = "$ROOT/docs/$page->{from}.md";

binmode $_, ':utf8' for *STDOUT, *STDERR;


sub slurp {
    my ($path) = @_;

    open my $f, '<:utf8', $path or die "$path: $!\n";
    local $/;

    return scalar <$f>;
}


# ---- text ----

# characters of which groff makes others, and those that are not ASCII

my %ROFF = ("\\" => '\e', '^' => '\(ha', '~' => '\(ti', '`' => '\(ga',
            '—' => '\(em', '–' => '\(en', '…' => '...', '×' => '\(mu');

sub plain {
    my ($text) = @_;

    $text =~ s/([\\^~`—–…×])/$ROFF{$1}/g;
    $text =~ s/([^\x00-\x7f])/sprintf '\[u%04X]', ord $1/ge;

    return $text;
}


# Code may be broken after what separates its words: some is longer than a line.

sub code {
    my ($text) = @_;

    $text = plain($text) =~ s/-/\\-/gr =~ s/'/\\(aq/gr;
    $text =~ s/([,|=\/])(?=\w)/$1\\:/g;

    return $text;
}


# What a link says, and the page that it leads to, if that has another name.

sub linked {
    my ($text, $to) = @_;

    return "\\fB" . code($text) . "\\fR" if $text =~ /^llm_\w+$/;

    my ($path) = $to =~ /^([^#]*)/;

    return inline($text) if $path eq '' || $text eq $path;
    return inline($text) . ' (' . plain($path) . ')';
}


sub inline {
    my ($text) = @_;
    my $out = '';

    while ($text ne '') {
        $out .= $text =~ s/^`` ?(.+?) ?``//s ? "\\fB" . code($1) . "\\fR"
              : $text =~ s/^`([^`]+)`//      ? "\\fB" . code($1) . "\\fR"
              : $text =~ s/^\[((?:[^\[\]`]|`[^`]*`)+)\]\(([^)\s]+)\)//
                                             ? linked($1, $2)
              : $text =~ s/^\*\*([^*]+)\*\*//
                                             ? "\\fB" . inline($1) . "\\fR"
              : $text =~ s/^\*(\w[^*]*)\*//  ? "\\fI" . inline($1) . "\\fR"
              : $text =~ s/^\\([|*_`<>\[\]])// ? plain($1)
              : $text =~ s/^([^`\[*\\]+|.)//s ? plain($1)
              : die "$file: cannot read: $text\n";
    }

    return $out;
}


# a line of text: none that roff takes for a request

sub line {
    my ($text) = @_;

    $text =~ s/\s+/ /g;
    $text = inline($text =~ s/^ | $//gr);

    return ($text =~ /^[.']/ ? "\\&$text" : $text) . "\n";
}


# ---- blocks ----

sub cells {
    my ($row) = @_;

    $row =~ s/^\|\s*|\s*\|\s*$//g;

    return map { s/\\\|/|/gr } split /\s*(?<!\\)\|\s*/, $row, -1;
}


# A table is a list, as its cells are sentences: what is in the first column,
# and the others with their headings.

sub table {
    my (@rows) = @_;
    my @heads = cells(shift @rows);
    my $out = '';

    shift @rows;

    for my $row (@rows) {
        my ($tag, @rest) = cells($row);
        my @lines;

        for my $n (0 .. $#rest) {
            my $head = @rest > 1 && $heads[$n + 1] ne ''
                ? "*$heads[$n + 1]*: " : '';

            push @lines, line($head . $rest[$n]) if $rest[$n] ne '';
        }

        $out .= ".TP\n" . ($tag eq '' ? "\\&\n" : line($tag))
              . join(".br\n", @lines ? @lines : "\\&\n");
    }

    return $out;
}


# an item that begins with code and a colon explains it

sub item {
    my ($text) = @_;

    return ".TP\n" . line($1) . line($2)
        if $text =~ /^(`[^`]+`(?:(?:,| or) `[^`]+`)*):\s+(.*)/s;
    return ".IP \\(bu 2\n" . line($text);
}


sub verbatim {
    my ($text) = @_;

    $text = code($text) =~ s/\\://gr =~ s/^([.'])/\\&$1/mgr;

    return ".PP\n.RS 4\n.EX\n$text.EE\n.RE\n";
}


sub heading {
    my ($level, $title) = @_;

    return '.SH ' . uc(plain($page->{titles}{$title} // $title)) . "\n"
        if $level == 2;
    return '.SS ' . plain($title) . "\n" if $level == 3;
    return ".PP\n.B " . plain($title) . "\n";
}


# The blocks of a text; those in sections that are left out, and the first list
# of a page, which is its table of contents, are not among them.

sub blocks {
    my ($text) = @_;
    my ($out, $skip, $contents) = ('', 0, 1);

    $page->{edit}->() for $page->{edit} ? $text : ();
    $text =~ s/\A# .*\n//;
    $out = ".SH DESCRIPTION\n" if $text !~ /\A\s*## /;

    while ($text =~ s/\A\s*\n//r ne '') {
        my $block;

        $text =~ s/\A(?:\s*\n)+//;

        if ($text =~ s/\A(#{2,4}) (.*)\n//) {
            my ($level, $title) = (length $1, $2);

            $skip = $title =~ $page->{skip} if $level == 2;
            $contents = 0;
            $block = heading($level, $title);

        } elsif ($text =~ s/\A```\w*\n(.*?)^```\n//ms) {
            $block = verbatim($1);

        } elsif ($text =~ s/\A((?:\|.*\n)+)//) {
            $block = table(split /\n/, $1);

        } elsif ($text =~ s/\A(- .*\n(?:(?:- |  ).*\n)*)//) {
            my $items = $1;

            $block = $contents ? '' : join '', map { item($_) }
                                      $items =~ /^- (.*\n(?:  .*\n)*)/mg;

        } elsif ($text =~ s/\A((?:(?![#|>]|- |```|\d+\. |    ).*\S.*\n)+)//) {
            $block = ".PP\n" . line($1);

        } else {
            die "$file: cannot read: ", $text =~ /\A(.*)/, "\n";
        }

        $out .= $block unless $skip;
    }

    return $out;
}


# ---- what COMMAND --help says ----

sub help {
    my $said = `$command --help 2>&1`;
    my ($options, $archs)
        = $said =~ /^options, ([^\n]*):\n(.*?)\n\narch[^\n]*:\n(.*)/ms
        ? ([ $1, $2 ], $3) : die "$command --help: no options: $said\n";
    my $out = ".SH OPTIONS\n" . line(ucfirst "$options->[0].");

    for my $option ("$options->[1]\n" =~ /^(  --\S+ .*\n(?:      +.*\n)*)/mg) {
        my ($flag, $what) = $option =~ /^\s+(--\S+)\s+(.*)/s;

        $out .= ".TP\n\\fB" . code($flag) . "\\fR\n" . line($what);
    }

    return "$out.SH MODELS\nModels of these architectures run"
           . " (the file's \\fBgeneral.architecture\\fR):\n.PP\n"
           . line($archs);
}


# ---- the page ----

my ($version) = slurp("$ROOT/engine/base/version.h") =~ /LLM_VERSION +"(.*)"/
    or die "no version\n";
my $time = $ENV{SOURCE_DATE_EPOCH} || (stat $file)[9];

printf '.\" made from docs/%s.md by contrib/man.pl' . "\n", $page->{from};
printf '.TH %s %d %s "nginx-llm %s" "%s"' . "\n", uc $name, $page->{section},
    strftime('%Y-%m-%d', gmtime $time), $version, $page->{manual};

# no hyphenation, and words are not spread over the line: much of it is code
# AD: since groff 1.23 paragraphs adjust by it
print ".nh\n.ad l\n.ds AD l\n";

print ".SH NAME\n", plain($name) =~ s/-/\\-/gr, ' \- ', plain($page->{what}),
    "\n.SH SYNOPSIS\n$page->{synopsis}", blocks(slurp($file)),
    defined $command ? help() : '',
    ".SH FILES\n.TP\n.I /usr/share/doc/nginx\\-llm/docs\n",
    "The whole documentation, of which this is a page.\n",
    ".TP\n.I /usr/share/doc/nginx\\-llm/examples\nSamples of configurations.\n",
    ".SH SEE ALSO\n",
    join(",\n", map { '.BR ' . s/-/\\-/gr } @{ $page->{see} }), "\n";
