package LLM::Reference;

# docs/directives.md, taken apart, and what the sources say of the same things.
#
#   my %page = LLM::Reference::pages();     a directive's name to its page
#
# A page is { lines, default, contexts, items, words, says, examples }: the
# lines of its syntax; the default, undef if there is none; where it may stand;
# the parameters of all lines, each once ("zone=NAME:SIZE", "MODEL", "open");
# the words that are written as they stand ("zone=", "open"); what is said of a
# parameter (of the page as a whole under ""); configurations.
#
#   my %command = LLM::Reference::commands();
#
# A row of a ngx_command_t table: { contexts, handler, field }.
#
#   my @words = LLM::Reference::words($handler);
#
# The words that a directive's handler, and what it calls, compares with.

use strict;
use utf8;
use warnings;

use LLM::Test;


sub slurp {
    my ($name) = @_;

    open my $f, '<:utf8', "$LLM::Test::ROOT/$name" or die "$name: $!";
    local $/;

    return scalar <$f>;
}


# ---- the pages ----

sub text { return slurp('docs/directives.md') }


# the part of a chapter ("##"), and its sections ("###"): names and texts

sub chapter {
    my ($name) = @_;

    my ($part) = text() =~ /^## \Q$name\E\n(.*?)(?=^## |\z)/ms;

    return $part // die "no chapter $name in docs/directives.md\n";
}


sub pages {
    my @sections = split /^### (\S+)\n/m, chapter('Directives');
    my %page;

    shift @sections;

    while (my ($name, $text) = splice @sections, 0, 2) {
        die "two pages of $name in docs/directives.md\n" if $page{$name};
        $page{$name} = page($name, $text);
    }

    return %page;
}


sub page {
    my ($name, $text) = @_;

    my ($syntax, $default, $context) = $text
        =~ /\A\n```text\nSyntax:   (.*?;)\nDefault:  (\S[^\n]*)\nContext:  ([^\n]*)\n```\n/s
        or die "$name has no Syntax, Default and Context in docs/directives.md\n";

    my @lines = map { s/\s+/ /gr =~ s/^ //r } $syntax =~ /([^;]+;)/g;
    my (@items, %seen);

    for my $line (@lines) {
        my ($args) = $line =~ /^\Q$name\E(?: (.*))?;$/
            or die "not the syntax of $name: $line\n";

        push @items, grep { !$seen{$_}++ } items($args // '');
    }

    my %says = bullets($text);
    $says{''} = $text;

    return { lines => \@lines, items => \@items, says => \%says,
             default => $default eq '—' ? undef : $default,
             contexts => [ split /, /, $context ],
             words => [ words_of(@items) ],
             examples => [ $text =~ /^```nginx\n(.*?)^```\n/msg ] };
}


# brackets and alternatives of the syntax are gone

sub items {
    my ($args) = @_;

    return grep { $_ ne '|' && $_ ne '...' }
           map { my $i = $_;
                 $i =~ s/^\[//;
                 $i =~ s/\]$// if ($i =~ tr/]//) > ($i =~ tr/[//);
                 $i } split ' ', $args;
}


sub words_of {
    my %words;

    for my $item (@_) {
        my ($name, $value) = $item =~ /^(?:(\w+=))?(.*)$/;

        $words{$name} = 1 if $name;
        $words{$_} = 1 for grep { /^[a-z]\w*$/ }
                           map { s/\[.*//r } split /\|/, $value;
    }

    # a directive may name others, and itself

    return grep { !/^llm_/ } sort keys %words;
}


# what a list says of each thing that it is about

sub bullets {
    my ($text) = @_;
    my %says;

    while ($text =~ /^- ((?:`[^`]+`(?:, )?)+): (.*\n(?:  .*\n)*)/mg) {
        my ($names, $said) = ($1, $2);

        $said =~ s/\s+/ /g;

        for my $name ($names =~ /`([^`]+)`/g) {
            die "docs/directives.md says twice what $name is\n" if $says{$name};
            $says{$name} = $said;
        }
    }

    return %says;
}


sub variables { return bullets(chapter('Variables')) }


# A configuration as statements: [ words, block ], the block undef or again
# statements; text is what a statement looks like.

sub statements {
    my ($text) = @_;

    $text =~ s/^(?:[^'"\n#]|'[^'\n]*'|"[^"\n]*")*?\K#.*$//mg;

    my @tokens = $text =~ /("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'
                           |[{};]|[^\s{};"']+)/gx;

    return parse(\@tokens);
}


sub parse {
    my ($tokens) = @_;
    my (@all, @words);

    while (defined(my $t = shift @$tokens)) {
        return \@all if $t eq '}';

        if ($t eq ';') {
            push @all, [ [ @words ], undef ];
            @words = ();
        } elsif ($t eq '{') {
            push @all, [ [ @words ], parse($tokens) ];
            @words = ();
        } else {
            push @words, $t;
        }
    }

    return \@all;
}


sub written {
    my ($s) = @_;

    return join(' ', @{ $s->[0] })
           . ($s->[1] ? ' { ' . join(' ', map { written($_) } @{ $s->[1] })
                        . ' }' : ';');
}


# the first statement of this name, at any depth

sub find {
    my ($name, $all) = @_;

    for my $s (@$all) {
        return $s if ($s->[0][0] // '') eq $name;

        my $deeper = $s->[1] && find($name, $s->[1]);
        return $deeper if $deeper;
    }

    return;
}


# ports and places become ours

sub ours {
    my ($text) = @_;

    return $text =~ s/listen 8080/listen 127.0.0.1:%%PORT%%/gr
                 =~ s{/var/log/nginx/}{%%DIR%%/logs/}gr
                 =~ s{/srv/models/[\w.-]+}{models/demo.gguf}gr;
}


# A page's directive as its example has it, and what else of the example
# stands in http, with a model if there is none.

sub sample {
    my ($name, $page) = @_;

    my $all = statements(ours($page->{examples}[0]));
    my $own = find($name, $all) or die "no $name in its example\n";
    my @rest = map { written($_) }
               grep { $_->[0][0] !~ /^(?:server|location|\Q$name\E)$/ } @$all;

    push @rest, 'llm_model demo models/demo.gguf;'
        unless grep { /^llm_model/ } @rest;

    return ($own->[0], join "\n", @rest);
}


# The whole file: http has this text, a server is added where there is none;
# %opt has the texts of main, server and location.

sub configuration {
    my ($http, %opt) = @_;

    my $temp = join '', map { "${_}_temp_path temp/$_;\n" }
               qw(client_body proxy fastcgi uwsgi scgi);
    my $user = $> == 0 ? 'user root;' : '';
    my ($main, $server, $location)
        = map { $opt{$_} // '' } qw(main server location);

    $http .= "\nserver {\nlisten 8080;\n$server\nlocation / {\n$location\n}\n}"
        unless $http =~ /^server \{/m;

    $http = ours($http);

    return <<"END";
load_module %%OBJS%%/ngx_http_llm_module.so;
$user
daemon off;
pid logs/nginx.pid;
$main
events {}
http {
$temp
$http
}
END
}


# a server of such a configuration, with the files that examples name

sub server {
    my ($conf) = @_;

    my $t = LLM::Test->new(conf => $conf);
    my $dir = $t->dir;

    symlink "$LLM::Test::ROOT/models", "$dir/models" or die "models: $!";
    $t->write_file('llm-keys', "# none\n");
    $t->write_file('chat.jinja', '{{ messages[0].content }}');
    $t->write_file('warmup.jsonl', '{"prompt": "a", "tenant": "t"}' . "\n");

    return $t;
}


# ---- the sources ----

my (%functions, %tables, %rows);

my %context = (MAIN => 'http', SRV => 'server', LOC => 'location',
               SIF => 'if in server', LIF => 'if in location',
               LMT => 'limit_except', UPS => 'upstream');


sub read_sources {
    return if %rows;

    for my $file ('ngx_http_llm_module.c',
                  map { s{^\Q$LLM::Test::ROOT/\E}{}r }
                  glob "$LLM::Test::ROOT/http/*/*.c")
    {
        my $text = slurp($file) =~ s{/\*.*?\*/}{}gsr
                                =~ s{^#ifdef LLM_TEST\n.*?^#endif\n}{}gmsr;

        # the names of zones

        $text =~ s/^    ngx_str_t +name = ngx_string\("llm_\w+"\);$//gm;

        while ($text =~ /^(\w+)\((?:[^;{]*)\)\n\{\n(.*?)^\}/msg) {
            $functions{$1} = $2;
        }

        while ($text =~ /^static [^;(]*?\b(\w+)\[\] = \{(.*?)^\};/msg) {
            my ($name, $body) = ($1, $2);

            $tables{$name} = $body;
            read_commands($body) if $text =~ /\bngx_command_t\s+\Q$name\E\[/;
        }
    }
}


sub read_commands {
    my ($body) = @_;

    while ($body =~ /\{\s*ngx_string\("(\w+)"\),\s*([A-Z_0-9|]+),\s*(\w+),\s*
                     \w+,\s*(?:0|offsetof\(\w+,\s*([\w.]+)\)),/gx)
    {
        my ($name, $bits, $handler, $field) = ($1, $2, $3, $4);

        $rows{$name} = {
            handler => $handler, field => $field,
            contexts => [ map { $bits =~ /NGX_HTTP_${_}_CONF/
                                ? $context{$_} : () }
                          qw(MAIN SRV LOC SIF LIF LMT UPS) ],
        };
    }
}


sub commands { read_sources(); return %rows }


sub words {
    my ($handler) = @_;
    my (%seen, %words);
    my @todo = ($handler);

    read_sources();

    return qw(off on) if $handler eq 'ngx_conf_set_flag_slot';

    while (defined(my $name = shift @todo)) {
        next if $seen{$name}++;

        my ($code, $table) = ($functions{$name}, $tables{$name});

        if (defined $table) {
            $words{$_} = 1 for $table =~ /ngx_string\("([^"]*)"\)/g;
            push @todo, $table =~ /\b(ngx_http_llm_\w+)\b/g;
        }

        next unless defined $code;

        # what is said, and what is set, is compared with nothing

        $code =~ s/\b\w*_differs\([^()]*\)//gs;
        $code =~ s/\b\w*(?:log_error|_invalid|PARAM_ERROR|str_set|_differs)\(.*?\);//gs;
        $code =~ s/\breturn [^;]*?";//g;

        $words{$_} = 1 for $code =~ /"([a-z]\w*=?)"/g;
        push @todo, $code =~ /\b(ngx_http_llm_\w+)\(/g,
                    grep { $tables{$_} } $code =~ /\b(ngx_http_llm_\w+)\b/g;
    }

    # a directive may name others, and itself

    return grep { !/^llm_/ } sort keys %words;
}

1;
