#!/usr/bin/perl

# What a container of contrib/docker runs, without a container: start.sh and
# health.sh with this machine's nginx and places; that the Dockerfiles and the
# sample for Kubernetes name what is there.

use strict;
use warnings;

use File::Temp qw(tempdir);
use LLM::Client;
use LLM::Test qw(slurp);
use Test::More;

plan skip_all => 'a server that start.sh starts has no sanitizer'
    if $ENV{LLM_SAN};

my $root = $LLM::Test::ROOT;
my $dir = tempdir('llm-box-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $port = LLM::Test::free_port();


# ---- the files of an image, with this machine's places ----

mkdir "$dir/$_" or die $! for qw(image models tmp);

for my $name (qw(start.sh health.sh nginx.conf)) {
    my $text = slurp("contrib/docker/$name");

    $text =~ s{/tmp/nginx}{$dir/tmp}g;
    $text =~ s{modules/(?=ngx_http_llm_module\.so)}{$LLM::Test::OBJS/};
    $text =~ s{/etc/nginx/(?=llm_errors\.conf)}{$root/conf/};
    $text =~ s{/etc/nginx/(?=llm_page\.conf)}{$dir/}g;
    $text =~ s{listen  8080}{listen  127.0.0.1:$port};
    $text =~ s{/dev/stdout}{$dir/access.log};
    $text = "user root;\n$text" if $name eq 'nginx.conf' && $> == 0;

    open my $f, '>', "$dir/image/$name" or die "$name: $!";
    print $f $text;
    close $f or die "$name: $!";
    chmod 0755, "$dir/image/$name" if $name =~ /\.sh$/;
}

# the page's files are below nginx's prefix, of which this machine has none
put('llm_page.conf', slurp('conf/llm_page.conf')
                     =~ s{alias  llm_page/}{alias  $root/web/}r);

my %ours = (MODELS => "$dir/models", DEMO => "$root/models/demo.gguf",
            PORT => $port);

delete @ENV{qw(LLM_MODEL LLM_NAME LLM_OPTIONS LLM_KEYS)};


# what start.sh says to "nginx -t", and its status

sub check {
    my (%env) = @_;

    local @ENV{keys %ours, keys %env} = (values %ours, values %env);

    my $out = `$dir/image/start.sh -t 2>&1`;

    return ($out, $? >> 8);
}


sub put {
    my ($name, $text) = @_;

    open my $f, '>', "$dir/$name" or die "$name: $!";
    print $f $text;
    close $f or die "$name: $!";
}


sub healthy {
    local @ENV{keys %ours} = values %ours;

    return system("$dir/image/health.sh 2> /dev/null") == 0 ? 1 : 0;
}


sub file {
    my ($name) = @_;

    open my $f, '<', "$dir/tmp/$name" or die "$name: $!";
    local $/;

    return scalar <$f>;
}


# ---- the environment ----

my ($out, $status) = check();

is($status, 0, 'without a model') or diag($out);
like($out, qr/^start\.sh: no model in \S+: serving the demo model$/m,
     'the demo model is served, which is said');
is(file('model.conf'),
   "llm_model \"demo\" \"$root/models/demo.gguf\" default ;\n", 'by its name');

symlink "$root/models/demo.gguf", "$dir/models/a b.gguf" or die $!;
($out, $status) = check(LLM_OPTIONS => 'ctx=512 parallel=2');

is($status, 0, 'a model whose name has a space') or diag($out);
is(file('model.conf'), "llm_model \"a b\" \"$dir/models/a b.gguf\" default"
   . " ctx=512 parallel=2;\n", 'is the one that is served, with its options');

symlink "$root/models/demo.gguf", "$dir/models/c.gguf" or die $!;
($out, $status) = check();

is($status, 1, 'two models');
like($out, qr/has 2 models: set LLM_MODEL to one of them/, 'say what to do');

($out, $status) = check(LLM_MODEL => "$dir/models/c.gguf", LLM_NAME => 'chat');

is($status, 0, 'LLM_MODEL') or diag($out);
like(file('model.conf'), qr/^llm_model "chat" "\S+c\.gguf" /, 'and LLM_NAME');

for my $case ([ LLM_MODEL => "$dir/none.gguf", qr/there is no file \S+none\.gguf/ ],
              [ LLM_NAME => 'a"b', qr/no quote and no backslash in: a"b/ ],
              [ LLM_OPTIONS => 'ctx=much', qr/invalid .*ctx=much/ ])
{
    my ($name, $value, $want) = @$case;

    ($out, $status) = check(LLM_MODEL => "$dir/models/c.gguf", $name => $value);

    isnt($status, 0, "$name=$value");
    like($out, $want, 'says why');
}


# ---- what it serves ----

my $made = `$LLM::Test::OBJS/llm key --id ann 2>&1`;
my ($secret) = $made =~ /^(sk-llm-\S+)$/m;
my ($line) = $made =~ /^(\{.*\}\n)/m;

put('keys', $line);

is(healthy(), 0, 'health.sh: not healthy before there is a server');

my $pid = fork // die "fork: $!";

if ($pid == 0) {
    @ENV{keys %ours} = values %ours;
    @ENV{qw(LLM_MODEL LLM_NAME LLM_KEYS)}
        = ("$dir/models/c.gguf", 'chat', "$dir/keys");
    open STDERR, '>', "$dir/error.log" or die $!;
    open STDIN, '<', '/dev/null' or die $!;
    exec "$dir/image/start.sh" or POSIX::_exit(127);
}

ok(LLM::Test::wait_for(20, \&healthy), 'health.sh: healthy once it serves')
    or diag(`cat $dir/error.log`);

sub request {
    my ($path, %o) = @_;

    return LLM::Client->open(port => $port, path => $path,
                             method => $o{body} ? 'POST' : 'GET',
                             %o)->response;
}

my %key = (headers => { Authorization => "Bearer $secret" });

for my $case ([ '/v1/completions', { prompt => 'a', max_tokens => 1 } ],
              [ '/v1/messages', { messages => [ { role => 'user',
                                                  content => 'a' } ],
                                  max_tokens => 1 } ],
              [ '/api/chat', { messages => [ { role => 'user',
                                               content => 'a' } ],
                               options => { num_predict => 1 } } ],
              [ '/api/tags' ],
              [ '/completion', { prompt => 'a', n_predict => 1 } ],
              [ '/tokenize', { content => 'a' } ], [ '/props' ],
              [ '/embed', { inputs => 'a' } ])
{
    my ($path, $body) = @$case;
    my %ask = $body ? (body => $body) : ();

    is(request($path, %ask)->{status}, 401, "LLM_KEYS: $path without a key");
    is(request($path, %ask, %key)->{status}, 200, 'and with one');
}

my $page = request('/');

is($page->{status}, 200, 'the page needs no key');
like($page->{body}, qr{"llm_page/chat\.js"}, 'and is at /');
is(request('/llm_page/chat.js')->{body}, slurp('web/chat.js'),
   'with its files');


# ---- Kubernetes ----

my $yaml = slurp('contrib/kubernetes/nginx-llm.yaml');
my %probe = $yaml =~ /^\s+(\w+)Probe:\n\s+httpGet:\n\s+path: (\S+)/mg;

is(join(' ', sort keys %probe), 'liveness readiness startup', 'all probes');
is(request($_)->{status}, 200, "$_ answers")
    for sort values %probe, $yaml =~ m{prometheus\.io/path: (\S+)};

my $metrics = request('/metrics')->{body};

for my $name ($yaml =~ /__name__="([^"]+)"/) {
    like($metrics, qr/^\Q$name\E\{/m, "the autoscaler's metric: $name");
}

my %known = map { $_ => 1 } slurp('contrib/docker/start.sh') =~ /^#   (LLM_\w+)/mg;

is(scalar keys %known, 4, 'variables of start.sh');
is(join(' ', grep { !$known{$_} } $yaml =~ /- name: (LLM_\w+)/g), '',
   'those of the deployment are known');
is(join(' ', grep { index(slurp('docs/deploy.md'), "| `$_` |") < 0 }
             sort keys %known), '', 'and docs/deploy.md has them');

kill 'QUIT', $pid;
waitpid $pid, 0;
is($?, 0, 'QUIT ends it');

SKIP: {
    my $python = "$root/.deps/venv/bin/python";

    $python = 'python3' unless -x $python;
    skip('no Python with yaml', 1)
        if system("$python -c 'import yaml' 2> /dev/null") != 0;

    is(`$python -c 'import sys, yaml
print(*(d["kind"] for d in yaml.safe_load_all(open(sys.argv[1]))))' \\
        $root/contrib/kubernetes/nginx-llm.yaml`,
       "PersistentVolumeClaim Deployment Service HorizontalPodAutoscaler\n",
       'YAML, with these objects');
}


# ---- the Dockerfiles ----

for my $name (qw(Dockerfile Dockerfile.cuda)) {
    my $text = slurp("contrib/docker/$name") =~ s/\\\n//gr;
    my ($last) = $text =~ /^FROM (?!.*^FROM )(.*)/ms;
    my @lost = grep { !-e "$root/$_" } map { /^COPY (?!--from)(.*) \S+$/m
                                             ? split ' ', $1 : () } $last;

    is("@lost", '', "$name: what it copies is there");
    like($last, qr/^USER [1-9]\d*:[1-9]\d*$/m, "$name: not as root");
    like($last, qr/^VOLUME \/models$/m, "$name: models are a volume");
    like($last, qr/^STOPSIGNAL SIGQUIT$/m, "$name: streams may end");
    like($last, qr{^HEALTHCHECK .*CMD \["/etc/nginx-llm/health\.sh"\]$}m,
         "$name: health check");
    ok(-e "$root/contrib/docker/$name.dockerignore",
       "$name: what is not sent to be built");
}

done_testing();
