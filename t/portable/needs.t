#!/usr/bin/perl

# What build.sh says where something is missing: the command of the package
# manager that there is, with the names that its packages have there.

use strict;
use warnings;

use File::Temp;
use LLM::Test qw(slurp);
use Test::More;

my $root = $LLM::Test::ROOT;

delete $ENV{LLM_NO_INSTALL};


# need() where nothing is installed, with this package manager

sub said {
    my ($manager, $needs, %env) = @_;

    local @ENV{keys %env} = values %env;

    return `cd $root && bash -c 'set -- help; . ./build.sh > /dev/null
        has() { return 1; }
        package_manager() { echo "$manager"; }
        apt-get() { echo "apt-get \$*"; }
        sudo() { echo "sudo \$*"; }
        need "$needs"' 2>&1`;
}


my @packages = slurp('contrib/needs.sh') =~ /^BUILD_NEEDS='\n(.*?)^'/ms
             ? $1 =~ /^(\S+)/mg : ();

cmp_ok(scalar @packages, '>', 7, 'packages of a build');

my $dnf = said('dnf', '$BUILD_NEEDS');

like($dnf, qr/please run \(as root\): dnf install gcc gcc-c\+\+ make glibc-devel /,
     'dnf: the command');
like($dnf, qr/ cjson-devel pcre2-devel openssl-devel zlib-devel nginx nginx-mod-devel$/,
     'with the names of Fedora and RHEL');

my $apk = said('apk', '$BUILD_NEEDS');

like($apk, qr/please run \(as root\): apk add gcc g\+\+ make musl-dev /,
     'apk: the command');
like($apk, qr/ zlib-dev nginx \(no package has nginx's source: .* set NGINX_SRC/,
     'and what it has no package for');
unlike(said('apk', '$BUILD_NEEDS', NGINX_SRC => '/nginx'), qr/nginx/,
       'which is not asked for with NGINX_SRC');

{
    my $old = File::Temp->newdir;

    mkdir "$old/$_" for 'src', 'src/core';

    for ([ 1021004, 1 ], [ 1021005, 0 ]) {
        my ($version, $first) = @$_;

        open my $h, '>', "$old/src/core/nginx.h" or die $!;
        print $h "#define nginx_version      $version\n";
        close $h;
        my $asked = said('dnf', '$BUILD_NEEDS', NGINX_SRC => $old);

        is($asked =~ / pcre-devel/ ? 1 : 0, $first,
           "nginx $version: the first PCRE");
    }
}

my $none = said('none', '$BUILD_NEEDS');

like($none, qr/^  apt-get install .*^  dnf install .*^  apk add /ms,
     'no package manager that it knows: the commands of all');

like(said('dnf', '$BUILD_NEEDS', LLM_NO_INSTALL => 1),
     qr/^build\.sh: not installed: gcc gcc-c\+\+ /m,
     'where nothing may be installed: their names');

# apt is in use: it is waited for, and not for ever

sub waited {
    my ($busy) = @_;
    my $tries = File::Temp->new;

    return `cd $root && bash -c 'set -e -- help; . ./build.sh > /dev/null
        has() { return 1; }
        package_manager() { echo apt-get; }
        known_to_apt() { :; }
        sudo() { "\$\@"; }
        env() { while [[ \$1 == *=* ]]; do shift; done; "\$\@"; }
        sleep() { echo "sleep \$1"; }
        apt-get() {
            echo >> $tries
            if [ \$(wc -l < $tries) -le $busy ]; then
                echo "E: Could not get lock /var/lib/apt/lists/lock." >&2
                return 100
            fi
            echo "apt-get \$*"
            echo "W: a warning" >&2
            [ \$1 = update ] || return 7
        }
        need "one two"; echo not reached' 2>&1; echo status \$?`;
}

is(waited(0), <<'END', 'apt is free: its lines, its warnings and its status');
build.sh: installing from the distribution: one
apt-get update -q
W: a warning
apt-get install -q -y --no-install-recommends one
W: a warning
status 7
END

is(waited(2), <<'END', 'apt is in use at first');
build.sh: installing from the distribution: one
build.sh: waiting for apt, which another process uses (at most 300 seconds)
sleep 5
sleep 5
apt-get update -q
W: a warning
apt-get install -q -y --no-install-recommends one
W: a warning
status 7
END

like(waited(1000), qr/(?:sleep 5\n){60}build\.sh: apt is in use since 300 seconds; .*: E: Could not get lock .*\nstatus 1$/,
     'apt is in use for long');

# what decodes media may be missing: the build goes on

like(`cd $root && LLM_NO_INSTALL=1 bash -c 'set -- help; . ./build.sh > /dev/null
      has() { return 1; }
      package_manager() { echo apk; }
      need_media; echo status \$?' 2>&1`,
     qr/^build\.sh:\ not\ installed:\ libpng-dev\ libjpeg-turbo-dev\ .*
        ^build\.sh:\ building\ without\ them: .* ^status\ 0$/xms,
     'without the libraries of images: says so, and builds');

# the tests' tools have names, too: none that only Debian has

like(said('dnf', '$TEST_NEEDS'), qr/ perl-Test-Harness perl-Cpanel-JSON-XS clang compiler-rt /,
     'dnf: what the tests need');

# the table of docs/builds.md has the same names

my %doc;

for my $row (slurp('docs/builds.md') =~ /^\| (?!system|---)(.* \|.*\|.*) \|$/mg) {
    my @cells = split / \| /, $row;

    next if @cells != 4;

    push @{ $doc{$_} }, $cells[$_] =~ /`(\S+)`/g for 1 .. 3;
}

my @media = map { /^(\S+)/mg } slurp('contrib/needs.sh')
            =~ /^(?:MEDIA|FFMPEG)_NEEDS='\n(.*?)^'/msg;

is("@{ $doc{1} }", "@packages nginx nginx-dev @media",
   'docs/builds.md: names for apt');

my $all = '$BUILD_NEEDS$MEDIA_NEEDS$FFMPEG_NEEDS';

for my $of ([ 2, said('dnf', $all) =~ /dnf install (.*)$/m ],
            [ 3, said('apk', $all) =~ /apk add (.*?) \(/ ])
{
    my ($column, $names) = @$of;

    is("@{ $doc{$column} }", $names, 'docs/builds.md: names in column ' . ($column + 1));
}

done_testing();
