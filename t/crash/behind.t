#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# An instance is behind another one, because its helper is stopped, and its
# workers change the zone nevertheless.  It skips none of the other one's records
# (I6), and applies them in their order, also those that it has applied already.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api;
use BloomTest::Control qw(all_applied);
use BloomTest::Process qw(resume_process stop_process wait_until);
use BloomTest::Zones;

my $t = BloomTest->new;
my ($old, $new) = (8080, 8090);
my $page = $t->testdir . '/state/ids/control';

$t->build_image('ids.bloom', ['id1'], '-p', '1e-9', '-n', '20k');
configure($t, ['zone=ids file=ids.bloom removals=100'], api => 1);
$t->run;
$t->write_file('nginx.conf', $t->read_file('nginx.conf')
                             =~ s/127.0.0.1:\K${\ $t->port($old)}/
                                  $t->port($new)/er);

sub changed {
    my ($port, $what, @keys) = @_;

    my $r = $t->request(POST => "/bloom/zones/ids/$what", port => $port,
                        body => join "\n", @keys);

    is($r->status, 200, "port $port: $what @keys") or diag($r);
}

# Returns the answers of an instance, as ask() does.

sub answers {
    my ($port, @keys) = @_;

    my %sign = (present => 1, absent => 0, unknown => '?');

    return join '', map {
        $sign{ $t->request(GET => "/bloom/zones/ids/keys?key=$_",
                           port => $port)->json->{answer} };
    } @keys;
}

sub answers_are {
    my ($port, $want, $name, @keys) = @_;

    my $answers;

    wait_until(sub { ($answers = answers($port, @keys)) !~ /\?/ });
    is($answers, $want, $name);
}

my @keys = qw(id1 theirs ours gone back again no);

changed($old, 'keys', 'gone', 'back');

my $master = $t->upgrade_begin;

answers_are($new, '1001100', 'the new instance has what was added', @keys);


# The helper of the new instance has nothing to do when it stops, so it holds no
# lock.

subtest 'an instance that is behind changes the zone' => sub {
    my ($helper) = $t->helpers($master);

    wait_until(sub { all_applied($page) }) or die 'a record is not applied';
    stop_process($helper);

    changed($old, 'keys', 'theirs');
    changed($old, 'remove', 'gone', 'back');
    is(answers($new, 'theirs', 'no'), '??', 'the new instance is behind');

    changed($new, 'keys', 'ours');
    is(answers($new, @keys), '1?111??',
       'it is still behind when it has added a key');

    changed($new, 'keys', 'back');
    changed($new, 'keys', 'again');
    changed($new, 'remove', 'again');
    is(answers($new, 'theirs', 'ours', 'no'), '?1?',
       'and when it has removed one');

    resume_process($helper);
    answers_are($new, '1110100', 'then it has all changes in their order',
                @keys);
    answers_are($old, '1110100', 'the old instance has them, too', @keys);
};


subtest 'all processes die' => sub {
    $t->kill_all;
    $t->run;
    answers_are($new, '1110100', 'a start has all changes in their order',
                @keys);
};

done_testing;
