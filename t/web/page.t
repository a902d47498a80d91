#!/usr/bin/perl

# The page over HTTP, as conf/llm_page.conf serves it: each file with its type
# and headers; its size; that nothing in it names another server; and that it
# is where "./build.sh run" and "./build.sh install" put it.

use strict;
use warnings;

use File::Basename qw(basename);
use LLM::Test qw(slurp);
use Test::More;

my @files = map { basename($_) } glob "$LLM::Test::ROOT/web/*";

my $t = LLM::Test->new(
    server => 'include %%ROOT%%/conf/llm_page.conf; llm_api_keys keys;',
    locations => <<'END');
        location /v1 { llm_api; }
        location = /health { llm_api_keys off; llm_health; }
END

symlink "$LLM::Test::ROOT/web", $t->dir . '/llm_page' or die "llm_page: $!";
$t->write_file('keys', "#\n");
$t->start;


# ---- what is served ----

my %type = (html => 'text/html', css => 'text/css', js => 'text/javascript',
            svg => 'image/svg+xml');
my $csp = "default-src 'none'; script-src 'self'; style-src 'self';"
        . " connect-src 'self'; img-src 'self' data: blob:; base-uri 'none';"
        . " form-action 'none'; frame-ancestors 'none';"
        . " require-trusted-types-for 'script'; trusted-types 'none'";
my $sum = 0;

for my $file (@files) {
    my ($kind) = $file =~ /\.(\w+)$/;
    my $path = $file eq 'index.html' ? '/' : "/llm_page/$file";
    my $res = $t->get($path);
    my $h = $res->{headers};

    is($res->{status}, 200, "$path needs no key");
    is($res->{body}, slurp("web/$file"), 'is the file');
    is($h->{'content-type'}, $type{$kind} // 'no type', 'its type');
    is($h->{'content-security-policy'}, $csp, 'what it may do');
    is($h->{'x-content-type-options'}, 'nosniff', 'is what it says');
    is($h->{'referrer-policy'}, 'no-referrer', 'tells nobody');
    is($h->{'cache-control'}, 'no-cache', 'is asked for again');
    is($t->get($path, headers => { 'If-None-Match' => $h->{etag} })->{status},
       304, 'but not sent again');

    $sum += length $res->{body};
}

cmp_ok($sum, '<', 100_000, "below 100 kB: $sum");

for my $path ('/llm_page/', '/llm_page/index.html', '/llm_page/index.html?a') {
    my $res = $t->get($path);

    is($res->{status}, 302, "$path leads");
    like($res->{headers}{location}, qr{^http://[^/]+/$}, 'to the page');
}

is($t->get('/llm_page/none.js')->{status}, 404, 'no other file');
isnt($t->get($_)->{status}, 200, "nor one beside them: $_")
    for qw(/llm_page/../keys /llm_page../keys /llm_page/%2e%2e/keys);
is($t->get('/v1/models')->{status}, 401, 'the API needs a key');

$t->stop;


# ---- what is in it ----

my %text = map { $_ => slurp("web/$_") } @files;

for my $file (@files) {
    my @other = grep { $_ ne 'http://www.w3.org/2000/svg' }
                $text{$file} =~ m{((?:https?:)?//[\w.-]+\.[a-z]{2,}[^\s"'`)]*)}g;

    is("@other", '', "$file names no other server");
    unlike($text{$file},
           qr/\b(?:innerHTML|outerHTML|insertAdjacentHTML|document\.write
              |createContextualFragment|DOMParser|eval\(|new\s+Function
              |setHTML|srcdoc)\b/x, "$file makes no HTML of text");
    unlike($text{$file}, qr/[^\n]{121}/, "$file can be read")
        if $file =~ /\.(?:js|css)$/;
    cmp_ok(($text{$file} =~ tr/\n//), '<=', 620, "$file is not long");
}

unlike($text{'index.html'}, qr/\son\w+=|\sstyle=|<style|<script>/,
       'no scripts and styles that the policy forbids');

# all is used, and what is used is there

my $all = join "\n", values %text;

for my $file (grep { $_ ne 'index.html' } @files) {
    like($all, qr{["'(](?:\./|llm_page/)\Q$file\E["')]}, "$file is used");
}

for my $used ($all =~ m{["'](?:\./|llm_page/)([\w.]+)["']}g) {
    ok(exists $text{$used}, "$used is there") unless exists $text{$used};
}

for my $id ($all =~ /\bbyId\('([\w-]+)'\)/g, $all =~ /["']#(i-\w+)["']/g,
            map { "i-$_" } $all =~ /\bdata-icon="(\w+)"/g)
{
    like($text{'index.html'}, qr/\bid="\Q$id\E"/, "#$id is there")
        unless $text{'index.html'} =~ /\bid="\Q$id\E"/;
}

done_testing();
