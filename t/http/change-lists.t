#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests bloom_add and bloom_remove with several keys in one response: in a list
# that split= cuts, and in a header that the response repeats, which nginx's
# variables show in one way before version 1.23 and in another one since then.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Zones;

my $t = BloomTest->new;

configure($t, ['zone=ids capacity=100k fpr=1e-9',
               'zone=hosts capacity=10k fpr=1e-9 form=host'],
          api => 1, server => <<'CONF');
    large_client_header_buffers 4 128k;
    proxy_buffer_size 128k;
    proxy_buffers 8 128k;
    proxy_busy_buffers_size 128k;
    proxy_pass_request_headers off;
    proxy_set_header X-Lines $http_x_lines;

    location /add { bloom_add $upstream_http_x_new_id zone=ids split=,;
                    proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location /remove { bloom_remove $upstream_http_x_new_id zone=ids split=,;
                       proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location /sent { bloom_add $sent_http_x_new_id zone=ids split=,;
                     proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location /form { bloom_add $upstream_http_x_new_id zone=ids split=,
                     decode=form; proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location /one { bloom_add $upstream_http_x_new_id zone=ids;
                    proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location /gone { bloom_remove $sent_http_x_new_id zone=ids;
                     proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location /part { bloom_add id:$upstream_http_x_new_id zone=ids;
                     proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location /quiet { bloom_add $upstream_http_x_new_id zone=ids "split=;";
                      proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location /names { bloom_add $upstream_http_x_new_id zone=hosts split=,;
                      proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location /unnames { bloom_remove $upstream_http_x_new_id zone=hosts split=,;
                        proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location /type { bloom_add $sent_http_content_type zone=ids;
                     proxy_pass http://127.0.0.1:%%PORT_8081%%; }
    location /down { bloom_add $upstream_http_x_new_id zone=ids split=,;
                     proxy_pass http://127.0.0.1:%%PORT_8089%%; }
    location /none { bloom_add $upstream_http_x_new_id zone=ids split=,;
                     return 200; }
    location /request { bloom_add $arg_k zone=ids; return 200; }
    location /requests { bloom_add $arg_k zone=ids split=,; return 200; }
CONF

$t->write_file_expand('nginx.conf', $t->read_file('nginx.conf'));

# The request says which lines of the header the backend sends.

$t->backend(8081, sub {
    my ($request) = @_;
    my @lines = split /\|/, $request->{headers}{'x-lines'} // '', -1;

    return { headers => ['X-Other' => 'other',
                         map({ ('X-New-Id' => $_) } @lines),
                         'Content-Type' => 'text/type'] };
});
$t->run;

api($t, POST => "zones/$_/remove", body => "first\n")->status == 200
    or die "zone $_ takes no removals" for 'ids', 'hosts';


# Makes a request whose response has these lines.  Returns what the error log
# then has.

sub response {
    my ($path, @lines) = @_;

    my $mark = $t->log_mark;
    my $response = $t->get($path, headers => ['X-Lines' => join '|', @lines]);

    $response->status == ($path eq '/down' ? 502 : 200)
        or die "$path: $response";

    return $t->log_since($mark);
}


# Returns the keys that a zone has, of all that any response below has named.

my @names = (qw(a b c d), 'a,b', 'a, b', 'c,d', 'a;b', 'a b', 'c, d', 'id:a',
             'id:a, b', 'text/type', 'other', '');

sub keys_there {
    my @there = grep {
        length && api($t, GET => 'zones/ids/keys?key=' . escaped($_))
                      ->json->{answer} eq 'present'
    } @names;
    api($t, POST => 'zones/ids/remove', body => join '', map { "$_\n" } @there);

    return join '|', @there;
}


sub escaped { return $_[0] =~ s/([^A-Za-z0-9])/sprintf '%%%02X', ord $1/ger }


for (# location, lines of the header, keys
     ['/add', ['a,b'], 'a|b', 'a list'],
     ['/add', ["a , \t b,c"], 'a|b|c', 'a list with spaces and tabs'],
     ['/add', [',a,,b,'], 'a|b', 'a list with empty parts'],
     ['/add', [' , ,'], '', 'a list of empty parts'],
     ['/add', [''], '', 'an empty list'],
     ['/add', [], '', 'no list'],
     ['/add', ['a'], 'a', 'a list of one key'],
     ['/add', ['a', 'b'], 'a|b', 'a list of two lines'],
     ['/add', ['a,b', 'c', 'd'], 'a|b|c|d', 'three lists'],
     ['/add', ['', 'a', '', 'b,', ''], 'a|b', 'two lists among empty ones'],
     ['/add', ['a;b', 'c'], 'c|a;b', 'a list with another separator'],
     ['/sent', ['a,b', 'c'], 'a|b|c', 'the lists that the client gets'],
     ['/form', ['a%2Cb', 'c+'], 'a|b|c', 'lists that are decoded, then cut'],
     ['/one', ['a', 'b'], 'a|b', 'two lines without split='],
     ['/one', ['a', 'b', 'b', ''], 'a|b', 'equal and empty lines'],
     ['/quiet', ['a,b', 'c'], 'c|a,b', 'keys with commas'],
     ['/quiet', ['a;b', 'c'], 'a|b|c', 'lists with another separator'],
     ['/type', ['a'], 'text/type', 'a header that nginx makes'],
     ['/none', ['a'], '', 'a response without a backend'],
     ['/down', ['a'], '', 'a backend that does not answer'],
     ['/part', ['a'], 'id:a', 'a key with a header in it'],
     ['/requests?k=a,b', [], 'a|b', 'a list of the request'])
{
    my ($path, $lines, $keys, $what) = @$_;

    my $log = response($path, @$lines);
    my $list = join '|', @$lines;

    is(keys_there(), $keys, "$what: the header '$list' in $path adds its keys");
    unlike($log, qr/is one key/, "$what: nothing is warned of");
}


subtest 'bloom_remove removes each key of a list' => sub {
    add($t, 'ids', [qw(a b c d)]);
    response('/remove', 'a, c');
    is(keys_there(), 'b|d', 'it removes the keys of one line');
    add($t, 'ids', [qw(a b c d)]);
    response('/remove', 'a', 'b,c');
    is(keys_there(), 'd', 'it removes the keys of two lines');
    add($t, 'ids', [qw(a b c d)]);
    response('/gone', 'a', 'b');
    is(keys_there(), 'c|d', 'it removes each line without split=');
};


# Each worker warns once, and a reload begins anew.

subtest 'a list that becomes one key is warned of once' => sub {
    my %seen;

    for (['/one', 'a, b', 'bloom_add'], ['/gone', 'c,d', 'bloom_remove'],
         ['/part', 'a, b', 'bloom_add'])
    {
        my ($path, $list, $directive) = @$_;
        my ($line) = grep { index((split /\n/, $t->read_file('nginx.conf'))[$_],
                                  "location $path ") >= 0 } 0 .. 60;
        my $value = ($path eq '/part' ? 'id:' : '') . $list;
        my $log = response($path, $list);

        like($log, qr/\[warn\] .*"\Q$value\E" is one key for "$directive" in \S*nginx\.conf:@{[$line + 1]}, of bloom zone "ids": if it is a list, add "split=,"; if its commas belong to the key, a "split=" with a byte that no key has silences this warning/,
             "$path warns of the list '$list'");
        is(keys_there(), $directive eq 'bloom_add' ? $value : '',
           'it is one key');
        unlike(response($path, $list), qr/is one key/,
               "$path does not warn again");
        keys_there();
    }

    $t->reload;
    like(response('/one', 'a', 'b', 'c, d'), qr/"c, d" is one key/,
         'a new worker warns of a list in one of three lines');
    is(keys_there(), 'a|b|c, d', 'each line is a key');
    unlike(response('/request?k=a,b'), qr/is one key/,
           'a comma in a key of the request is nothing to warn of');
    keys_there();
};


subtest 'keys of a list that are invalid are counted' => sub {
    my $invalid = sub { zone_state($t, 'hosts')->{counters}{invalid} };
    my $before = $invalid->();

    my $log = response('/names', 'a.example,b:c:d,e.example', 'f/g,h h,i.example');
    is(ask($t, 'hosts', map { "$_.example" } qw(a e i)), '111',
       'the valid keys are added');
    is($invalid->() - $before, 3, 'the invalid ones are counted');
    like($log, qr/\[error\] .*a key of 5 bytes was not added to bloom zone "hosts": it \w/,
         'the log has the one of the first line');
    like($log, qr/\[error\] .*2 keys of a list were not added to bloom zone "hosts": the first has 3 bytes and \w/,
         'the log has those of the second line together');

    $before = $invalid->();
    $log = response('/unnames', 'a.example,b:c:d,e.example');
    is(ask($t, 'hosts', map { "$_.example" } qw(a e i)), '001',
       'the valid keys are removed');
    is($invalid->() - $before, 1, 'the invalid one is counted');
    like($log, qr/\[error\] .*a key of 5 bytes was not removed from bloom zone "hosts": it \w/,
         'the log says why it is not removed');
};


subtest 'a list has any number of keys, and all survive a crash' => sub {
    my @keys = keys_of('many', 10_000);

    response('/add', join(',', @keys[0 .. 4999]), join(', ', @keys[5000 .. 9999]));
    is(ask($t, 'ids', @keys), '1' x 10_000, 'ten thousand keys are added');
    $t->kill_all;
    $t->run;
    is(ask_until_known($t, 'ids', @keys), '1' x 10_000,
       'they are present after the death of all processes');
};

done_testing;
