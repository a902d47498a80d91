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

# the caller's flags and places are not those of the build, but for WERROR, with
# which it was built

delete @ENV{qw(CC CPPFLAGS CFLAGS CXXFLAGS LDFLAGS SAN LLM_TEST NGINX_SRC
               DESTDIR LLM_PORT)};

# all that is needed was installed before the tests
$ENV{LLM_NO_INSTALL} = 1;


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

# ... and a compiler that is not there, before anything is compiled: in a clone
# of which nothing has been built

{
    my $clone = tempdir(CLEANUP => 1);

    make_path("$clone/t");
    system("cd $root && cp -r build.sh contrib engine http kernels $clone"
           . " && cp --parents t/*.sh t/bench/*.sh $clone") == 0 or die 'cp';

    for my $case ([ NGINX_SRC => '/no/such/tree',
                    'no nginx source in /no/such/tree, which has no src/core' ],
                  [ CC => '/no/such/cc -O1',
                    'there is no compiler /no/such/cc, which CC names' ])
    {
        my ($name, $value, $why) = @$case;

        ($out, $status) = build_sh($clone, args => ['module'],
                                   $name => $value);

        is($status, 1, "$name=$value in a new clone");
        like($out, qr/\Abuild\.sh: \Q$why\E.*\n\z/, 'is said in one line');
        is(join(' ', grep { /\.o$/ } keys %{ files("$clone/objs") }), '',
           'before anything is compiled');
    }
}

($out, $status) = build_sh($root, args => ['run'], LLM_PORT => '80x');

is($status, 1, 'a port that is no number');
like($out, qr/LLM_PORT is not a port number: 80x/, 'is named');

($out, $status) = build_sh($root, args => ['run'], LLM_PORT => '65536');

is($status, 1, 'a number that no port has');
like($out, qr/LLM_PORT is not a port number: 65536/, 'is named');


# ---- what it asks for, and where it may not write ----

sub needs {
    my (%env) = @_;

    local @ENV{keys %env} = values %env;

    return `cd $root && bash -c 'set -- help; . ./build.sh > /dev/null
            names "\$BUILD_NEEDS"'`;
}

like(needs(), qr/\bnginx, nginx-dev\b/, 'the distribution\'s nginx');
unlike(needs(NGINX_SRC => '/nginx'), qr/nginx/, 'with NGINX_SRC none');
like(needs(NGINX_SRC => '/nginx'), qr/zlib1g-dev/,
     'but what its configure wants');

SKIP: {
    skip('only root can become another user', 3) if $> != 0;

    my $nobody = 'setpriv --reuid=65534 --regid=65534 --clear-groups';

    skip("another user cannot read $root", 3)
        if system("$nobody test -r $root/build.sh 2> /dev/null") != 0;

    for my $command (qw(build run clean)) {
        my $text = `$nobody env LLM_PORT=1 $root/build.sh $command 2>&1`;

        $text =~ s/^build\.sh: this installs .*\n//;

        like($text, qr/\Abuild\.sh:\ \S+\ may\ not\ write\ to\ \S+,
                       \ which\ is\ \w+'s:\ .*\n\z/x,
             "$command: one line says that it may not write here");
    }
}


# ---- flags ----

# the commands that make would run, by the file that each one makes

sub commands {
    my ($dir, @args) = @_;
    my $objs = tempdir(CLEANUP => 1);

    local $ENV{WERROR};
    delete $ENV{WERROR};

    # a library for what is linked with it
    open my $f, '>', "$objs/libllm.a" or die "libllm.a: $!";
    close $f;

    my $text = `make -n -C $dir OBJS=$objs @args 2>&1`;

    $text =~ s/\\\n//g;

    return { map { /\s-o (\S+)/ ? ($1 =~ s{^\Q$objs\E/}{}r => $_) : () }
             split /\n/, $text };
}

my %flags = (CPPFLAGS => '-DLLM_GIVEN_CPP', CFLAGS => '-O1', CXXFLAGS => '-O3',
             LDFLAGS => '-Wl,--as-needed');
my @flags = map { "$_=$flags{$_}" } sort keys %flags;

my $c = commands($root, '-f engine/Makefile lib cli unit', @flags);
my $cxx = commands($root, '-f kernels/cuda/Makefile emu', @flags);
my $cuda = commands($root, '-f kernels/cuda/Makefile cuda NVCC=:', @flags);

cmp_ok(scalar keys %$c, '>', 150, 'what make compiles');

is(join(' ', grep { $c->{$_} !~ / -DLLM_GIVEN_CPP -O1 / } sort keys %$c), '',
   'CPPFLAGS and CFLAGS reach all of C');
is(join(' ', grep { $cxx->{$_} !~ / -DLLM_GIVEN_CPP -O3 / } sort keys %$cxx),
   '', 'CPPFLAGS and CXXFLAGS reach all of the emulated GPU');
is(join(' ', grep { !/\.so$/ && $cuda->{$_} !~
                    / -Xcompiler -DLLM_GIVEN_CPP -Xcompiler -O3 / }
             sort keys %$cuda), '', 'and nvcc\'s host compiler');

is(join(' ', unlinked($c), unlinked($cxx), unlinked($cuda)), '',
   'LDFLAGS and full RELRO reach all that is linked');

sub unlinked {
    my ($of) = @_;
    my $wl = qr/(?:-Wl,|-Xlinker )/;

    return grep {
        /^(?:llm|t\/\w+|.*\.so)$/ && $of->{$_} !~
            / ${wl}-z(?:,| -Xlinker )relro .* ${wl}--as-needed /
    } sort keys %$of;
}

my ($vector, $other) = (qr/^obj\/kernels\/cpu\//, qr/^(?!obj\/kernels\/cpu\/)/);

is(join(' ', grep { /$other/ && $c->{$_} !~ / -fstack-protector-strong / }
             sort keys %$c), '', 'stack protector');
is(join(' ', grep { /$vector/ && $c->{$_} =~ / -fstack-protector/ }
             sort keys %$c), '', 'but not in the vector kernels');

sub llm_command { commands(shift, '-f engine/Makefile cli', @_)->{llm} }

like(llm_command($root, 'WERROR=1'), qr/ -D_FORTIFY_SOURCE=2 .* -Werror /,
     'WERROR=1: -Werror');
unlike(llm_command($root), qr/-Werror/, 'for all others: none');
unlike(llm_command($root, 'CFLAGS="-O2 -O0"'), qr/_FORTIFY_SOURCE/,
       'no _FORTIFY_SOURCE where nothing is optimised');
unlike(llm_command($root, 'SAN=asan'), qr/_FORTIFY_SOURCE/,
       'nor under a sanitizer');
unlike(llm_command($root, 'CPPFLAGS=-D_FORTIFY_SOURCE=3'),
       qr/_FORTIFY_SOURCE=2/, 'nor beside the caller\'s');

# the module's, which nginx's configure is given

sub configured {
    my (%env) = @_;

    local @ENV{keys %env} = values %env;

    my $text = `cd $root && bash -c 'set -- help; . ./build.sh > /dev/null
                NGINX_SRC=\$DEBIAN_SRC
                nginx_flags /objs
                printf "%s\\n" "\${NGX_CONF_FLAGS[@]}"'`;

    return map { $text =~ /^--with-$_-opt=(.*)$/m ? $1 : '' } qw(cc ld);
}

my ($cc, $ld) = configured(%flags, WERROR => 1);

like($cc, qr/ -fstack-protector-strong .* -DLLM_GIVEN_CPP -O1 $/,
     'the module: all flags of C');
unlike($cc, qr/-Wno-error/, 'and nginx\'s -Werror');
like($ld, qr/ -Wl,-z,relro .* -Wl,--as-needed $/, 'and of the linker');
like((configured(WERROR => 1))[0], qr/ -D_FORTIFY_SOURCE=2 /, 'hardened');
like((configured(WERROR => ''))[0], qr/ -Wno-error /, 'others: no -Werror');

my $elf = `readelf -dW $root/objs/ngx_http_llm_module.so`;

like($elf, qr/BIND_NOW/, 'the module: no lazy binding');


# ---- install ----

my $dest = tempdir(CLEANUP => 1);

($out, $status) = build_sh($root, args => ['install'], DESTDIR => $dest);

is($status, 0, 'install') or diag($out);
like($out, qr/load_module modules\/ngx_http_llm_module\.so;/,
     'says what to write into nginx.conf');

my @installed = grep { !/llm_cuda\.so$/ } sort keys %{ files($dest) };

my @page = grep { m{/llm_page/} } @installed;

@installed = grep { !m{/llm_page/} } @installed;

is(scalar @installed, 8, 'eight files') or diag("@installed");
is($installed[0], '/etc/nginx/llm_errors.conf', 'the errors to include');
is($installed[1], '/etc/nginx/llm_page.conf', 'the page to include');
like($installed[4], qr{^/usr/.*/modules/ngx_http_llm_module\.so$},
     'the module among nginx\'s');
like("$installed[2] $installed[3]",
     qr{^(/usr/\S+/modules)/llm-media \1/llm-media-ffmpeg$},
     'what decodes media, beside the module');
is("$installed[6] $installed[7]",
   join(' ', map { "/usr/local/libexec/nginx-llm/$_" } qw(llm-media
                                                          llm-media-ffmpeg)),
   'and where the command looks for it');
is($installed[5], '/usr/local/bin/nginx-llm', 'the command, by a name its own');
like(`$dest$installed[5] 2>&1`, qr/^usage: nginx-llm .*^  nginx-llm info /ms,
     'which it knows');

my ($prefix) = `nginx -V 2>&1` =~ / --prefix=(\S+)/;

is(join(' ', @page), join(' ', map { s{.*/}{$prefix/llm_page/}r }
                               glob "$root/web/*"),
   'the page below nginx\'s prefix, where llm_page.conf looks for it');
is(-e "$root/objs/llm_cuda.so" ? 1 : 0,
   scalar(grep { /\/modules\/llm_cuda\.so$/ } keys %{ files($dest) }),
   'the CUDA backend beside the module if there is one');
is_deeply(files("$root/objs"), $before, 'nothing else has changed');

make_path("$dest/etc/nginx/modules-enabled");

open my $changed, '>', "$dest/etc/nginx/llm_errors.conf" or die $!;
print $changed "# mine\n";
close $changed;

($out, $status) = build_sh($root, args => ['install'], DESTDIR => $dest);

open my $f, '<', "$dest/etc/nginx/modules-enabled/50-mod-http-llm.conf"
    or die "no file in modules-enabled: $!";
is(scalar <$f>, "load_module modules/ngx_http_llm_module.so;\n",
   'enabled where Debian\'s nginx looks');
close $f;

is(-s "$dest/etc/nginx/llm_errors.conf", 7, 'a file that was changed stays');
like($out, qr{\Q$dest\E/etc/nginx/llm_errors\.conf stays as it is},
     'and that is said');


# ---- run ----

# starts it; returns its output up to the line that says how to ask, that line,
# and how to end it

sub begin_run {
    my ($port) = @_;

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

    return ($text, $curl, sub {
        kill 'QUIT', $pid;
        $text .= join '', <$said>;
        close $said;
        return ($text, $? >> 8);
    });
}

{
    my $port = LLM::Test::free_port();
    my ($text, $curl, $end) = begin_run($port);

    like($text, qr/this installs missing packages .*\Q127.0.0.1:$port\E/s,
         'run says what it will do');
    like($curl, qr/127\.0\.0\.1:$port/, 'and how to ask');

    my $answer = `$curl -sf 2>/dev/null`;

    is(join('', $answer =~ /"delta":\{"content":"([^"]*)/g), '2 + 2 = 4.',
       'which is answered at once') or diag("$text\n$answer");
    like(`curl -s http://127.0.0.1:$port/`, qr{"llm_page/chat\.js"},
         '/ is the page');
    is(`curl -s http://127.0.0.1:$port/llm_page/chat.js`,
       `cat $root/web/chat.js`, 'which has its files');
    like(`curl -s http://127.0.0.1:$port/admin/models`, qr{"id":"demo"},
         'and may look at the server');

    # while it runs

    ($out, $status) = build_sh($root, args => ['run'], LLM_PORT => $port);

    is($status, 1, 'a port that is taken');
    is($out, "build.sh: port $port is in use, perhaps by another run: choose "
       . "another one (LLM_PORT=9090 ./build.sh run)\n", 'is said in one line');

    my $other = LLM::Test::free_port();
    my (undef, undef, $end_other) = begin_run($other);

    for my $of ($port, $other) {
        open my $f, '<', "$root/objs/run/$of/logs/nginx.pid"
            or die "no pid file of the run on port $of: $!";
        chomp(my $pid = <$f>);
        ok(kill(0, $pid), "two at a time: the pid file of port $of");
    }

    is(($end_other->())[1], 0, 'one ends');

    ($text, $status) = $end->();

    is($status, 0, 'and the other one, when it is told to');
    unlike($text, qr/\[(?:warn|error|alert|crit|emerg)\]/, 'without a warning');
    like($text, qr/model "demo" is ready.*build\.sh: serving on /s,
         'the model is there when it says so');
}


# ---- another source tree: upstream's layout, in a copy of the clone ----

SKIP: {
    my $src = '/usr/share/nginx/src';

    # as large as what was built: where there is room for it

    make_path("$root/objs/tmp");

    my $dir = tempdir(DIR => "$root/objs/tmp", CLEANUP => 1);

    skip('the distribution\'s nginx source is not here', 8)
        unless -d "$src/src/core";

    make_path("$dir/nginx", "$dir/clone", "$dir/bin");

    # what is Debian's stays behind: its flags, its changes of the rules
    system('cp', '-rL', "$src/auto", "$src/src", "$src/configure",
           "$dir/nginx") == 0 or die 'cp';
    system("cd $root && tar cf - --exclude=./.git --exclude=./.deps"
           . join('', map { " --exclude=./objs/$_" }
                  qw(run t tmp cuda fuzzing asan tsan models))
           . " . | tar xf - -C $dir/clone") == 0
        or die 'tar';

    my $tree = files("$dir/nginx");

    # /tmp may be small: a compiler that says where it puts things aside

    open my $cc, '>', "$dir/bin/cc" or die "cc: $!";
    print $cc "#!/bin/sh\n",
              "echo \"\$TMPDIR\" >> $dir/aside\n",
              "PATH=\${PATH#*:} exec cc \"\$@\"\n";
    close $cc or die "cc: $!";
    chmod 0755, "$dir/bin/cc";

    # it is about the module: CUDA is not compiled once more

    ($out, $status) = build_sh("$dir/clone", args => ['build'],
                               NGINX_SRC => "$dir/nginx",
                               CUDA_HOME => "$dir/none", TMPDIR => '',
                               PATH => "$dir/bin:$ENV{PATH}");

    is($status, 0, 'NGINX_SRC') or diag($out);
    like($out, qr{configuring with the nginx source in \Q$dir\E/nginx},
         'says which');
    like($out, qr{^build\.sh: compiling the module: (\d+) of \1 files$}m,
         'and how far it is');
    is_deeply(files("$dir/nginx"), $tree, 'and leaves it as it was');

    my %aside = map { $_ => 1 } `cat $dir/aside`;

    is(join('', keys %aside), "$dir/clone/objs/tmp\n",
       'the compiler\'s own files are the clone\'s, too');

    my $stamp = join '', map { "$_\n" } `cat $dir/clone/objs/nginx.stamp`;

    unlike($stamp, qr/--prefix=/, 'without the distribution\'s flags');

    # nginx's own build, whose flags reach the library, too

    system("cd $dir/nginx && env -u LLM_OBJS ./configure --with-compat"
           . " --add-dynamic-module=$dir/clone"
           . " --with-cc-opt=-DLLM_GIVEN_CPP > configure.log 2>&1") == 0
        or die 'configure';

    like(`make -n -C $dir/nginx -f objs/Makefile modules 2>&1`,
         qr{ -DLLM_GIVEN_CPP .* engine/base/base\.c$}m,
         'configure and make modules: the library, with configure\'s flags');

    ($out, $status) = build_sh("$dir/clone", args => ['clean']);

    ok($status == 0 && !-e "$dir/clone/objs" && -e "$dir/clone/build.sh",
       'clean');
}

done_testing();
