#!/usr/bin/perl

# README.md and docs/ as their reader meets them: configurations run as they
# stand (but for ports and places), commands answer as they are shown to, and
# tables list what the sources have, neither less nor more.  docs/directives.md
# has a test of its own (reference.t); links are for t/unit/docs.t.

use strict;
use warnings;

use LLM::JSON;
use LLM::Test qw(slurp);
use Test::More;

my %doc = map { $_ => slurp($_) }
          'README.md', map { s{^\Q$LLM::Test::ROOT/\E}{}r }
                       glob "$LLM::Test::ROOT/docs/*.md";
my $readme = $doc{'README.md'};
my %snippets;                       # by page and kind

for my $page (sort keys %doc) {
    while ($doc{$page} =~ /^```(\w*)\n(.*?)^```\n/msg) {
        push @{ $snippets{$page}{$1} }, $2;
    }
}

delete $snippets{'docs/directives.md'};

sub snippets {
    my ($kind) = @_;

    return map { my $page = $_;
                 map { [ $page, $_ ] } @{ $snippets{$page}{$kind} // [] } }
           sort keys %snippets;
}

is(join(' ', map { $_->[0] } snippets('nginx')),
   'README.md README.md docs/cluster.md docs/deploy.md docs/migrate.md'
   . ' docs/migrate.md docs/migrate.md docs/models.md docs/models.md'
   . ' docs/models.md'
   . ' docs/observability.md docs/observability.md'
   . ' docs/page.md', 'configurations');
is(join(' ', map { $_->[0] } snippets('python')),
   'README.md docs/structured-output.md', 'and Python');


# what a program says and its status

sub run {
    my (@command) = @_;

    my $pid = open(my $out, '-|') // die "fork: $!";

    if ($pid == 0) {
        open STDERR, '>&', \*STDOUT;
        exec @command or POSIX::_exit(127);
    }

    my $text = join '', <$out>;
    close $out;

    return ($text, $? >> 8);
}


# ---- configurations ----

# What a snippet leaves to the reader: the module, a place for nginx's files,
# a model where it names none.  Ports and files of the system become ours.

sub configuration {
    my ($text) = @_;

    my $temp = join '', map { "${_}_temp_path temp/$_;\n" }
               qw(client_body proxy fastcgi uwsgi scgi);
    my $user = $> == 0 ? 'user root;' : '';

    if ($text !~ /^http \{/m) {
        my $model = $text =~ /^llm_model/m
            ? '' : 'llm_model demo models/demo.gguf;';

        $text = "load_module modules/ngx_http_llm_module.so;\n"
              . "events {}\nhttp {\n$model\n$text\n}\n";
    }

    $text =~ s/^http \{/http {\n$temp/m;
    $text =~ s/listen 8080/listen 127.0.0.1:%%PORT%%/;
    $text =~ s/listen 443/listen 127.0.0.1:%%PORT%%/;
    $text =~ s{/etc/ssl/}{%%DIR%%/}g;
    $text =~ s{/etc/nginx/}{%%DIR%%/}g;
    $text =~ s{/var/log/nginx/}{%%DIR%%/logs/}g;

    return "$user\npid logs/nginx.pid;\ndaemon off;\n$text";
}


# the key that the command makes

my ($make) = $doc{'docs/deploy.md'}
           =~ m{^\$ nginx-llm (key .*) >> /etc/nginx/llm-keys$}m;
my ($told) = run('sh', '-c', "$LLM::Test::OBJS/llm $make");
my ($secret) = $told =~ /^(sk-llm-\S+)$/m;
my ($ann) = $told =~ /^(\{.*\}\n)/m;


sub server {
    my ($text) = @_;

    my $t = LLM::Test->new(conf => configuration($text));
    my $dir = $t->dir;

    # as "./build.sh run" has it: modules are looked for below the prefix
    symlink $LLM::Test::OBJS, "$dir/modules" or die "modules: $!";
    symlink "$LLM::Test::ROOT/models", "$dir/models" or die "models: $!";

    $t->write_file('llm-keys', $ann);
    $t->write_file('llm_page.conf', slurp('conf/llm_page.conf'));

    return $t;
}


my ($whole) = @{ $snippets{'README.md'}{nginx} };
my ($tls) = @{ $snippets{'docs/deploy.md'}{nginx} };

for (snippets('nginx')) {
    my ($page, $snippet) = @$_;
    my $t = server($snippet);
    my ($name) = $snippet =~ /^(\w+)/;

    certificate($t) if $snippet =~ /ssl_certificate/;
    $t->write_file('llm_errors.conf', slurp('conf/llm_errors.conf'));

    my ($status, $out) = $t->check;

    is($status, 0, "$page: the configuration that begins with $name")
        or diag($out);
}


sub certificate {
    my ($t) = @_;

    my $dir = $t->dir;

    run('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days',
        2, '-batch', '-subj', '/CN=localhost', '-keyout', "$dir/llm.key",
        '-out', "$dir/llm.crt");
}


# ---- the first session: "$ command", and what it prints ----

my $t = server("$whole")->start;
my $port = $t->port;

sub shape {
    my ($v) = @_;

    return { map { $_ => shape($v->{$_}) } keys %$v } if ref $v eq 'HASH';
    return [ map { shape($_) } @$v ] if ref $v eq 'ARRAY';
    return LLM::JSON::is_bool($v) ? 'a boolean' : 'null'
        if ref $v || !defined $v;
    return $v =~ /^-?[\d.]+$/ ? 'a number' : 'a string';
}


my ($session) = grep { /^\$ curl/m } @{ $snippets{'README.md'}{''} };
my @steps = split /^\$ /m, $session;
shift @steps;

is(scalar @steps, 2, 'commands of the session');

for my $step (@steps) {

    # a command goes on behind a backslash and inside of quotes

    my ($command, $want) = ('', '');

    for my $line (split /(?<=\n)/, $step) {
        if ($command eq '' || $command =~ /\\\n\z/
            || ($command =~ tr/'//) % 2)
        {
            $command .= $line;
        } else {
            $want .= $line;
        }
    }

    $command =~ s/127\.0\.0\.1:8080/127.0.0.1:$port/
        or fail("its address: $command");

    my ($out, $status) = run('sh', '-c', $command);
    my ($got, $shown) = map { eval { decode_json($_) } } $out, $want;

    is($status, 0, "$command");
    is_deeply(shape($got), shape($shown), 'an answer as it is shown')
        or diag($out);

    if ($shown->{choices}) {
        is_deeply($got->{choices}, $shown->{choices}, 'word for word');

        $shown->{usage}{prompt_tokens_details}
            = $got->{usage}{prompt_tokens_details};
        is_deeply($got->{usage}, $shown->{usage}, 'with these figures');
    }
}

# the line that "./build.sh run" prints

{
    my ($line) = slurp('build.sh') =~ /^(curl -N .*)$/m;
    $line =~ s/\$port/$port/;

    my ($out, $status) = run('sh', '-c', $line);

    is($status, 0, $line);
    is(join('', $out =~ /"delta":\{"content":"([^"]*)/g), '2 + 2 = 4.',
       'streams the answer') or diag($out);
    like($out, qr/^data: \[DONE\]$/m, 'to its end');
}

SKIP: {
    my $python = "$LLM::Test::ROOT/.deps/venv/bin/python";

    my %prints = ('README.md' => qr/2 \+ 2 = 4/,
                  'docs/structured-output.md' => qr/^\{"name": ?"Ann", ?"age": ?30\}$/);

    skip('no Python client, "./build.sh test" installs it', 4)
        unless -x $python;

    for (snippets('python')) {
        my ($page, $code) = @$_;

        $t->write_file('readme.py', $code =~ s/:8080/:$port/r);

        my ($out, $status) = run($python, $t->dir . '/readme.py');

        is($status, 0, "$page: the Python client") or diag($out);
        like($out, $prints{$page}, "$page: it prints the answer");
    }
}

# what is said of the log, and of long prompts

ok($t->wait_log(qr/\[notice\].*model "demo" is ready: .*, context \d+, \d+ sequences/),
   'the log says when a model is ready') or diag($t->log);

$t->post('/v1/completions', { prompt => 'word ' x 100000, max_tokens => 1 });
unlike($t->log, qr/temporary file/, 'a long prompt logs nothing');

# endpoints

# those of the table; of a row's methods the first is shown

my %endpoints = map {
    my ($path, $method) = /"(.*?)",\s+"(\w+)/;
    $path .= 'ID' if $path =~ m{/$};
    "$method $path" => 0;
} slurp('engine/api/endpoints.c') =~ /\{ ("[^"]+",\s+"[^"]+)/g;

is(scalar keys %endpoints, 44, 'endpoints of the table');

# what has other bodies than those that generate text, and the answer where the
# demo model cannot

my %bodies = (responses => [ { input => 'a', max_output_tokens => 1 } ],
              'responses/input_tokens' => [ { input => 'a' } ],
              'responses/compact' => [ { input => 'a' },
                                       'unsupported_endpoint' ],
              embeddings => [ { input => 'a' } ],
              embedding => [ { content => 'a' } ],
              embed => [ { inputs => 'a' } ],
              tokenize => [ { content => 'a' } ],
              detokenize => [ { tokens => [ 5 ] } ],
              infill => [ { input_prefix => 'a', input_suffix => 'b' },
                          'unsupported_model' ],
              score => [ { text_1 => 'a', text_2 => 'a' },
                         'unsupported_model' ]);

$bodies{"api/$_"} = [ {}, 'unsupported_endpoint' ]
    for qw(create copy pull push delete blobs/demo);
$bodies{$_} = [ { query => 'a', documents => [ 'a' ] }, 'unsupported_model' ]
    for qw(rerank reranking v2/rerank);
$bodies{"audio/$_"} = [ join("\r\n",
        '--x', 'Content-Disposition: form-data; name="file"; filename="a.wav"',
        '', 'RIFF', '--x--', ''), 'unsupported_model',
        'multipart/form-data; boundary=x' ]
    for qw(transcriptions translations);

for my $row (rows('api', 'Endpoints', qr/endpoint/)) {
    for my $endpoint ($row->[0] =~ /`(\w+ [^`]+)`/g) {
        my ($method, $path) = split ' ', $endpoint;
        my $known = exists $endpoints{$endpoint};

        ok($known, "$endpoint is one that this test knows") or next;
        $endpoints{$endpoint} = 1;
        $path =~ s/ID/demo/;

        my ($body, $refused, $type) = @{ $bodies{$path} // [] };

        $body //= { prompt => 'a', max_tokens => 1,
                    messages => [ { role => 'user', content => 'Hi' } ] };

        my $res = $t->request(method => $method, path => "/v1/$path",
                              $method eq 'POST' ? (body => $body) : (),
                              $type ? (headers => { 'Content-Type' => $type })
                                    : ());

        is($res->{status}, $refused ? 400 : 200, "$endpoint answers");
        is($res->{headers}{'x-llm-error'}, $refused, "$endpoint says why")
            if $refused;
    }
}

is_deeply([ grep { !$endpoints{$_} } sort keys %endpoints ], [],
          'all endpoints stand there');

$t->stop(name => 'the first configuration');


# ---- TLS, keys, limits ----

SKIP: {
    $t = server($tls);
    $t->write_file('llm_errors.conf', slurp('conf/llm_errors.conf'));
    certificate($t);
    skip('no certificate from openssl', 6) unless -e $t->dir . '/llm.crt';

    $t->start(cold => 1);

    my @curl = ('curl', '-sk', '-w', "\n%{http_code}", '--max-time', 60,
                '-H', 'Content-Type: application/json');
    my $url = 'https://127.0.0.1:' . $t->port . '/v1';
    my @key = ('-H', "Authorization: Bearer $secret");
    my @ask = ('-d', '{"prompt": "a", "max_tokens": 1}',
               "$url/completions");

    my ($out) = run(@curl, @ask);
    like($out, qr/invalid_api_key.*\n401\z/s, 'no key: a JSON error');

    my $ready = LLM::Test::wait_for(60, sub {
        ($out) = run(@curl, @key, @ask);
        return $out !~ /\n503\z/;
    });

    ok($ready, 'the model is loaded');
    like($out, qr/text_completion.*\n200\z/s, 'with it: an answer');

    # thirty may come at once, and one in each two seconds

    for (1 .. 200) {
        ($out) = run(@curl, @key, @ask);
        last if $out =~ /\n429\z/;
    }

    like($out, qr/rate_limit_exceeded.*\n429\z/s, 'too many: a JSON error');

    $t->stop(name => 'the configuration with TLS');
}


# ---- tables ----

# rows of the tables in a page's section whose head matches: [ cells ]

sub rows {
    my ($page, $section, $head) = @_;

    my ($text) = $doc{"docs/$page.md"}
        =~ /^#+ \Q$section\E\n(.*?)(?=^#|\z)/ms;
    my @rows;

    while ($text =~ /^(\|.*\n)\|[-| ]+\n((?:\|.*\n)+)/mg) {
        my ($names, $body) = ($1, $2);
        next unless $names =~ $head;

        for (split /\n/, $body) {
            my @cells = split /(?<!\\)\|/;
            push @rows, [ map { s/^\s+|\s+$//gr } @cells[1 .. $#cells] ];
        }
    }

    ok(@rows > 0, "$page: a table of $section");

    return @rows;
}


sub same {
    my ($name, $got, $want) = @_;

    is(join("\n", sort @$got), join("\n", sort @$want), $name);
}


# bounds of requests

my %limits = map { $_->[0] => $_->[1] }
             rows('api', 'Limits of a request', qr/at most/);
my ($llm, $internal, $flat)
    = map { slurp($_) } qw(engine/llm.h engine/api/api_internal.h
                           engine/base/flat.h);

sub bound {
    my ($text, $name) = @_;

    return ($text =~ /^#define \Q$name\E\s+(\d+)/m)[0] // "no $name";
}

sub told {
    my ($what, $want) = @_;
    my ($row) = grep { /\Q$what\E/ } keys %limits;

    is($limits{$row // ''}, $want, "the bound of $what");
}

told('choices', bound($llm, 'LLM_MAX_CHOICES'));
told('inputs', bound($llm, 'LLM_MAX_INPUTS'));
told('`stop`', bound($llm, 'LLM_MAX_STOPS') . ' strings of '
     . bound($internal, 'LLM_API_MAX_STOP_LEN') . ' bytes');
told('`stop_token_ids`', bound($internal, 'LLM_API_MAX_STOP_IDS'));
told('`bad_words`', bound($llm, 'LLM_MAX_BAD_WORDS') . ' strings of '
     . bound($internal, 'LLM_API_MAX_STOP_LEN') . ' bytes');
told('`dry_sequence_breakers`',
     join ' strings of ', map { bound(slurp('engine/base/sampling.h'), $_)
                                . ($_ =~ /LEN/ ? ' bytes' : '') }
                              qw(LLM_MAX_BREAKERS LLM_MAX_BREAKER_LEN));
told('`logit_bias`', bound($internal, 'LLM_API_MAX_BIAS')
     . ' tokens, -100 to 100 each');
told('nesting', bound($flat, 'LLM_FLAT_MAX_DEPTH') . ' deep');

my ($most, $workers) = $doc{'docs/api.md'}
    =~ /has\s+at\s+most\s+(\d+)\s+models\s+and\s+(\d+)\s+workers/;

is($most, bound($llm, 'LLM_MAX_MODELS'), 'the bound of models');
is($workers, bound($llm, 'LLM_MAX_WORKERS'), 'the bound of workers');

# what nginx says when something does not work, as it stands there

{
    my $conf = "events {}\nhttp { llm_model demo models/demo.gguf; }\n";
    my $load = "load_module modules/ngx_http_llm_module.so;\n";

    my $says = sub {
        my ($text, $what, %opt) = @_;

        my $t = server('');

        unlink $t->dir . '/modules' if $opt{unloadable};
        $t->write_file('nginx.conf', $text);

        my ($status, $out) = $t->check;
        my $want = join '.*', map { quotemeta } split /…/, $what;

        ok(index($doc{'docs/troubleshooting.md'}, "`$what`") >= 0,
           "$what: it is explained");
        ok($status != 0 && $out =~ /$want/, 'and what nginx says')
            or diag($out);
    };

    $says->($conf, 'unknown directive "llm_model"');
    $says->($load . $conf, 'dlopen() "…/ngx_http_llm_module.so" failed (…'
            . ' cannot open shared object file: No such file or directory)',
            unloadable => 1);
    $says->($load . $load . $conf,
            'module "ngx_http_llm_module" is already loaded');
}

# the version; what is said of the next one has no number yet

my ($version) = slurp('engine/base/version.h') =~ /LLM_VERSION  "(.*)"/;

is((slurp('CHANGELOG.md') =~ /^## (?!Next$)(\S+)/m)[0], $version,
   'the newest version in CHANGELOG.md');
is(($readme =~ /"version":"([^"]+)"/)[0], $version,
   'the version that /health is shown with');
is(($readme =~ /"status":"ok","version".*?"ctx":(\d+)/)[0],
   (slurp('conf/nginx.conf') =~ /\bctx=(\d+)/)[0],
   'and the context that "./build.sh run" has');

# what CONTRIBUTING.md sends its readers to

my %files = map { $_ => 1 }
    slurp('CONTRIBUTING.md') =~ m{(?<![\w/])((?:t|engine|http|kernels|conf|\.ci)/[\w./]*\w)}g;

cmp_ok(scalar keys %files, '>', 10, 'files that CONTRIBUTING.md names');
is(join(' ', grep { !-e "$LLM::Test::ROOT/$_" } sort keys %files), '',
   'all are there');

# parameters of the API: each endpoint's tables have the rows of its source, with
# their ranges and defaults

my %params;
my $sampling = slurp('engine/base/sampling.def');

while ($sampling =~ /^\s+LLM_(PARAM|ALIAS)\((\w+), (\w+), ([^,]+), ([^,]+), ([^)]+)\)/mg)
{
    $params{$2} = $1 eq 'PARAM'
        ? { type => $3, default => $4, range => [ $5, $6 ] }
        : { type => $4, range => [ $5, $6 ] };
}

# { name => [ type, where it goes, least, most ] } of a table

sub fields {
    my ($file, $table) = @_;
    my ($rows) = slurp("engine/api/$file.c")
        =~ /\b\Q$table\E\[\] = \{\n(.*?)^\};/ms;
    my %fields;

    while (($rows // '') =~ /\{\s"(\w+)",\s+LLM_FIELD_(\w+),\s+([^{}]*?),\s*
                             ([-\w]+),\s*([-\w]+)\s\}/gx)
    {
        $fields{$1} = [ $2, $3, $4, $5 ];
    }

    ok(%fields, "fields of $table");

    return \%fields;
}

# as the tables have it

sub range {
    my ($type, $least, $most) = @_;

    return 'boolean' if $type eq 'BOOL';
    return $type =~ /^(?:STRING|ARRAY|OBJECT)$/ ? lc $type : ''
        if $type !~ /^(?:INT|PARAM_\w+|NUMBER|ABOVE)$/;
    return "above $least, to $most" if $type =~ /ABOVE/;
    return "$least or more" if $most =~ /^(?:INT32_MAX|2147483647)$/;
    return "$least to $most";
}

my $shared = fields('fields', 'llm_api_shared_rows');
my $client = fields('fields', 'llm_api_client_rows');

$shared->{$_} = [ $params{$_}{type}, 'sampling', @{ $params{$_}{range} } ]
    for keys %params;

my %refused = map { my $row = $_; map { $_ => $row->[0] } $row->[1] =~ /`(\w+)`/g }
              rows('api', 'Parameters that are refused', qr/names/);
my %unheard = map { my $row = $_; map { $_ => $row->[1] } $row->[0] =~ /`(\w+)`/g }
              rows('api', 'Parameters without effect', qr/name/);

for my $case (
    [ $shared, 'all that generate text', map { [ $_, qr/^\| name \| range/ ] }
      'Length and number of answers', 'Sampling', 'Stream and format',
      'Cache and client' ],
    map { my $own = fields("endpoint_$_->[0]", "llm_api_$_->[1]_rows");

          [ $_->[0] =~ /^(?:embed|rerank|ollama_embed)/ ? { %$client, %$own }
                                                        : $own, "`$_->[2]`",
            [ $_->[2], qr/^\| name \| range/ ] ] }
        [ qw(chat chat chat/completions) ],
        [ qw(completions completion completions) ],
        [ qw(responses responses responses) ],
        [ qw(messages messages messages) ],
        [ qw(infill infill infill) ],
        [ qw(embeddings embedding embeddings) ],
        [ qw(rerank rerank rerank) ], [ qw(rerank score score) ],
        [ qw(rerank tei_rerank), 'rerank with texts' ],
        [ qw(completion native completion) ],
        [ qw(embedding native embedding) ], [ qw(embedding tei embed) ],
        [ qw(ollama ollama_chat api/chat) ],
        [ qw(ollama ollama_generate api/generate) ],
        [ qw(ollama_embed ol_embed api/embed) ],
        [ qw(ollama_show show api/show) ],
        [ qw(tokenize tokenize tokenize) ],
        [ qw(tokenize detokenize detokenize) ])
{
    my ($fields, $where, @tables) = @$case;
    my %told;

    for my $row (map { rows('api', @$_) } @tables) {
        my ($names, $range, $default, $meaning) = @$row;

        for my $name ($names =~ /`(\w+)`/g) {
            my $f = $fields->{$name} // $shared->{$name};

            $told{$name} = 1;
            ok($f, "$where: $name is one of its parameters") or next;

            # a row for several may have several, or none where it says more

            my $want = range($f->[0], @$f[2, 3]);

            ok(index($range, $want) >= 0, "$where: the range of $name")
                or diag("$range, not $want") if $fields->{$name} && $range ne '';
            is($default, $params{$name}{default} + 0,
               "$where: the default of $name")
                if $fields->{$name} && defined $params{$name}{default};
        }

        # a chat to be tokenized has the parameters of chats

        $told{$_} = 1 for grep { $where eq '`tokenize`' && $fields->{$_} }
                          $meaning =~ /`(\w+)`/g;
    }

    for my $name (sort keys %$fields) {
        my ($type, $to) = @{ $fields->{$name} };

        if ($type eq 'REFUSED') {
            ok($refused{$name}, "$where: $name is told to be refused");
        } elsif ($to eq 'LLM_FIELD_NOWHERE') {
            ok(defined $unheard{$name} || $told{$name}
               || $name =~ /^(?:messages|stop|top_logprobs)$/,
               "$where: $name is told to be without effect");
        } else {
            ok($told{$name}, "$where: $name is there");
        }
    }
}

# clients and what is pinned of them

my %pinned = map { slurp("t/sdk/clients/$_.txt") =~ /^([\w.-]+)==(\S+)/mg }
                 qw(aider openai2 openai3);

for my $row (rows('clients', 'Clients that are tested', qr/package/)) {
    my @packages = $row->[0] =~ /`([^`]+)`/g;

    is($row->[1], join(', ', map { $pinned{$_} // 'none' } @packages),
       "versions of @packages");
}

# commands

my ($help) = run("$LLM::Test::OBJS/llm", '--help');

same('commands of objs/llm',
     [ map { $_->[0] =~ /^`llm (\w+)/ } rows('cli', 'Commands of llm', qr/command/) ],
     [ $help =~ /^  llm (\w+)/mg ]);

my ($usage) = slurp('build.sh') =~ /^usage: .*?\n\n(.*?)\n\n/ms;
my $commands = join "\n", map { $_->[0] } rows('cli', 'build.sh', qr/command/);
my %said = map { $_ => 1 } $commands =~ /\.\/build\.sh (\w+)/g;

same('commands of build.sh', [ keys %said ], [ $usage =~ /^  (\w+)/mg ]);
same('benches of build.sh',
     [ map { split /\\?\|/ } $commands =~ /bench \[([\w|\\]+)\]`/ ],
     [ slurp('t/bench/bench.sh') =~ /^  (\w+)  +\S/mg ]);

done_testing();
