#!/usr/bin/perl

# The documentation and the tree: README.md is a page; links lead somewhere;
# every document can be found from README.md; files that are named are there;
# messages of docs/troubleshooting.md are those of the sources, and each code of
# an error is explained there.

use strict;
use utf8;
use warnings;

use Cwd qw(abs_path);
use File::Find qw(find);
use FindBin;
use Test::More;

my $root = abs_path($ENV{LLM_ROOT} || "$FindBin::Bin/../..");

sub slurp {
    my ($name) = @_;

    open my $f, '<:utf8', "$root/$name" or die "$name: $!";
    local $/;

    return scalar <$f>;
}


sub files {
    my (@folders) = @_;
    my @files;

    find({ no_chdir => 1, wanted => sub {
        push @files, s{^\Q$root/\E}{}r if -f $_ && !m{/(?:\.|objs/)};
    } }, map { "$root/$_" } @folders);

    return sort @files;
}


my @pages = ('README.md', 'CONTRIBUTING.md', 'engine/README.md',
             't/gpu/README.md', grep { /\.md$/ } files('docs'));
my %text = map { $_ => slurp($_) } @pages;
my %prose = map { $_ => $text{$_} =~ s/^```.*?^```$//gmsr } @pages;

cmp_ok(-s "$root/README.md", '<=', 8192, 'README.md is a page');


# ---- links ----

# a path as a link of this file has it, from the root

sub from {
    my ($file, $path) = @_;
    my @at = split m{/}, $file;

    pop @at;

    for my $part (split m{/}, $path) {
        $part eq '..' ? pop @at : push @at, $part;
    }

    return join '/', @at;
}


sub anchors {
    my ($page) = @_;

    return map { lc(s/[^\w\- ]//gr =~ s/ /-/gr) => 1 }
           $prose{$page} =~ /^#+ (.*)$/mg;
}


my %linked;

for my $page (@pages) {
    my @lost;

    for my $to ($prose{$page} =~ /\]\((?!https?:)([^)\s]+)\)/g) {
        my ($path, $anchor) = $to =~ /^([^#]*)#?(.*)$/;

        $path = $path eq '' ? $page : from($page, $path);
        $linked{$page}{$path} = 1;

        push @lost, $to unless -e "$root/$path"
            && ($anchor eq '' || { anchors($path) }->{$anchor});
    }

    is("@lost", '', "$page: links");

    my @twice = do { my %n; $n{$_}++ for $prose{$page} =~ /^#+ (.*)$/mg;
                     grep { $n{$_} > 1 } sort keys %n };

    is("@twice", '', "$page: no two sections of one name");
}

{
    my %found = ('README.md' => 1);
    my @todo = keys %found;

    while (defined(my $page = shift @todo)) {
        push @todo, grep { !$found{$_}++ } keys %{ $linked{$page} // {} };
    }

    is(join(' ', grep { !$found{$_} && m{^docs/} } @pages), '',
       'every document is found from README.md');
}


# ---- files ----

# A file is named by its path, or the end of it; "*" stands for any rest.

my $tree = join "\n", '', files(qw(engine kernels http conf t models docs .ci),
                                grep { -d "$root/$_" } 'contrib'),
           qw(ngx_http_llm_module.c build.sh CONTRIBUTING.md CHANGELOG.md),
           '';

for my $page (grep { !m{^t/} } @pages) {
    my @lost;

    for my $name ($prose{$page} =~ m{`([\w./*-]+\.(?:[ch]|cu|def|t|py|pm|sh
                                     |mk|txt|jsonl|conf))`}gx)
    {
        next if $name =~ m{^(?:/|objs/)} || $name =~ /NAME/
            || $name =~ /^(?:nginx|llm_errors|keys|peak)\.\w+$/;

        my $pattern = join '[^/\n]*', map { quotemeta }
                      split /\*/, $name =~ s{^\.\./}{}r, -1;

        push @lost, $name unless $tree =~ m{[/\n]$pattern\n};
    }

    is("@lost", '', "$page: the files that it names");
}


# ---- messages and codes ----

my ($strings, %code) = ('');

for my $file (grep { /\.(?:[ch]|cu)$/ && !m{^engine/cli/} }
              files(qw(engine kernels http)), 'ngx_http_llm_module.c')
{
    my $source = slurp($file) =~ s{/\*.*?\*/}{}gsr;

    $code{$1} = $file
        while $source =~ /\b\w*fail\w*\([^;"]*?\b[45]\d\d,\s*"([a-z_]+)"/gs;
    $code{$1} = $file
        while $source =~ /^#define +LLM_\w+ +"((?!llm_)[a-z]+_[a-z_]+)"$/mg;

    # quotes within a string are told apart, then its parts are joined

    $source =~ s/\\"/\x{1}/g;
    $source =~ s/"(?:\s|\\\n)*"//g;
    $strings .= "$1\n" while $source =~ /"([^"\n]*)"/g;
}

$strings =~ tr/\x{1}/"/;
cmp_ok(scalar keys %code, '>', 40, 'codes of errors');

my ($said) = $text{'docs/troubleshooting.md'} =~ /(^## .*)\z/ms;

is(join(' ', grep { index($said, "`$_`") < 0 } sort keys %code), '',
   'each is explained');

{
    my @lost;
    my $ours = $said =~ s/^## The module is not loaded\n.*?(?=^## )//msr
                     =~ s/^## First looks\n.*?(?=^## )//msr
                     =~ s/^## llm_admin\n.*//msr;

    for my $row ($ours =~ /^\| (`.*?) \| /mg) {
        for my $message ($row =~ /`([^`]+)`/g) {
            for my $part (split /…/, $message) {
                $part =~ s/^[\s:,.]+|[\s:,.]+$//g;
                push @lost, "$part ($message)"
                    unless index($strings, $part) >= 0;
            }
        }
    }

    is(join("\n", @lost), '', 'messages as the sources have them');
}

done_testing();
