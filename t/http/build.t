#!/usr/bin/perl

# build.sh as its users call it: a second build builds nothing, "install"
# writes below DESTDIR alone, "run" serves what its curl line asks for, and
# NGINX_SRC takes any nginx source tree and leaves it as it was.

use strict;
use warnings;

use File::Find qw(find);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use LLM::Test;
use Test::More;

plan skip_all => 'the build of "./build.sh build" is what this is about'
    if $ENV{LLM_SAN} || $LLM::Test::OBJS ne "$LLM::Test::ROOT/objs";
plan skip_all => 'nothing is built yet, and nothing may be installed here'
    unless -e "$LLM::Test::OBJS/ngx_http_llm_module.so";

my $root = $LLM::Test::ROOT;

# the caller's flags and places are not those of the build
delete @ENV{qw(CC CFLAGS SAN LLM_TEST NGINX_SRC DESTDIR LLM_PORT)};


sub build_sh {
    my ($dir, %env) = @_;
    my @args = @{ delete $env{args} };

    my $pid = open(my $out, '-|') // die "fork: $!";

    if ($pid == 0) {
        open STDERR, '>&', \*STDOUT;
        open STDIN, '<', '/dev/null';
        @ENV{keys %env} = values %env;
        exec "$dir/build.sh", @args or POSIX::_exit(127);
    }

    my $text = join '', <$out>;
    close $out;

    # without CUDA it says so, whatever else it does
    $text =~ s/^build\.sh: .*CUDA.*\n//mg;

    return ($text, $? >> 8);
}


# what is below a folder: name => size and time of the last change

sub files {
    my ($dir) = @_;
    my %files;

    find({ no_chdir => 1, wanted => sub {
        my @s = lstat $_;
        $files{substr $_, length $dir} = "$s[7] $s[9]" if @s && !-d _;
    } }, $dir);

    return \%files;
}


# ---- build, again ----

my ($out, $status) = build_sh($root, args => ['build']);

is($status, 0, 'build') or diag($out);

my $before = files("$root/objs");

($out, $status) = build_sh($root, args => ['build']);

is($status, 0, 'build again');
is($out, '', 'says nothing');
is_deeply(files("$root/objs"), $before, 'and builds nothing');

($out, $status) = build_sh($root, args => ['bulid']);

is($status, 1, 'an unknown command');
like($out, qr/^usage: .*^  build /ms, 'shows all commands');

($out, $status) = build_sh($root, args => ['build'],
                           NGINX_SRC => '/no/such/tree');

is($status, 1, 'a source tree that is none');
like($out, qr{no nginx source in /no/such/tree}, 'is named');

($out, $status) = build_sh($root, args => ['run'], LLM_PORT => '80x');

is($status, 1, 'a port that is no number');
like($out, qr/LLM_PORT is not a number: 80x/, 'is named');


# ---- install ----

my $dest = tempdir(CLEANUP => 1);

($out, $status) = build_sh($root, args => ['install'], DESTDIR => $dest);

is($status, 0, 'install') or diag($out);
like($out, qr/load_module modules\/ngx_http_llm_module\.so;/,
     'says what to write into nginx.conf');

my @installed = grep { !/llm_cuda\.so$/ } sort keys %{ files($dest) };

is(scalar @installed, 2, 'two files') or diag("@installed");
like($installed[0], qr{^/usr/.*/modules/ngx_http_llm_module\.so$},
     'the module among nginx\'s');
is($installed[1], '/usr/local/bin/llm', 'the command');
is_deeply(files("$root/objs"), $before, 'nothing else has changed');

make_path("$dest/etc/nginx/modules-enabled");

($out, $status) = build_sh($root, args => ['install'], DESTDIR => $dest);

open my $f, '<', "$dest/etc/nginx/modules-enabled/50-mod-http-llm.conf"
    or die "no file in modules-enabled: $!";
is(scalar <$f>, "load_module modules/ngx_http_llm_module.so;\n",
   'enabled where Debian\'s nginx looks');
close $f;


# ---- run ----

{
    my $port = LLM::Test::free_port();
    my $pid = open(my $said, '-|') // die "fork: $!";

    if ($pid == 0) {
        setpgrp;
        open STDERR, '>&', \*STDOUT;
        open STDIN, '<', '/dev/null';
        $ENV{LLM_PORT} = $port;
        exec "$root/build.sh", 'run' or POSIX::_exit(127);
    }

    my ($text, $curl) = ('', '');

    while (my $line = <$said>) {
        $text .= $line;
        last if ($curl) = $line =~ /^(curl -N .*)/;
    }

    like($text, qr/this installs missing packages .*\Q127.0.0.1:$port\E/s,
         'run says what it will do');
    like($curl, qr/127\.0\.0\.1:$port/, 'and how to ask');

    my $answer = '';

    LLM::Test::wait_for(60, sub {
        $answer = `$curl -sf 2>/dev/null`;
        return $answer =~ /\[DONE\]/;
    });

    is(join('', $answer =~ /"delta":\{"content":"([^"]*)/g), '2 + 2 = 4.',
       'its curl line is answered') or diag($answer);

    kill 'QUIT', $pid;
    close $said;
    is($? >> 8, 0, 'ends when it is told to');
}


# ---- another source tree: upstream's layout, in a copy of the clone ----

SKIP: {
    my $src = '/usr/share/nginx/src';
    my $dir = tempdir(CLEANUP => 1);

    skip('the distribution\'s nginx source is not here', 5)
        unless -d "$src/src/core";

    make_path("$dir/nginx", "$dir/clone");

    # what is Debian's stays behind: its flags, its changes of the rules
    system('cp', '-rL', "$src/auto", "$src/src", "$src/configure",
           "$dir/nginx") == 0 or die 'cp';
    system("cd $root && tar cf - --exclude=./.git --exclude=./.deps"
           . " --exclude=./objs/run --exclude=./objs/fuzzing"
           . " --exclude=./objs/asan --exclude=./objs/tsan"
           . " --exclude=./objs/models . | tar xf - -C $dir/clone") == 0
        or die 'tar';

    my $tree = files("$dir/nginx");

    ($out, $status) = build_sh("$dir/clone", args => ['build'],
                               NGINX_SRC => "$dir/nginx");

    is($status, 0, 'NGINX_SRC') or diag($out);
    like($out, qr{configuring with the nginx source in \Q$dir\E/nginx},
         'says which');
    is_deeply(files("$dir/nginx"), $tree, 'and leaves it as it was');

    my $stamp = join '', map { "$_\n" } `cat $dir/clone/objs/nginx.stamp`;

    unlike($stamp, qr/--prefix=/, 'without the distribution\'s flags');

    ($out, $status) = build_sh("$dir/clone", args => ['clean']);

    ok($status == 0 && !-e "$dir/clone/objs" && -e "$dir/clone/build.sh",
       'clean');
}

done_testing();
