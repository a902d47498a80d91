#!/usr/bin/perl

# The house's arrows go one way (engine/README.md, "Rooms"): a file includes
# headers of its own folder and of those below it, so there is no circle
# between folders; the kernels see of the engine its ground floor alone, and the
# engine of the kernels what backends have in common; no header of nginx or CUDA
# comes into engine/ nor JSON below engine/api; the glue sees engine/llm.h and
# engine/api/api.h alone.  Between the files of the engine and of the kernels
# there is no circle of calls either, but for the Jinja interpreter, whose files
# evaluate what the others hold.  The interpreter's names have a bound: it has
# what chat templates use and no more.  What a file of the product offers,
# another one uses.  An architecture's name stands in its own file.

use strict;
use warnings;

use File::Find qw(find);
use FindBin;
use Test::More;

my $root = $ENV{LLM_ROOT} || "$FindBin::Bin/../..";

# the rooms of the glue, from the ground up; above all ngx_http_llm_module.c,
# which lists what is in them

my @glue = map { "http/$_" } qw(reply conf worker request access balance observe
                                admin socket);
my %height = map { $glue[$_] => $_ } 0 .. $#glue;

# from the ground up; what stands in one line does not see one another

my @floors = (
    [ 'engine/base' ],
    [ 'kernels', 'engine/llm.h' ],
    [ 'kernels/cpu', 'kernels/cuda', 'kernels/team', 'engine/gguf',
      'engine/ipc', 'engine/grammar/regex' ],
    [ 'engine/file', 'engine/media' ],
    [ 'engine/text/vocab', 'engine/sample', 'engine/model', 'engine/api',
      'engine/media/decoder' ],
    [ 'engine/text/jinja', 'engine/emit', 'engine/grammar', 'engine/speech',
      'engine/media/ffmpeg' ],
    [ 'engine/text/chat', 'engine/sched', 'engine/grammar/schema' ],
    [ 'engine/prepare' ],
    [ 'engine/serve' ],
    [ 'engine/cli', '.', @glue ],
);

my %floor = map { my $n = $_; map { $_ => $n } @{ $floors[$n] } } 0 .. $#floors;

# what else a folder may name: the emulator stands in for CUDA's headers, the
# glue has its own headers and two of the engine's

my %more = (
    'kernels/cuda' => qr{^t/gpu/emu/emu\.h$},
    map { $_ => qr{^engine/(?:llm|api/api)\.h$} } @glue, '.'
);

my %only = map { $_ => 1 } @glue, '.';

# libraries and the folders they may come into

my @libraries = (
    [ qr{^ngx_},             @glue, '.' ],
    [ qr{^(?:cuda|cublas)},  'kernels/cuda' ],
    [ qr{^cjson/},           'engine/api' ],
    [ qr{^pcre2},            'engine/text/vocab' ],
    [ qr{^openssl/},         'engine/base' ],
    [ qr{^zlib\.h$},         'engine/speech', 'http/request' ],
    [ qr{^(?:png\.h|jpeglib|jerror|webp/|gif_lib|sndfile)},
                             'engine/media/decoder' ],
    [ qr{^libav},            'engine/media/ffmpeg' ],
);


sub room {
    my ($file) = @_;

    return $file if exists $floor{$file};

    my ($dir) = $file =~ m{^(.*)/[^/]+$};

    return $dir // '.';
}


# why the file must not include the header, or nothing

sub wrong {
    my ($file, $header, $quoted) = @_;
    my $from = room($file);

    if (!$quoted) {
        for my $library (@libraries) {
            my ($name, @rooms) = @$library;

            return "$header belongs to @rooms"
                if $header =~ $name && !grep { $_ eq $from } @rooms;
        }

        return;
    }

    return if $more{$from} && $header =~ $more{$from};

    my $to = room($header);

    return if $to eq $from && !$only{$from};
    return 'the kernels see the base alone'
        if $from =~ m{^kernels} && $to !~ m{^(?:kernels|engine/base$)};
    return "the engine sees no backend's own"
        if $from =~ m{^engine/} && $to =~ m{^kernels/};

    if ($only{$from} && exists $height{$to}) {
        return if $from eq '.' || $height{$to} <= $height{$from};
        return "$to is not below $from";
    }

    return 'the glue sees llm.h and api.h alone' if $only{$from};
    return "$to is on no floor" unless exists $floor{$to};
    return "$to is not below $from" unless $floor{$to} < $floor{$from};
    return;
}


# what an include of each kind is said to be, so that nothing passes for want
# of looking

is(wrong('engine/base/base.c', 'engine/llm.h', 1),
   'engine/llm.h is not below engine/base', 'an upward one is found');
is(wrong('engine/model/model.c', 'engine/sample/sampler.h', 1),
   'engine/sample is not below engine/model', 'one across is found');
is(wrong('http/conf/a.c', 'engine/sched/sched.h', 1),
   'the glue sees llm.h and api.h alone', "the glue's are");
is(wrong('http/conf/a.c', 'http/access/ngx_http_llm_keys.h', 1),
   'http/access is not below http/conf', 'and one between its rooms');
is(wrong('http/access/a.c', 'http/conf/ngx_http_llm_conf.h', 1), undef,
   'but for one that goes down');
is(wrong('engine/sched/run.c', 'cjson/cJSON.h', 0),
   'cjson/cJSON.h belongs to engine/api', 'JSON is');
is(wrong('kernels/cpu/cpu.c', 'engine/llm.h', 1),
   'the kernels see the base alone', "the kernels'");
is(wrong('engine/model/model.c', 'kernels/cpu/cpu.h', 1),
   "the engine sees no backend's own", 'and the way back');
is(wrong('engine/new/a.c', 'engine/gone/b.h', 1), 'engine/gone is on no floor',
   'a new folder is');

my (@files, @bad);

find({ no_chdir => 1, wanted => sub {
    push @files, substr $_, 1 + length $root if /\.(?:c|h|cu|cuh|def)$/;
} }, map { "$root/$_" } qw(engine kernels http));

push @files, 'ngx_http_llm_module.c';

for my $file (@files) {
    push @bad, "$file: its folder is on no floor"
        unless exists $floor{room($file)};

    open my $f, '<', "$root/$file" or die "$file: $!";

    while (<$f>) {
        next unless /^\s*#\s*include\s+([<"])([^>"]+)/;

        my $why = wrong($file, $2, $1 eq '"');

        push @bad, "$file:$.: includes $2: $why" if $why;
    }
}

# what a location serves is said by its record (ngx_http_llm_serves_t)

my @compared;

for my $file (grep { m{^(?:http/|ngx_)} } @files) {
    open my $f, '<', "$root/$file" or die "$file: $!";

    while (<$f>) {
        push @compared, "$file:$.: $1"
            if /handler\s*[!=]=\s*(ngx_http_llm_\w+_handler)\b/;
    }
}

is(join("\n", @compared), '', 'no handler is compared with another');

cmp_ok(scalar @files, '>', 200, 'files are looked at');
is(join("\n", @bad), '', 'no arrow goes up');


# the names of architectures; those of tokenizers and projectors are others,
# though they may be spelt alike, and so are those of the API

my %arch;
my @named;

for my $file (grep { m{^engine/model/arch_} } @files) {
    open my $f, '<', "$root/$file" or die "$file: $!";

    while (my $line = <$f>) {
        $arch{$1} = 1 if $line =~ /(?:^|{)\s*\.name = "([^"]+)"/;
    }
}

for my $file (grep {
    !m{^engine/(?:file/|model/(?:arch|tower)_|text/vocab/|api/|media/rule)}
} @files) {
    open my $f, '<', "$root/$file" or die "$file: $!";

    while (my $line = <$f>) {
        push @named, map { "$file:$.: \"$_\"" } grep { $arch{$_} }
                         $line =~ /"([^"\s]*)"/g;
        push @named, "$file:$.: $1"
            if $file !~ /archs\.def$/ && $line =~ /\b(llm_arch_[a-z0-9_]+)\b/
               && $1 !~ /_t$/;
    }
}

cmp_ok(scalar keys %arch, '>', 70, 'architectures are named');
is(join("\n", @named), '', 'in their own files alone');


# what templates may name: filters, tests, methods, functions, statements; each
# has a template among those that Jinja itself renders, too

my @features;

for my $table (qw(builtin parse)) {
    my $path = "$root/engine/text/jinja/$table.c";

    open my $f, '<', $path or die "$path: $!";
    push @features, map { /^    \{ "(\w+)", / ? $1 : () } <$f>;
}

my $rendered = do {
    my $path = "$root/t/lib/jinja_features.py";

    open my $f, '<', $path or die "$path: $!";
    local $/;
    <$f>;
};

cmp_ok(scalar @features, '<=', 140, 'names that the Jinja interpreter knows');
cmp_ok(scalar @features, '>', 100, 'which were counted');
is(join(' ', grep { $rendered !~ /\b$_\b/ } @features), '',
   'each is compared with Jinja');


# who calls whom, by the symbols of the library's objects

my $objs = $ENV{LLM_OBJS} || "$root/objs";
my $list = "$objs/obj/files";

SKIP: {
    skip "there is no build in $objs", 3 unless -e $list;
    skip 'there is no nm', 3 unless grep { -x "$_/nm" } split /:/, $ENV{PATH};

    open my $f, '<', $list or die "$list: $!";
    my @sources = grep { !m{^engine/text/jinja/} }
                  split ' ', do { local $/; <$f> };
    my (%defined, %wanted, %object);

    # the CUDA backend's own, as the emulator has them

    push @sources, map { substr $_, 1 + length $root }
                   grep { -e "$objs/emu/" . substr($_, 1 + length $root, -2)
                             . 'o' } glob "$root/kernels/cuda/*.cu";

    for my $source (@sources) {
        my $object = $source =~ /\.cu$/ ? "$objs/emu/$source"
                                        : "$objs/obj/$source";

        $object =~ s/\.\w+$/.o/;

        $object{$source} = $object;
    }

    my $symbols = symbols(values %object);

    for my $source (@sources) {
        for (@{ $symbols->{$object{$source}} }) {
            $defined{$1} = $source if / [TDBRC] (\w+)$/;
            $wanted{$source}{$1} = 1 if / U (\w+)$/;
        }
    }

    my %calls = map {
        my $source = $_;
        my %to = map { $_ => 1 } grep { defined && $_ ne $source }
                 map { $defined{$_} } keys %{ $wanted{$source} };
        $source => [ sort keys %to ];
    } @sources;

    cmp_ok(scalar(grep { @{ $calls{$_} } } @sources), '>', 50,
           'calls between files are found');
    is(join("\n", circles(\%calls)), '', 'no circle between files');
    is(join("\n", map {
            my $from = $_;
            map { "$from calls $_" }
                grep { m{^engine/(?!base/)} } @{ $calls{$from} };
        } grep { m{^kernels/} } @sources),
       '', 'the kernels call the base alone');
}

# the same of the glue, whose rooms are floors, too: by the symbols of nginx's
# objects, where the functions of a table of handlers are, too.  Every file may
# name the modules themselves, as their contexts and configurations are theirs.

SKIP: {
    my %source = map { m{([^/]+)\.c$}; $1 => substr $_, 1 + length $root }
                 glob "$root/http/*/*.c";
    my %object = map { m{([^/]+)\.o$}; $source{$1} ? ($source{$1} => $_) : () }
                 glob "$objs/nginx/addon/*/*.o";

    skip "there is no build of the module in $objs", 3 unless %object;
    skip 'there is no nm', 3 unless grep { -x "$_/nm" } split /:/, $ENV{PATH};

    my (%defined, %wanted, %calls, @up);

    my $symbols = symbols(values %object);

    for my $file (sort keys %object) {
        for (@{ $symbols->{$object{$file}} }) {
            $defined{$1} = $file if / [TDBRC] (\w+)$/;
            $wanted{$file}{$1} = 1 if / U (\w+)$/;
        }
    }

    for my $file (sort keys %object) {
        my %to;

        for my $name (sort grep { !/^ngx_(?:http_)?(?:llm_)(?:\w+_)?module$/ }
                           keys %{ $wanted{$file} })
        {
            my $other = $defined{$name} // next;

            $to{$other} = 1;
            push @up, "$file names $name of $other"
                if $height{room($other)} > $height{room($file)};
        }

        $calls{$file} = [ sort keys %to ];
    }

    cmp_ok(scalar(keys %object), '>=', scalar(keys %source), 'all of the glue');
    is(join("\n", @up), '', 'its rooms have arrows one way');

    is(join("\n", circles(\%calls)), '', 'and its files no circle');
}

# what is offered and nobody takes, by the objects of all that is built

SKIP: {
    my (@objects, %offered, %taken);

    # of a source that has gone the object may still lie there

    find({ no_chdir => 1, wanted => sub {
        push @objects, $_
            if m{\.o$} && (!m{^\Q$objs\E/obj/((?:engine|kernels)/.*)\.o$}
                          || -e "$root/$1.c");
    } },
         grep { -d } map { "$objs/$_" } qw(obj emu nginx/addon));

    for my $of (qw(obj/engine/cli obj/t/unit emu/kernels nginx/addon)) {
        skip "there is no build of $of", 3
            unless grep { index($_, "$objs/$of/") == 0 } @objects;
    }

    skip 'there is no nm', 3 unless grep { -x "$_/nm" } split /:/, $ENV{PATH};

    open my $nm, '-|', 'nm', '-A', @objects or die "nm: $!";

    while (<$nm>) {
        my ($object, $kind, $name) = /^(.*?):[0-9a-f ]+ ([TU]) (\w+)$/
            or next;

        $kind eq 'U' ? $taken{$name} = 1
            : $object =~ m{^\Q$objs/obj/\E(?:engine|kernels)/}
            ? $offered{$name} = substr $object, length "$objs/obj/" : ();
    }

    # the rows of ops.def are in their backend's table, which may be in the
    # same file

    open my $def, '<', "$root/kernels/ops.def" or die "ops.def: $!";
    my %op = map { $_ => 1 } do { local $/; <$def> }
                             =~ /^LLM_OP\(\w+, \w+, [\w ]+\*?, (\w+), \(/mg;

    cmp_ok(scalar(keys %offered), '>', 1000, 'what files offer');
    cmp_ok(scalar(keys %op), '>', 50, 'operations among it');

    # types.def wants all of the first kind
    is(join("\n", map { "$_ of $offered{$_}" }
            grep { !/^llm_block_|^main$/ && !$taken{$_} }
            grep { !/^llm_(?:cpu|ref|team)_(\w+)$/ || !$op{$1} }
            sort keys %offered),
       '', 'is taken by another');
}

is(join('; ', circles({ a => ['b'], b => ['c'], c => ['b', 'd'], d => [] })),
   'b c', 'a circle is found');


# lines of nm by object; one call for all, as a process for each takes long

sub symbols {
    my %of;

    open my $nm, '-|', 'nm', '-A', '-g', @_ or die "nm: $!";

    while (<$nm>) {
        push @{ $of{$1} }, $2 if /^(.*?):(.*)\n$/;
    }

    return \%of;
}


# Tarjan's strongly connected components that are more than one file

sub circles {
    my ($to) = @_;
    my (%index, %low, %on, @stack, @found, $visit);
    my $n = 0;

    $visit = sub {
        my ($v) = @_;

        $index{$v} = $low{$v} = ++$n;
        push @stack, $v;
        $on{$v} = 1;

        for my $w (@{ $to->{$v} }) {
            if (!$index{$w}) {
                $visit->($w);
                $low{$v} = $low{$w} if $low{$w} < $low{$v};

            } elsif ($on{$w} && $index{$w} < $low{$v}) {
                $low{$v} = $index{$w};
            }
        }

        return if $low{$v} != $index{$v};

        my @circle;

        do {
            push @circle, pop @stack;
            delete $on{$circle[-1]};
        } until $circle[-1] eq $v;

        push @found, join ' ', sort @circle if @circle > 1;
    };

    for (sort keys %$to) {
        $visit->($_) unless $index{$_};
    }

    return @found;
}


done_testing();
