#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# After a reload that gives a zone new memory, old workers finish their requests
# with the old memory, to which nobody applies new additions.  They answer
# "unknown" instead of "absent", and no segment of the journal is kept for them.

use strict;
use warnings;

use Time::HiRes qw(sleep);

use BloomTest;
use BloomTest::Api;
use BloomTest::Clock;
use BloomTest::Connection;
use BloomTest::Image qw(patch_header);
use BloomTest::Process qw(alive resume_process stop_process wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my $dir = $t->testdir;
my $state = "$dir/state/ids";
my $hours = 3;
my $clock = BloomTest::Clock->new($t);

# more than the first segment of a journal holds, 2 MiB

my @many = map { sprintf 'key-%024d', $_ } 1 .. 100_000;

$t->build_image('plain.bloom', ['id1'], '-n', '100k', '-p', '1e-6');

# the tool refuses a time in the future

$t->write_file("$_.bloom", patch_header(
    $t->read_file('plain.bloom'),
    128 => pack('Q<', 1000 * (time + $hours * 3600)),
    136 => sprintf('%-16s', $_))) for 'recent', 'later';


sub configured {
    my ($size) = @_;

    # the answer is looked up when the backend's response comes

    configure($t, ["zone=ids$size file=ids.bloom"], api => 1, server => q(
        location = /slow {
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
            proxy_read_timeout 1h;
            add_header X-Known "[$known_ids]";
        }));
}

sub slow {
    my ($key) = @_;

    my $c = BloomTest::Connection->new($t->port(8080));
    $c->send("GET /slow?k=$key HTTP/1.1\r\nHost: localhost\r\n"
             . "Connection: close\r\n\r\n");

    return $c;
}

# Returns the answers to the requests that slow() has begun, once the backend
# continues.

sub answers {
    my (@connections) = @_;

    $t->write_file('go', '');
    my @answers = map { $_->response->header('X-Known') =~ /^\[(.?)\]$/ ? $1
                                                                        : '-' }
                  @connections;
    unlink "$dir/go";

    return join ',', @answers;
}


install_image($t, 'plain');
configured(':2m');
my $backend = $t->backend(8081, sub {
    wait_until(sub { -e "$dir/go" }, 300);
    return { body => 'ok' };
});
$t->run;

my ($old) = $t->workers;
my @requests = map { slow($_) } qw(id1 no new);
ok(wait_until(sub { scalar(() = $backend->requests) == 3 }),
   'three requests wait for the backend');

# the old helper ends after the new one has begun

my $old_helper = $t->helper;
stop_process($old_helper);

configured(':4m');
kill HUP => $t->master;
ok(wait_until(sub {
    my @workers = $t->workers;
    return @workers && !grep({ $_ == $old } @workers)
           && grep { $_ != $old_helper } $t->helpers;
}), 'nginx is reloaded');
ok(alive($old), 'the old worker still runs');

# it looks at the journal once a second, and then ends

sleep 1.1;
resume_process($old_helper);
ok(wait_until(sub { !alive($old_helper) }), 'the old helper ends');

add($t, 'ids', ['new', @many]);
is(ask_until_known($t, 'ids', 'id1', 'no', 'new', $many[-1]), '1011',
   'new workers have all keys');

# the first segment becomes so old that the last two images cover it; an instance
# that still had to catch up would lack its keys

$clock->ahead($hours * 3600);
is(upload_image($t, 'ids', $_)->status, 200,
   "the $_ image, which covers the first segment, is uploaded")
    for 'recent', 'later';
ok(wait_until(sub { !-e "$state/journal.0000000000000000" }, 60),
   'a segment is removed that the old worker has not followed');
ok(alive($old), 'the old worker runs when the segment is removed');

is(answers(@requests), '1,,', 'an old worker answers "unknown" for absent keys');
ok(wait_until(sub { !alive($old) }), 'the old worker ends');

is(ask($t, 'ids', 'id1', 'no'), '10', 'the new memory serves on');

done_testing;
