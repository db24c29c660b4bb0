#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests that njs reads the answers of zones in variables, in synchronous and
# asynchronous handlers, and that a key may come from js_set.

use strict;
use warnings;

use BloomTest;
use BloomTest::Modules;
use BloomTest::Rules;

my $t = BloomTest->new;
my $load = load_modules($t, 'ngx_http_js_module');

$t->build_image('ids.bloom', [map { "id$_" } 1 .. 500], '-p', '0.01',
                '-n', '5k', '--seed', 1);
$t->write_file('test.js', <<'JS');
function lower(r) { return r.args.k ? r.args.k.toLowerCase() : ''; }

function sync(r) {
    r.return(200, `[${r.variables.known}] [${r.variables.by_js}]`);
}

async function later(r) {
    const before = r.variables.known;
    const reply = await r.subrequest('/plain', { args: `k=${r.args.k}` });
    r.variables.new_id = r.args.k;
    r.return(reply.status, `[${before}] ${reply.responseText}`);
}

export default { lower, sync, later };
JS
configure_rules($t, {}, <<"CONF", main => $load);
    bloom_zone zone=ids file=ids.bloom;
    js_path %%TESTDIR%%;
    js_import test.js;
    js_set \$lower test.lower;
    bloom_lookup \$arg_k \$known zone=ids;
    bloom_lookup \$lower \$by_js zone=ids;
    js_var \$new_id;
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location = /sync { js_content test.sync; }
        location = /later { js_content test.later;
                            bloom_add \$new_id zone=ids; }
        location = /plain { return 200 "[\$known] [\$by_js]"; }
        location = /rule { bloom_reject absent \$lower zone=ids; empty_gif; }
    }
CONF
$t->run;

is($t->get('/sync?k=id1')->body, '[1] [1]', 'a present key is 1');
is($t->get('/sync?k=none')->body, '[0] [0]', 'an absent key is 0');
is($t->get('/sync?k=ID1')->body, '[0] [1]', 'a key may come from js_set');
is($t->get('/sync')->body, '[] []', 'the answer for an empty key is empty');
is($t->get('/rule?k=ID2')->status, 200, 'a rule takes a key of js_set');
is($t->get('/rule?k=ID-none')->status, 404, 'and rejects an absent one');

my @keys = map { ("id$_", "ID$_", "other$_") } 1 .. 400;
my @js = map { $_->body } $t->pipeline(map { "/sync?k=$_" } @keys);
my @plain = map { $_->body } $t->pipeline(map { "/plain?k=$_" } @keys);

is_deeply(\@js, \@plain, 'njs reads what nginx reads, for 1200 keys');

is($t->get('/later?k=new-key')->body, '[0] [0] [0]',
   'an asynchronous handler reads answers, before and after it waits');
is($t->get('/sync?k=new-key')->body, '[1] [1]',
   'bloom_add adds a key that a handler has named');

done_testing();
