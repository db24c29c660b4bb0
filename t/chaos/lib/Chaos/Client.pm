# SPDX-License-Identifier: BSD-2-Clause

package Chaos::Client;

# A client adds and removes keys in every way there is, looks them up on other
# connections as soon as they are acknowledged, and keeps a list of all
# acknowledged keys.  It is a process that takes commands from the driver:
#
#   verify all | verify some    looks acknowledged and removed keys up
#   verify unknown              looks them up; the answer may be unknown
#   image ZONE                  fetches the zone as an image and looks into it
#   calm | lively               stops or resumes bloom_add, which nothing can
#                               refuse, and bloom_remove
#   forget ZONE                 acknowledged keys may be lost from now on
#   restore ZONE                adds all removed keys again
#   ask_all                     asks the backend for all acknowledged keys of
#                               zones that except keys
#   mistake ZONE                takes an excepted key for added
#   pause | resume              stops or resumes all requests
#   quit                        exits
#
# The client answers each command with a line "done".  Its counts are then in
# the file client.N.counts, and its findings in client.N.wrong.
#
# A key is named after the client, the zone and a number, such as 3s17.  The
# list of acknowledged keys has a bit for each number.  A removed key is not in
# this list, but in `removed`.  A key whose last operation was cut is in
# neither.
#
# ClientRemovals.pm removes keys, SharedKeys.pm adds and removes keys that all
# clients share, ClientFeedback.pm makes zones except keys, and ClientExpiring.pm
# uses zones whose keys expire.

use strict;
use warnings;

use parent qw(-norequire Chaos::ClientRemovals Chaos::ClientFeedback
              Chaos::ClientExpiring Chaos::SharedKeys);

use BloomTest::Api;
use BloomTest::Process qw(now wait_until);

use Chaos::ClientExpiring;
use Chaos::ClientFeedback;
use Chaos::ClientRemovals;
use Chaos::SharedKeys;

use constant CONNECTIONS => 12;      # each has one request at a time


sub new {
    my ($class, %self) = @_;    # t, number, ledger, zones, feedback_zones,
                                # expiring_zones, limit, removals,
                                # feedback_removals, expiring_limit,
                                # commands, answers, disk_full

    my @all = (@{ $self{zones} }, @{ $self{feedback_zones} });

    return bless {
        %self, all_zones => \@all, idle => [], acked => {}, next => {},
        checked => {},
        intervals => {}, since => {}, wrong => {}, operations => 0,
        removed => { map { $_ => {} } @all },
        count => { map { $_ => 0 } qw(requests acked removed asked unknown
                                      again cut refused lost returned torn
                                      failed images absent false rows
                                      passed rejected revived late
                                      outlived expired turns) },
        extreme => {},
    }, $class;
}


sub run {
    my ($self) = @_;

    for (@{ $self->{all_zones} }) {
        $self->{acked}{$_} = '';
        $self->{next}{$_} = 1;
        $self->{since}{$_} = time;
    }

    $self->begin_feedback;
    $self->begin_expiring;

    while (1) {
        while ($self->{paused} || $self->_command_waits) {
            my $line = readline $self->{commands};
            return if !defined $line || $line =~ /^quit/;

            my ($command, @words) = split ' ', $line;
            my $method = "_$command";
            $self->_write_rows(1);
            $self->$method(@words);
            $self->_report;
            syswrite $self->{answers}, "done\n";
        }

        $self->{ledger}->read;
        $self->_round;
    }
}


sub _command_waits {
    my ($self) = @_;

    my $bits = '';
    vec($bits, fileno $self->{commands}, 1) = 1;

    return select($bits, undef, undef, 0) > 0;
}


sub _report {
    my ($self) = @_;

    $self->{t}->write_file("client.$self->{number}.counts",
        join '', map({ "$_ $self->{count}{$_}\n" }
                     sort keys %{ $self->{count} }),
                 map({ "$_ $self->{extreme}{$_}\n" }
                     sort keys %{ $self->{extreme} }));
}


sub _wrong {
    my ($self, $what, $text) = @_;

    $self->{count}{$what}++;
    return if $self->{count}{$what} > 10;

    open my $fh, '>>', $self->{t}->testdir . "/client.$self->{number}.wrong"
        or die "client $self->{number}: $!";
    $text =~ s/\s+/ /g;
    print $fh "$what: $text\n";
    close $fh;
}


# ---- requests ----

# Sends requests, each on its own connection, and reads the answers.  A request
# is { method, path, body, headers }.  It gets the member `response`, unless a
# kill has cut its connection.

sub _exchange {
    my ($self, @requests) = @_;

    my $ledger = $self->{ledger};
    my @left = @requests;

    for my $try (1 .. 20) {
        my @again;

        for my $request (@left) {
            $request->{start} = now();
            $request->{connection} = eval {
                pop @{ $self->{idle} }
                or { socket => $self->{t}->connect, worker => undef };
            } or next;
            $request->{connection}{socket}->send($request->{text} //=
                $self->{t}->request_text(@$request{qw(method path)},
                                         %$request, keepalive => 1));
        }

        for my $request (@left) {
            my $connection = delete $request->{connection};
            my $response = $connection && eval {
                $connection->{socket}->response($request->{method});
            };
            my $error = $@;
            $self->{count}{requests}++;

            if ($response && $response->complete && $response->status) {
                $request->{response} = $response;
                $request->{end} = now();
                $connection->{worker} = $response->header('X-Worker');
                push @{ $self->{idle} }, $connection
                    unless lc($response->header('Connection') // '')
                           eq 'close';
                next;
            }

            my $bytes = $response && ("$response" ne '' || $error);
            my $verdict = $ledger->verdict(
                $request->{start}, now(), $connection && $connection->{worker},
                $bytes);

            if ($verdict eq 'again') {
                push @again, $request;
                $self->{count}{again}++;

            } elsif ($verdict eq 'cut') {
                $self->{count}{cut}++;
                select undef, undef, undef, 0.01 unless $connection;

            } else {
                $self->_wrong(failed => "$request->{method} $request->{path}: "
                    . ($connection ? 'worker '
                       . ($connection->{worker} // 'unknown') : 'no connection')
                    . ": answered '" . substr($response // '', 0, 200)
                    . "' $error");
            }
        }

        # other idle connections are likely closed, too

        $self->{idle} = [] if @again;
        @left = @again or return;
    }

    $self->_wrong(failed => "$_->{method} $_->{path}: closed 20 times")
        for @left;
}


# ---- keys ----

sub _name { return "$_[0]{number}" . substr($_[1], 0, 1) . $_[2] }


# Returns the numbers of keys to add: new ones until the filter has as many keys
# as it is made for, then earlier ones again.

sub _numbers {
    my ($self, $zone, $count) = @_;

    my $next = $self->{next}{$zone};

    if ($next + $count > $self->{limit}) {
        return map { 1 + int rand($next - 1) } 1 .. $count;
    }

    $self->{next}{$zone} += $count;

    return $next .. $next + $count - 1;
}


sub _acked { return vec($_[0]{acked}{$_[1]}, $_[2], 1) }


sub _acknowledge {
    my ($self, $zone, @numbers) = @_;

    for (@numbers) {
        $self->{count}{acked}++ unless vec($self->{acked}{$zone}, $_, 1);
        vec($self->{acked}{$zone}, $_, 1) = 1;
        delete $self->{removed}{$zone}{$_};
        delete $self->{in_doubt}{$zone}{$_};
    }
}


# Returns the numbers that no image may have dropped, as a list of (first,
# last). Numbers that were given out between two looks at all keys were
# acknowledged after the first look, by the clock that nginx had then.

sub _kept {
    my ($self, $zone) = @_;

    my $horizon = $self->{ledger}{horizon};
    my @kept;

    # no image of a zone that excepts says when it was complete

    return [1, $self->{next}{$zone} - 1] if $self->{feedback}{$zone};

    for (@{ $self->{intervals}{$zone} || [] },
         [$self->{checked}{$zone} // 1, $self->{next}{$zone} - 1,
          $self->{since}{$zone} + $self->{ledger}{lowest}])
    {
        my ($first, $last, $earliest) = @$_;

        next if $earliest < $horizon || $first > $last;

        if (@kept && $kept[-1][1] + 1 == $first) {
            $kept[-1][1] = $last;
        } else {
            push @kept, [$first, $last];
        }
    }

    return @kept;
}


sub _is_kept {
    my ($self, $zone, $number) = @_;

    return $self->_is_promised($zone, $number) if $self->{feedback}{$zone};
    return grep { $number >= $_->[0] && $number <= $_->[1] }
                $self->_kept($zone);
}


sub _all_acked {
    my ($self, $zone, $from) = @_;

    $from //= 1;

    return grep { $self->_acked($zone, $_) }
           map { ($_->[0] > $from ? $_->[0] : $from) .. $_->[1] }
               $self->_kept($zone);
}


sub _some_acked {
    my ($self, $zone, $count) = @_;

    my @kept = $self->_kept($zone);
    my $all = 0;
    $all += $_->[1] - $_->[0] + 1 for @kept;

    return if $all <= 0;

    return grep { $self->_acked($zone, $_) } map {
        my $n = int rand $all;
        my $number;

        for (@kept) {
            my $size = $_->[1] - $_->[0] + 1;
            $number = $_->[0] + $n, last if $n < $size;
            $n -= $size;
        }

        $number;
    } 1 .. $count;
}


# ---- one round: add or remove, then ask ----

sub _round {
    my ($self) = @_;

    my $zone = $self->{zones}[rand @{ $self->{zones} }];
    my $what = rand;

    # while the disk refuses, keys of bloom_add wait in a place of limited size

    my $careful = $self->{disk_full} && $self->{disk_full}->();

    if ($what < 0.25) {
        $self->_shared_round($zone, $self->{calm} || $careful);
        return;
    }

    if ($what > 0.76 && $what < 0.88) {
        $self->_expiring_round($careful);
        return;
    }

    if ($what > 0.88) {
        $self->_feedback_round($careful);
        return;
    }

    my @requests = $what < 0.45 ? $self->_removals($zone)
                                : $self->_additions($zone, $careful);

    $self->_exchange(@requests);

    my (@fresh, @gone);

    for (@requests) {
        $_->{by} =~ /^(?:keys|add)$/
            ? push @fresh, $self->_added($zone, $_)
            : push @gone, $self->_gone($zone, $_);
    }

    # other connections: those that were used last are at the end

    push @{ $self->{idle} }, splice @{ $self->{idle} }, 0,
        int rand 1 + @{ $self->{idle} };

    $self->_ask($zone, \@fresh, \@gone);
    $self->_pairs if rand() < 0.5;
}


sub _additions {
    my ($self, $zone, $careful) = @_;

    my $chance = rand($self->{calm} ? 0.75 : 1);
    my @requests;

    if ($chance < 0.3) {
        @requests = map { $self->_addition($zone, '', 1) }
                        1 .. 1 + rand CONNECTIONS;

    } elsif ($chance < 0.6) {
        @requests = map { $self->_addition($zone, '', 5 + int rand 100) }
                        1 .. 1 + rand 4;

    } elsif ($chance < 0.75) {
        @requests = map { $self->_addition($zone, '?durable=true',
                                           rand() < 0.5 ? 1 : 50) }
                        1 .. 1 + rand 6;

    } else {
        @requests = map {
            my ($number) = $self->_numbers($zone, 1);
            my $name = $self->_name($zone, $number);
            +{ method => 'GET', path => "/add/$zone?k=$name", by => 'add',
               numbers => [$number] };
        } 1 .. ($careful ? 1 : 1 + rand CONNECTIONS);
    }

    # an addition that is cut may have been made

    for (map { @{ $_->{numbers} } } @requests) {
        $self->{in_doubt}{$zone}{$_} = 1 if delete $self->{removed}{$zone}{$_};
    }

    return @requests;
}


sub _addition {
    my ($self, $zone, $query, $count) = @_;

    return $self->_batch($zone, 'keys', $query,
                         $self->_numbers($zone, $count));
}


sub _batch {
    my ($self, $zone, $by, $query, @numbers) = @_;

    return { method => 'POST', path => "/bloom/zones/$zone/$by$query",
             body => join('', map { $self->_name($zone, $_) . "\n" } @numbers),
             numbers => \@numbers, by => $by, durable => $query ne '' };
}


# Reads the answer to an addition.  Returns the numbers that it acknowledges.

sub _added {
    my ($self, $zone, $request) = @_;

    my $response = $request->{response} or return;
    my $status = $response->status;
    my @numbers = @{ $request->{numbers} };

    if ($status == 200 && $request->{by} eq 'keys') {
        my ($received) = $response->body =~ /"received":\s*(\d+)/;
        my ($durable) = $response->body =~ /"durable":\s*(true|false)/;

        if (($received // -1) != @numbers
            || $request->{durable} && ($durable // '') ne 'true')
        {
            $self->_wrong(failed => "$request->{path}: of " . @numbers
                                    . " keys: " . $response->body);
            return;
        }
    }

    if ($status == 200) {
        $self->_acknowledge($zone, @numbers);
        return @numbers;
    }

    if ($status == 503 && $request->{by} eq 'keys'
        && $self->{ledger}->full(@$request{qw(start end)}))
    {
        $self->{count}{refused}++;
        return;
    }

    $self->_wrong(failed => "$request->{path}: $response");

    return;
}


# Looks up, one by one, keys that were just added or removed, some that were
# added or removed earlier, and some that were never added.

sub _ask {
    my ($self, $zone, $fresh, $gone) = @_;

    my @removed = keys %{ $self->{removed}{$zone} };
    my $some = sub {
        my ($count, @numbers) = @_;
        return @numbers > $count ? @numbers[map { rand @numbers } 1 .. $count]
                                 : @numbers;
    };

    my @requests = (
        (map { +{ key => $self->_name($zone, $_), number => $_ } }
             $some->(6, @$fresh), $self->_some_acked($zone, 3)),
        (map { +{ key => $self->_name($zone, $_), removed => 1 } }
             $some->(6, @$gone), $some->(3, @removed)),
        ($zone eq 'shield' ? { key => 'base' . (100 + int rand 900) } : ()),
        ($self->{feedback}{$zone} ? ()
         : { key => "never$self->{number}-" . int(rand 1e9), never => 1 }),
    );

    $_->{method} = 'GET', $_->{path} = "/$zone?k=$_->{key}" for @requests;
    $self->_exchange(@requests);
    $self->_answered($zone, $_) for @requests;
}


# Returns the answer to a lookup: 1, 0, or the empty string if it is unknown; and
# nothing if there is none.

sub _known {
    my ($self, $request) = @_;

    my $response = $request->{response} or return;
    my ($known) = $response->body =~ /^([01]?) of \d+$/;

    return $known if $response->status == 200 && defined $known;

    $self->_wrong(failed => "$request->{path}: $response");

    return;
}


sub _answered {
    my ($self, $zone, $request) = @_;

    my $known = $self->_known($request) // return;
    my $how = 'worker ' . ($request->{response}->header('X-Worker') // '');

    $self->{count}{asked}++;

    # a clear drops the client's keys, which then gets told to forget them

    my $cleared = $self->{ledger}->cleared(@$request{qw(start end)});

    if ($known eq '') {
        $self->{count}{unknown}++;

    } elsif ($request->{never}) {
        $self->{count}{$known ? 'false' : 'absent'}++;

    } elsif ($request->{removed}) {
        $self->_returned($zone, $request->{key}, $how)
            if $known && !$cleared
               && !$self->{ledger}->doubt($zone, @$request{qw(start end)});

    } elsif ($known eq '0' && !$cleared) {
        $self->_lost($zone, $request->{key}, $request->{number}, $how);
    }
}


sub _lost {
    my ($self, $zone, $key, $number, $how) = @_;

    return if defined $number && !$self->_is_kept($zone, $number);
    return if $self->{wrong}{$key}++;

    $self->_wrong(lost => "zone $zone, key $key: $how");
}


sub _returned {
    my ($self, $zone, $key, $how) = @_;

    # the image of zone goods may be newer than the removal, and the key a false
    # positive of it

    return if $zone eq 'goods' || $self->{wrong}{$key}++;

    $self->_wrong(returned => "zone $zone, key $key: $how");
}


# Tests keys by the endpoint and returns its answers, with the times of the
# request; an empty list if it was cut.

sub _test_keys {
    my ($self, $zone, @keys) = @_;

    my %request = (method => 'POST', path => "/bloom/zones/$zone/test",
                   body => join "\n", @keys);
    $self->_exchange(\%request);
    my $response = $request{response} or return;
    my ($list) = $response->body =~ /"answers":\s*\[(.*?)\]/s;
    my @answers = ($list // '') =~ /"(\w+)"/g;

    if ($response->status != 200 || @answers != @keys) {
        $self->_wrong(failed => "$request{path}: " . @keys
                                . ' keys, answered '
                                . substr $response, 0, 300);
        return;
    }

    return (\%request, @answers);
}


# Asks for the pair of keys that each image has for itself: the first, the
# second and the first again.  A generation that has one key and not the other
# is torn. Between two loads the driver waits for all clients, so there is at
# most one switch within a request.

sub _pairs {
    my ($self) = @_;

    my @images = @{ $self->{ledger}{images} };
    @images = @images[-3 .. -1] if @images > 3;

    my @requests = map {
        +{ method => 'GET', path => "/pair?a=pair${_}a&b=pair${_}b" }
    } @images;

    $self->_exchange(@requests);

    for my $request (@requests) {
        my $response = $request->{response} or next;
        my ($first, $second, $again)
            = $response->body =~ /^([01]?),([01]?),([01]?)$/;

        if (!defined $first) {
            $self->_wrong(failed => "$request->{path}: $response");
            next;
        }

        $self->{count}{asked} += 3;

        $self->_wrong(torn => "$request->{path}: " . $response->body)
            if "$first$again" eq '11' && $second eq '0'
               || "$first$again" eq '00' && $second eq '1';
    }
}


# ---- what the driver asks for ----

# Looks up all acknowledged keys, or those since the last time and some of the
# others, until no answer is unknown.  No key may be absent.

sub _verify {
    my ($self, $how) = @_;

    my $now = time;
    my $lowest = $self->{ledger}->lowest_clock;

    $self->_verify_expiring;

    for my $zone (@{ $self->{all_zones} }) {
        my $next = $self->{next}{$zone};
        my $checked = $self->{checked}{$zone} // 1;

        my @numbers = $how eq 'all'
                      ? $self->_all_acked($zone)
                      : ($self->_all_acked($zone, $checked),
                         $self->_some_acked($zone, 5000));

        my $unknown = $how eq 'unknown';

        while (my @some = splice @numbers, 0, 20_000) {
            $self->_verify_some($zone, $unknown, 'present', @some);
        }

        my @removed = keys %{ $self->{removed}{$zone} };
        $self->_verify_some($zone, $unknown, 'absent', @removed) if @removed;

        $self->_close_interval($zone, $next - 1,
                               $self->{since}{$zone} + $lowest);
        $self->{checked}{$zone} = $next;
        $self->{since}{$zone} = $now;
    }
}


# Notes that the numbers given out since the last look were acknowledged after
# it. Looks within a minute count as one.

sub _close_interval {
    my ($self, $zone, $last, $earliest) = @_;

    my $intervals = $self->{intervals}{$zone} //= [];
    my $before = $intervals->[-1];

    if ($before && $earliest >= $before->[2]
        && $earliest - $before->[2] < 60)
    {
        $before->[1] = $last;
    } else {
        push @$intervals, [$self->{checked}{$zone} // 1, $last, $earliest];
    }
}


sub _verify_some {
    my ($self, $zone, $may_be_unknown, $expected, @numbers) = @_;

    my @keys = map { $self->_name($zone, $_) } @numbers;
    my $wrong = $expected eq 'present' ? 'absent' : 'present';
    my $last = '';

    wait_until(sub {
        my %request = (method => 'POST', path => "/bloom/zones/$zone/test",
                       body => join "\n", @keys);
        $self->_exchange(\%request);
        my $response = $request{response} or return;
        my $body = $last = $response->body;

        if ($response->status != 200) {
            $self->_wrong(failed => "$request{path}: $response");
            return 1;
        }

        # one answer for each key; only wrong ones are looked at closely

        my ($answers) = $body =~ /"answers":\s*\[(.*?)\]/s;
        my %count = map { $_ => scalar(() = ($answers // '') =~ /"$_"/g) }
                        qw(present absent unknown);

        $self->{count}{asked} += @keys;
        $self->{count}{unknown} += $count{unknown};

        if ($count{present} + $count{absent} + $count{unknown} != @keys) {
            $self->_wrong(failed => "$request{path}: " . @keys
                                    . ' keys, answered ' . substr $body, 0, 80);
            return 1;
        }

        if ($count{$wrong} && $expected eq 'present') {
            my @results = @{ $response->json->{answers} };
            $self->_lost($zone, $keys[$_], $numbers[$_], 'verified')
                for grep { $results[$_] eq 'absent' } 0 .. $#keys;
            return 1;

        } elsif ($count{$wrong}
                 && !$self->{ledger}->doubt($zone, @request{qw(start end)}))
        {
            my @results = @{ $response->json->{answers} };
            $self->_returned($zone, $keys[$_], 'verified')
                for grep { $results[$_] eq 'present' } 0 .. $#keys;
            return 1;
        }

        return $count{unknown} == 0 || $may_be_unknown;
    }) or $self->_wrong(failed => "zone $zone stays unknown: "
                                  . substr $last, 0, 80);
}


# Tests that the zone as an image has every key that was acknowledged before the
# request for the image, and none that was removed before.

sub _image {
    my ($self, $zone) = @_;

    my @keys = map { $self->_name($zone, $_) } $self->_all_acked($zone);
    my @removed = map { $self->_name($zone, $_) }
                      keys %{ $self->{removed}{$zone} };

    my %request = (method => 'GET', path => "/bloom/zones/$zone/image");
    $self->_exchange(\%request);
    my $response = $request{response} or return;

    if ($response->status != 200) {
        $self->_wrong(failed => "$request{path}: $response->{head}"
                                . substr $response->body, 0, 300);
        return;
    }

    my $file = $self->{t}->write_file("client.$self->{number}.bloom",
                                      $response->body);
    my ($exit, $out, $err) = $self->{t}->run_tool('test', $file, {
        stdin => join '', map { "$_\n" } @keys, @removed, 'base700' });
    my %absent = map { $_ => 1 } $out =~ /^absent (\S+)$/mg;

    $self->{count}{images}++;

    $self->_lost($zone, $_, undef, 'not in an image of the zone')
        for grep { $absent{$_} } @keys, $zone eq 'shield' ? 'base700' : ();

    if (!$self->{ledger}->doubt($zone, @request{qw(start end)})) {
        $self->_returned($zone, $_, 'in an image of the zone')
            for grep { !$absent{$_} } @removed;
    }

    $self->_wrong(failed => "an image of $zone: $err") if $exit > 1;
}


# Stops the additions that nothing can refuse; the others go on.

sub _calm { $_[0]{calm} = 1 }
sub _lively { $_[0]{calm} = 0 }
sub _resume { $_[0]{paused} = 0 }


# Closes idle connections, because a paused client does not see them end.

sub _pause {
    my ($self) = @_;

    $self->{paused} = 1;
    $self->{idle} = [];
    $self->{late} = [];
}


# Forgets the keys of a zone that the driver recreates or clears.

sub _forget {
    my ($self, $zone) = @_;

    $self->{acked}{$zone} = '';
    $self->{removed}{$zone} = {};
    $self->{in_doubt}{$zone} = {};
    $self->{intervals}{$zone} = [];
    $self->{checked}{$zone} = $self->{next}{$zone};
}


# Adds all removed keys of a zone again.

sub _restore {
    my ($self, $zone) = @_;

    my @numbers = keys %{ $self->{removed}{$zone} } or return;

    $self->{removed}{$zone} = {};
    @{ $self->{in_doubt}{$zone} }{@numbers} = (1) x @numbers;

    my $request = $self->_batch($zone, 'keys', '', @numbers);
    $self->_exchange($request);
    $self->_added($zone, $request);
}


# Takes keys for acknowledged that are not, for the checker's own test.

sub _pretend {
    my ($self, $zone) = @_;

    $self->_acknowledge($zone, $self->_numbers($zone, 10));
}


1;
