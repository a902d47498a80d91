#!/usr/bin/perl

# llm_intercept_errors: whoever error_page names gets the request's body,
# whole, wherever the error came from: before the body was read, from the
# body, from its submission, from the engine.  Clients may leave at any time.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new(
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 default;
              llm_model small %%ROOT%%/models/demo.gguf threads=1 ctx=64;
              llm_model broken %%DIR%%/nothing.gguf;',
    http => <<'END',
        client_body_buffer_size 8k;
        client_max_body_size 8m;
        log_format standby "$status";
        server {
            listen 127.0.0.1:%%PORT2%%;
            location / { llm_api; access_log logs/standby.log standby; }
        }
END
    server => <<'END',
        llm_intercept_errors on;
END
    locations => <<'END');
        location /v1 { llm_api; }
        location = /figures { llm_metrics json; }

        location /early/ { llm_api broken; error_page 503 = @standby; }
        location /body/ { llm_api; error_page 404 = @standby; }
        location /submit/ { llm_api demo broken; error_page 503 = @standby; }
        location /engine/ { llm_api small; error_page 400 = @standby;
                            client_body_buffer_size 1m; }
        location @standby {
            rewrite ^ /v1/completions break;
            proxy_request_buffering off;
            proxy_http_version 1.1;
            proxy_pass http://127.0.0.1:%%PORT2%%;
        }

        location /uri/ { llm_api broken; error_page 503 =200 /page; }
        location = /page { return 200 "$request_method page"; }

        location /again/ {
            recursive_error_pages on;
            llm_api broken;
            error_page 503 = @again;
        }
        location @again {
            recursive_error_pages on;
            llm_api small;
            error_page 400 = @third;
        }
        location @third { llm_api demo; }

        location /once/ { llm_api broken; error_page 503 = @once; }
        location @once { llm_api small; error_page 400 = @standby; }
END

$t->start(cold => 1);

my $ready = LLM::Test::wait_for(60, sub {
    $t->post('/v1/completions', { prompt => 'a', max_tokens => 1 })->{status}
        == 200
    && $t->post('/early/completions', { prompt => 'a', max_tokens => 1 })
        ->{status} == 200
});

ok($ready, 'the standby answers') or diag($t->log);

# longer than the small model's context, longer than a buffer

my $long = join ' ', map { "word$_" } 1 .. 60;
my %ask = (prompt => $long, temperature => 0, max_tokens => 4, echo => \1,
           stop => 'xyz', metadata => { pad => 'y' x 20_000 });


sub answered {
    my ($name, $res) = @_;

    is($res->{status}, 200, "$name: served") or diag($res->{body});
    like($res->{json}{choices}[0]{text} // '', qr/\A\Q$long\E/,
         "$name: the whole body came along");
}

my %model = (early => 'broken', body => 'nobody', submit => 'broken',
             engine => 'small', again => 'broken');

# the standby does not know nobody, broken is broken there

for my $where (qw(early engine again)) {
    answered($where, $t->post("/$where/v1/completions", { %ask }));

    my $json = LLM::JSON->new->utf8->encode({ %ask });
    my $client = LLM::Client->open(port => $t->port, raw =>
        "POST /$where/v1/completions HTTP/1.1\r\nHost: x\r\n"
        . "Connection: close\r\nExpect: 100-continue\r\n"
        . "Content-Length: " . length($json) . "\r\n\r\n");

    ok(LLM::Test::wait_for(10, sub {
        $client->fill; $client->{buffer} =~ /100 Continue/
    }), "$where: 100 Continue comes");
    $client->write($json);
    answered("$where with 100-continue", $client->response);
}

# the key of a request that has failed is free for whoever handles the error

answered('again, with a key', $t->post('/again/v1/completions', { %ask },
    headers => { 'Idempotency-Key' => 'again' }));

for my $where (qw(body submit)) {
    my $res = $t->post("/$where/v1/completions",
                       { %ask, model => $model{$where} });

    like($res->{body}, $where eq 'body' ? qr/'nobody' does not exist/
                                        : qr/could not be loaded/,
         "$where: the standby has read the same");
}

is($t->post('/uri/v1/completions', { %ask })->{body}, 'GET page', 'a page');

my $res = $t->post('/once/v1/completions', { %ask });

is($res->{status}, 400, 'not twice without recursive_error_pages');
is($res->{json}{error}{code}, 'context_length_exceeded', 'but in JSON');

# clients that leave in mid-body, and in mid-answer

for my $where (qw(early body submit engine uri again once)) {
    for my $sent (0, 10, 10_000, 30_000) {
        my $json = LLM::JSON->new->utf8->encode({ %ask,
            model => $model{$where} // 'small' });
        my $client = LLM::Client->open(port => $t->port, raw =>
            "POST /$where/v1/completions HTTP/1.1\r\nHost: x\r\n"
            . "Content-Length: " . length($json) . "\r\n\r\n"
            . substr($json, 0, $sent));

        select undef, undef, undef, 0.02;
        $client->close(reset => $sent % 4 == 0);
    }
}

answered('afterwards', $t->post('/early/v1/completions', { %ask }));

$t->stop(allow => qr/nothing\.gguf/);

done_testing();
