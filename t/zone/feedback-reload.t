#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# A zone whose size is given takes "except=on" at a reload, and gives it up
# again: its memory stays, with the keys that were added and those that were
# excepted.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Feedback;
use BloomTest::Process qw(wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;

my @ids = keys_of('id', 1000);
$t->build_image('ids.bloom', \@ids, '-p', '1e-2', '--seed', 1);
my @false = false_positives($t, 'ids', 6);

sub conf {
    my ($size, $except) = @_;

    configure($t, ["zone=ids:$size file=ids.bloom removals=100",
                   'zone=other capacity=10 fpr=0.1'],
              api => 1, server => <<"CONF");
        location /of/ids {
            bloom_reject absent \$arg_id zone=ids;
            bloom_feedback 404 $except;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF
}

sub known { return scalar ask($t, 'ids', @_) }

sub excepted_total { return zone_state($t, 'ids')->{feedback}{excepted} }

# Reloads nginx, and tests that the memory of the zone stays.

sub reloads {
    my ($size, $except) = @_;

    conf($size, $except);

    my $mark = $t->log_mark;
    my $before = zone_state($t, 'ids');
    $t->reload;
    my $after = zone_state($t, 'ids');

    unlike($t->log_since($mark), qr/changes from|recreated|starts empty/,
           "the memory is not recreated ($except)");
    is($after->{generation}, $before->{generation},
       "no image is loaded ($except)");
    is($after->{memory}{zone_bytes}, $before->{memory}{zone_bytes},
       "the size stays ($except)");
}

feedback_backend($t, 8081);

# nginx says which size it needs

configure($t, ['zone=other capacity=10 fpr=0.1'], api => 1);
$t->run;
conf('1k', 'except=off');
my ($size) = $t->reload_fails =~ /write "zone=ids:(\d+k)"/;
ok(defined $size, 'nginx names the size that the zone needs');

conf($size, 'except=off');
$t->reload;
ok(wait_until(sub { known($ids[0]) eq '1' }), 'the zone serves');

my ($early, $probe, $more, $later, $late, $own) = @false;

add($t, 'ids', ['own1', 'own2', $own]);
$t->get("/of/ids?id=$early");
is(known($early), '1', 'no key is excepted without except=on');

reloads($size, 'except=on after=1s');
is(known('own1', 'own2', $own, @ids[0 .. 99]), '1' x 103, 'all keys stay');

await_feedback($t, 'ids', '/of/ids?id=', $probe);
$t->get("/of/ids?id=$_") for $early, $more;
is(known($early, $more), '00', 'false positives are excepted');
add($t, 'ids', [$more]);
$t->get("/of/ids?id=$more");
is(known($more), '1', 'an added key is not');

reloads($size, 'except=off');
is(known('own1', 'own2', $own, $more, @ids[0 .. 99]), '1' x 104,
   'all keys stay');
is(known($early, $probe), '00', 'what was excepted stays');

my $total = excepted_total();
$t->get("/of/ids?id=$later");
is(known($later), '1', 'no key is excepted any more');
is(excepted_total(), $total, 'nor counted');

# keys that were added meanwhile are remembered, too

add($t, 'ids', [$late]);
reloads($size, 'except=on after=1s');
is(known($early, $probe), '00', 'what was excepted is still absent');
await_feedback($t, 'ids', '/of/ids?id=', $later);
$t->get("/of/ids?id=$late");
is(known($late, 'own1', $own), '111', 'an added key is not excepted');

done_testing;
