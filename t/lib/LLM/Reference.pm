package LLM::Reference;

# Parses docs/directives.md, and the directives and parameters in the sources,
# so that tests can compare them.
#
#   my %page = LLM::Reference::pages();     the pages, by directive
#
# A page is { lines, default, contexts, items, words, says, examples }: the
# lines of its syntax; the default, undef if there is none; the contexts; the
# parameters of all lines, each once ("zone=NAME:SIZE", "MODEL", "open"); the
# literal words of the syntax ("zone=", "open"); the text about each parameter
# (the text of the whole page under ""); the sample configurations.
#
#   my %command = LLM::Reference::commands();
#
# A row of a ngx_command_t table: { contexts, handler, field }.
#
#   my @words = LLM::Reference::words($handler);
#
# The words that the handler of a directive and the functions that it calls
# compare arguments with.

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


# the text of a chapter ("##")

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


# the parameters in a line of the syntax, without brackets and "|"

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

    # names of directives are not parameters

    return grep { !/^llm_/ } sort keys %words;
}


# the texts of a list, by the names (in backticks) that an item begins with

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


# Parses a configuration into statements: [ words, block ], the block undef or a
# list of statements.  written() makes text of a statement.

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


# replaces ports and paths by those of a test

sub ours {
    my ($text) = @_;

    return $text =~ s/listen 8080/listen 127.0.0.1:%%PORT%%/gr
                 =~ s{/var/log/nginx/}{%%DIR%%/logs/}gr
                 =~ s{/srv/models/[\w.-]+}{models/demo.gguf}gr;
}


# The words of a page's directive in its first example, and the text of the
# example's other statements at http level, with a model if there is none.

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


# A whole nginx.conf with the text $http at http level; a server is added if the
# text has none.  %opt has texts for main, server and location.

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


# a server with a configuration, and with the files that examples name

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

        # without the names of zones

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
                     \w+,\s*(?:0|offsetof\(\w+,\s*([\w.]+)\)),
                     (?:\s*&(\w+))?/gx)
    {
        my ($name, $bits, $handler, $field, $post) = ($1, $2, $3, $4, $5);

        # nginx's own handler of words, which are in a table

        $handler = $post if $handler eq 'ngx_conf_set_enum_slot';

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

        # without strings in messages and assignments, which are not compared

        $code =~ s/\b\w*_differs\([^()]*\)//gs;
        $code =~ s/\b\w*(?:log_error|_invalid|PARAM_ERROR|str_set|_differs)\(.*?\);//gs;
        $code =~ s/\breturn [^;]*?";//g;

        $words{$_} = 1 for $code =~ /"([a-z]\w*=?)"/g;

        if ($code =~ /\bllm_products_word\(/) {
            $words{$_} = 1 for slurp("engine/base/products.h")
                               =~ /^#define LLM_PRODUCTS_\w+ +"(\w+)"/mg;
        }

        push @todo, $code =~ /\b(ngx_http_llm_\w+)\(/g,
                    grep { $tables{$_} } $code =~ /\b(ngx_http_llm_\w+)\b/g;
    }

    # names of directives are not parameters

    return grep { !/^llm_/ } sort keys %words;
}

1;
