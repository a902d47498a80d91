#!/usr/bin/perl

# The Debian packages of "./build.sh deb": what they say of themselves, what is
# in them, and their man pages.  With LLM_SYSTEM=DIR, a debootstrap of the Debian
# that runs this, they are also installed, upgraded, removed and purged, in a
# copy of it (run.sh does that for several).

use strict;
use warnings;

use File::Temp qw(tempdir);
use LLM::Test qw(slurp);
use Test::More;

plan skip_all => 'the build of "./build.sh build" is what this is about'
    if $ENV{LLM_SAN} || $LLM::Test::OBJS ne "$LLM::Test::ROOT/objs";
plan skip_all => 'nothing is built yet, and nothing may be installed here'
    unless -e "$LLM::Test::OBJS/ngx_http_llm_module.so";
plan skip_all => "no $_, of Debian's packages"
    for grep { system("command -v $_ > /dev/null") != 0 }
        qw(dh dpkg-buildpackage dpkg-deb man);

my $root = $LLM::Test::ROOT;
my $dir = tempdir('llm-deb-XXXXXX', TMPDIR => 1, CLEANUP => 1);

delete @ENV{qw(CC CPPFLAGS CFLAGS CXXFLAGS LDFLAGS SAN LLM_TEST NGINX_SRC
               DEB_BUILD_OPTIONS DEBEMAIL DEBFULLNAME SOURCE_DATE_EPOCH)};
$ENV{LLM_NO_INSTALL} = 1;

# of the time of a package half is its compression, by default
$ENV{DPKG_DEB_COMPRESSOR_LEVEL} = 1;


# makes the packages in a folder; returns the output

sub make {
    my ($to, %env) = @_;

    local @ENV{keys %env} = values %env;
    local $ENV{DEB_DIR} = $to;

    my $out = `$root/build.sh deb 2>&1 < /dev/null`;

    is($?, 0, "packages in $to") or BAIL_OUT($out);

    return $out;
}


sub deb {
    my ($to, $package) = @_;
    my @debs = glob "$to/${package}_*.deb";

    is(scalar @debs, 1, "one $package") or die "@debs";

    return $debs[0];
}


sub field {
    my ($deb, $name) = @_;

    chomp(my $text = `dpkg-deb -f $deb $name`);

    return $text;
}


# name => [ mode, owner, where a link leads to ]

sub contents {
    my ($deb) = @_;

    return map { m{^(\S+) (\S+) .{6,}? \d\d:\d\d \.(/.*?)(?: -> (.*))?$}
                 && $3 !~ m{/$} ? ($3 => [ $1, $2, $4 ]) : () }
           split /\n/, `dpkg-deb -c $deb`;
}


my $said = make("$dir/a");
my %deb = map { $_ => deb("$dir/a", $_) } qw(nginx-llm libnginx-mod-http-llm);
my $module = $deb{'libnginx-mod-http-llm'};
my @debs = glob "$dir/a/*.deb";

is(scalar @debs, 2, 'two packages') or diag("@debs");
like($said, qr{to install them: sudo apt install( $dir/a/\S+\.deb){2}$}m,
     'how to install them');


# ---- what they say ----

my ($version) = slurp('engine/base/version.h') =~ /LLM_VERSION  "(.*)"/;
my $abi = join '', `cat /usr/share/nginx/src/debian/libnginx-mod.abisubstvars`;
my ($needs) = $abi =~ /^nginx:abi=(\S+)/m;

for my $deb (values %deb) {
    like(field($deb, 'Version'), qr/^\Q$version\E(?:\+(?:git\d{12}\.\w+|next))?-1~/,
         'the version');
    is(field($deb, 'Architecture') =~ /^(?:all|any)$/ ? 0 : 1, 1,
       'for this machine');
    like(field($deb, 'Maintainer'), qr/^the nginx-llm authors <\S+@\S+>$/,
         'whose it is');
}

like(field($module, 'Depends'), qr/(?:^|, )\Q$needs\E(?:,|$)/,
     'the module depends on the ABI of the distribution\'s nginx');
like(field($module, 'Depends'), qr/nginx-llm \(= \Q@{[field($module, 'Version')]}\E\)/,
     'and on the command of the same version');
like(field($module, 'Depends'), qr/libc6 .*libcjson1|libcjson1.*libc6/,
     'and on the libraries that it is linked with');
like(field($deb{'nginx-llm'}, 'Recommends'), qr/libnginx-mod-http-llm/,
     'the command recommends the module');


# ---- what is in them ----

my %tool = contents($deb{'nginx-llm'});
my %mod = contents($module);

for my $of ([ 'nginx-llm', \%tool ], [ 'the module', \%mod ]) {
    my ($name, $files) = @$of;

    is(join(' ', grep { $files->{$_}[1] ne 'root/root' } sort keys %$files), '',
       "$name: all files are root's");
    is(join(' ', grep { $files->{$_}[0] !~ /^-rw.r--r--|^-rwxr-xr-x|^l/ }
                 sort keys %$files), '', "$name: all can be read");
    is(join(' ', grep { /objs|\.git|\/t\// } sort keys %$files), '',
       "$name: nothing of a build");
}

is($tool{'/usr/bin/nginx-llm'}[0], '-rwxr-xr-x', 'the command');
is($tool{'/usr/libexec/nginx-llm/llm-media'}[0], '-rwxr-xr-x',
   'and what decodes media');
is($tool{'/usr/libexec/nginx-llm/llm-media-ffmpeg'}[0], '-rwxr-xr-x',
   'and recordings');
unlike(field($deb{'nginx-llm'}, 'Depends'), qr/libav|ffmpeg/,
       'without FFmpeg, which');

SKIP: {
    skip 'FFmpeg is not installed', 1
        if `$root/objs/llm-media-ffmpeg --formats` !~ / yes/;

    like(field($deb{'nginx-llm'}, 'Suggests'), qr/libavformat\d/,
         'is suggested');
}

ok($tool{"/usr/share/$_"}, "nginx-llm: $_")
    for qw(nginx-llm/models/demo.gguf man/man1/nginx-llm.1.gz
           doc/nginx-llm/README.md doc/nginx-llm/changelog.gz
           doc/nginx-llm/changelog.Debian.gz doc/nginx-llm/copyright),
        map { "doc/nginx-llm/$_" } map { s{^\Q$root/\E}{}r }
            glob("$root/docs/*.md"), glob("$root/docs/internals/*.md");
ok($tool{"/usr/share/doc/nginx-llm/examples/$_"}, "nginx-llm: sample $_")
    for map { s{.*/}{}r } glob "$root/conf/*.conf";

ok($mod{$_}, "module: $_")
    for qw(/usr/lib/nginx/modules/ngx_http_llm_module.so
           /usr/share/nginx/modules-available/mod-http-llm.conf
           /usr/lib/systemd/system/nginx.service.d/nginx-llm.service.conf
           /usr/share/man/man5/ngx_http_llm.5.gz
           /etc/nginx/llm_errors.conf /etc/nginx/conf.d/llm.conf),
        map { "/usr/share/nginx/llm_page/" . s{.*/}{}r } glob "$root/web/*";

mkdir "$dir/$_" or die $! for qw(tool mod);
system("dpkg-deb -x $deb{'nginx-llm'} $dir/tool") == 0 or die 'dpkg-deb';
system("dpkg-deb -x $module $dir/mod && dpkg-deb -e $module $dir/mod/control")
    == 0 or die 'dpkg-deb';

sub file {
    my ($path) = @_;

    open my $f, '<', "$dir/$path" or die "$path: $!";
    local $/;

    return scalar <$f>;
}

is(file('mod/usr/share/nginx/modules-available/mod-http-llm.conf'),
   "load_module modules/ngx_http_llm_module.so;\n", 'what loads the module');
like(file('mod/control/postinst'),
     qr{mod-http-llm\.conf:50-mod-http-llm\.conf.*modules-enabled}s,
     'and is enabled as Debian\'s own modules are');
is(join(' ', sort split /\n/, file('mod/control/conffiles')),
   join(' ', sort grep { m{^/etc/} } keys %mod),
   'changes of files in /etc are kept');

my $sample = file('mod/etc/nginx/conf.d/llm.conf');

unlike($sample, qr/^[^#\n]/m, 'the sample is a comment, as it stands');
like(`$dir/tool/usr/bin/nginx-llm --version 2>&1`, qr/\Q$version\E/,
     'the command runs');
is(`readelf -S $dir/mod/usr/lib/nginx/modules/*.so` =~ /debug_info/ ? 1 : 0, 0,
   'the module is stripped');


# ---- what is said when the module is removed ----

# the script's words about a folder of nginx's configuration

sub removed {
    my ($etc) = @_;
    my $script = file('mod/control/postrm') =~ s{/etc/nginx}{$etc}gr
                 =~ s{/run/systemd/system}{$etc/none}r;

    open my $f, '>', "$dir/postrm" or die "postrm: $!";
    print $f $script;
    close $f or die "postrm: $!";

    my $out = `sh $dir/postrm remove 2>&1`;

    is($?, 0, 'postrm') or diag($out);

    return join ' ', map { s{^  \Q$etc\E/}{}r } grep { /^  / } split /\n/, $out;
}


sub put {
    my ($path, $text) = @_;

    open my $f, '>', $path or die "$path: $!";
    print $f $text;
    close $f or die "$path: $!";
}

{
    my $etc = "$dir/etc";

    system("cp -r $dir/mod/etc/nginx $etc") == 0 or die 'cp';

    is(removed($etc), '', 'removed as it was installed: nothing to say');

    my @sites = map { "$etc/sites-$_" } qw(available enabled);

    mkdir $_ or die "$_: $!" for @sites;
    put("$sites[0]/off", "location /v1 { llm_api; }\n");
    put("$etc/nginx.conf", "# llm_model a b;\nlog_format llm_log '\$llm_model';"
        . "\nupstream llm_hosts {\n}\n");

    is(removed($etc), '', 'nor about a site that is not enabled, and names');

    put("$etc/conf.d/page.conf", "server {\n    include llm_page.conf;\n}\n");
    put("$sites[0]/on", "location /v1 { llm_api; }\n");
    symlink '../sites-available/on', "$sites[1]/on" or die "on: $!";
    put("$etc/conf.d/llm.conf", $sample =~ s/^#(?=llm_model)//mr);

    is(removed($etc) =~ s/(\S+) (\S+) (\S+)/join ' ', sort $1, $2, $3/er,
       'conf.d/llm.conf conf.d/page.conf sites-enabled/on',
       'a sample in use, a site and what includes the page are named');
}


# the sample without its comment signs, with this machine's places

$sample =~ s/^(?=#llm_model)(.*)/$1 =~ s{^#}{}mgr/mse;
$sample =~ s/127\.0\.0\.1:8080/127.0.0.1:%%PORT%%/g;
$sample =~ s{/usr/share/nginx-llm}{$dir/tool/usr/share/nginx-llm};
$sample =~ s{include (llm_\w+\.conf)}{include $dir/mod/etc/nginx/$1}g;

my $temp = join '', map { "${_}_temp_path temp/$_;\n" }
           qw(client_body proxy fastcgi uwsgi scgi);
my $user = $> == 0 ? 'user root;' : '';
my $t = LLM::Test->new(conf => <<"END")->start;
load_module $dir/mod/usr/lib/nginx/modules/ngx_http_llm_module.so;
$user
daemon off;
pid logs/nginx.pid;
error_log logs/error.log notice;
events {}
http {
    access_log logs/access.log;
    $temp
    $sample
}
END

my $res = $t->post('/v1/chat/completions',
                   { temperature => 0,
                     messages => [ { role => 'user',
                                     content => 'What is 2 + 2?' } ] });

is($res->{json}{choices}[0]{message}{content}, '2 + 2 = 4.',
   'the sample without its comment signs answers') or diag($t->log);
is($t->get($_)->{status}, 200, "and so does $_")
    for qw(/health /metrics /v1/models /api/tags /props);
like($t->post('/api/generate', { prompt => 'a', stream => \0,
                                 options => { num_predict => 1 } })->{body},
     qr/"done":true/, 'and Ollama\'s API');
$t->stop;


# ---- man pages ----

for my $page ('tool/usr/share/man/man1/nginx-llm.1.gz',
              'mod/usr/share/man/man5/ngx_http_llm.5.gz')
{
    my ($name) = $page =~ m{([^/]+)\.gz$};

    # as lintian looks

    my $warnings = `LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings \\
        -E UTF-8 -l -Tutf8 -Z $dir/$page 2>&1 > /dev/null`;

    is($warnings, '', "$name: no warnings");

    my $text = `LC_ALL=C.UTF-8 MANWIDTH=80 man -l $dir/$page 2>&1 | col -b`;

    like($text, qr/^NAME\n +\S+ [-−–] \S.*^SYNOPSIS.*^SEE ALSO/ms, "$name: sections");
    unlike($text, qr/\]\(|`|\|---/, "$name: no Markdown is left")
        or diag($text =~ /^(.*(?:\]\(|`|\|---).*)$/mg);
    like(`lexgrog $dir/$page 2>&1`, qr/"(?:nginx-llm|ngx_http_llm) - /,
         "$name: for apropos");

    my %in = map { $_ => 1 } $text =~ /(?<!\S)(llm_[a-z_]+)/g;
    my @of = slurp('docs/directives.md') =~ /^### (llm_\w+)$/mg;

    if ($name =~ /5$/) {
        is(join(' ', grep { $text !~ /^   \Q$_\E$/m } @of), '',
           'ngx_http_llm.5: all directives');
    } else {
        my $help = `$LLM::Test::OBJS/llm --help 2>&1`;
        my @commands = $help =~ /^  llm (\S+)/mg;
        my @options = $help =~ /^  (--\S+)/mg;

        cmp_ok(scalar @options, '>', 20, 'options of the command');
        is(join(' ', grep { $text !~ /^ +nginx-llm \Q$_\E\b/m } @commands), '',
           'nginx-llm.1: all commands');
        is(join(' ', grep { $text !~ /^ +\Q$_\E\b/m } @options), '',
           'nginx-llm.1: all options');
    }
}


# ---- the same again ----

make("$dir/b");

for my $name (sort keys %deb) {
    my $again = deb("$dir/b", $name);

    is(system('cmp', '-s', $deb{$name}, $again), 0,
       "$name: the same sources make the same bytes");
}

SKIP: {
    skip('lintian is not installed', 1)
        if system('command -v lintian > /dev/null') != 0;

    my $as = $> == 0 ? '--allow-root' : '';

    # Debian 12's takes a drop-in for a service; newer ones do not know this tag,
    # and so it cannot be overridden.  An override of words that only some
    # compilers leave in a program is of no use with others.

    my @tags = grep { !/ package-supports-alternative-init-but-no-init\.d/
                      && !/ mismatched-override spelling-error-in-binary / }
               `cd $dir/a && lintian $as --fail-on none -I *.deb 2>&1`;

    is(join('', @tags), '', 'lintian has nothing to say');
}


# ---- installed, upgraded, removed, purged ----

SKIP: {
    my $system = $ENV{LLM_SYSTEM} // '';

    skip('LLM_SYSTEM=DIR names no debootstrap to install them in', 1)
        if $system eq '';
    skip('only root can install them', 1) if $> != 0;

    make("$dir/c", DEB_VERSION => field($module, 'Version') . '+b1');

    my $out = `$root/t/portable/chroot.sh $system $dir/a $dir/c 2>&1`;

    is($?, 0, "in a copy of $system") or diag($out);
    note($out);
}

done_testing();
