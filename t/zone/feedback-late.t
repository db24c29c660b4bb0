#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Lookups of false positives, late responses of the backend, additions,
# removals, loads, reloads, checkpoints, starts and kills, in random order.  A
# ledger knows which keys the zone owes: each of its later answers about them is
# "present".

use strict;
use warnings;

use List::Util qw(first shuffle);

use BloomTest;
use BloomTest::Api;
use BloomTest::HeldBackend;
use BloomTest::Process qw(now wait_until);
use BloomTest::Zones;

# FEEDBACK_SEED=N repeats a run, as far as the scheduling of processes allows it.

my $seed = $ENV{FEEDBACK_SEED} // int rand 1e9;
my $steps = $ENV{FEEDBACK_STEPS} // 200;

srand $seed;
diag("FEEDBACK_SEED=$seed FEEDBACK_STEPS=$steps");

# `after`, s; for how long the backend may lack the row of an added key,
# s, which is less than the 16 minutes of the product; from how many keys events
# choose; how many responses the backend holds; after how many events the zone
# is given time to except.

use constant {
    AFTER => 1, RECENT => 15 * 60, HOT => 12, HELD => 16, SETTLE => 25,
};

my $t = BloomTest->new;
my $dir = $t->testdir;
my @ids = keys_of('id', 300);

configure($t, ['zone=ids file=ids.bloom'], api => 1, add => 1, workers => 3,
          server => <<'CONF');
        location /of/ids {
            bloom_reject absent $arg_id zone=ids;
            bloom_feedback 404 except=on rate=1000000r/s after=1s;
            proxy_read_timeout 1h;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF

# The ledger.  Of each key it knows
#
#   added      1: its addition was acknowledged, and no removal was sent since
#   add_began  when the request that adds it was sent
#   removed    1: a removal was sent, and no addition was acknowledged since
#   row        1: the backend has its row
#   adds       the connection on which the response to its addition comes
#   excepted    1: it was an excepted key when it was last looked at

my %key;
my @hot;          # keys that events are about
my @held;         # requests whose responses the backend holds back
my @images;       # {name, build_id, has}: `has` is a hash of keys
my $serving;      # the image that serves
my %switch;       # its generation began between `from` and `to`; `number` of it
my $load;         # {image, from, connection} of a load that may not have ended
my @false;        # false positives of that image that are not used yet
my $last_key = 0;
my %seen;         # how often something happened
my @trace;        # what happened: [keys, text]
my $step = 0;

my $backend = BloomTest::HeldBackend->new($t, 8081, \&status_of_row);


sub chance { return rand() < $_[0] }
sub one_of { return $_[rand @_] }

# Returns a key for an addition or a removal; often one that is excepted.

sub hot_key {
    my @excepted = grep { $key{$_}{excepted} } @hot;

    return one_of(@excepted && chance(0.3) ? @excepted : @hot);
}

sub trace { push @trace, [$_[0], "step $step: $_[1]"] }


# Returns 1 if an answer about the key must be "present".

sub owed {
    my ($key) = @_;

    return 1 if $key{$key}{added};
    return 0 if $key{$key}{removed};

    return $serving->{has}{$key} && (!$load || $load->{image}{has}{$key})
           ? 1 : 0;
}


# Returns 1 if the product promises to except no key although the backend lacks
# its row: the key was added, or its image was loaded, a short time ago.  The
# backend looks for the row after nginx looked up the key.

sub may_lack {
    my ($key) = @_;

    my $now = now() + 0.05;
    my $record = $key{$key};

    my $after_load = $now - $switch{from} < AFTER;
    my $after_next = !$load || $now - $load->{from} < AFTER;

    if (defined $record->{add_began}) {
        return 1 if $now - $record->{add_began} < AFTER;

        return ($after_load || ($record->{add_began} > $switch{to}
                                && $now - $record->{add_began} < RECENT))
               && $after_next;
    }

    return ($after_load || !$serving->{has}{$key}) && $after_next;
}


# Returns the backend's status for a key.  The backend gets the row of a key
# that exists at a random time, but not later than it must.

sub status_of_row {
    my ($key) = @_;

    my $record = $key{$key} //= {};

    return 200 if $record->{row};

    my $exists = defined $record->{add_began}
                 || !$record->{removed}
                    && ($serving->{has}{$key}
                        || $load && $load->{image}{has}{$key});

    $record->{row} = 1 if $exists && (!may_lack($key) || chance(0.3));

    $seen{'lacks the row of an owed key'}++ if owed($key) && !$record->{row};

    return $record->{row} ? 200 : 404;
}


# Reports that an owed key is not present, and ends the test.

sub broken {
    my ($key, $how) = @_;

    fail("$key is owed, but $how");
    diag("FEEDBACK_SEED=$seed FEEDBACK_STEPS=$steps, in step $step");
    diag(api($t, GET => "zones/ids/keys?key=$key")->body);
    diag($_->[1]) for grep { !@{ $_->[0] } || grep { $_ eq $key } @{ $_->[0] } }
                           @trace;
    die "a promise is broken\n";
}


# Tests that the zone has the keys that it owes, and returns them.

sub check {
    my @owed = grep { owed($_) } sort keys %key;
    my @answers = @owed ? lookup_keys($t, 'ids', @owed) : ();

    for (0 .. $#owed) {
        broken($owed[$_], "POST test says \"$answers[$_]\"")
            if $answers[$_] ne 'present';
    }

    return @owed;
}


# Tests a key that the zone owes by GET keys and by a request.

sub check_key {
    my ($key) = @_;

    my $answer = api($t, GET => "zones/ids/keys?key=$key")->json->{answer};

    broken($key, "GET keys says \"$answer\"") if $answer ne 'present';

    passes($key);
}


# Makes a request for a key, which the backend answers at once.

sub passes {
    my ($key) = @_;

    my $held = looks_up($key);
    let_out($held) if $held;
}


# Makes a request for a key.  Returns it if the backend holds its response.

sub looks_up {
    my ($key) = @_;

    my $held = $backend->asks('/of/ids', $key);

    trace([$key], "lookup of $key: "
                  . (ref $held ? "$held->{status} of the backend" : $held));

    if (!ref $held) {
        broken($key, "nginx answers $held") if owed($key);
        return;
    }

    $held->{number} = $switch{number};

    return $held;
}


# Lets the backend answer a request, and notes whether its key is excepted.

sub let_out {
    my ($held) = @_;

    my $key = $held->{key};

    count_late($held);
    trace([$key], "response $held->{status} for $key");

    $backend->lets_out($held);
    my $status = $backend->status_of($held);

    die "step $step: status $status for $key\n"
        if $status != $held->{status}
           && ($status != 0 || !$seen{'kill of a worker'});

    notice_excepted($key) if $status == 404;
}

sub notice_excepted {
    my ($key) = @_;

    my $got = api($t, GET => "zones/ids/keys?key=$key")->json;

    return if $got->{answer} eq 'unknown';

    my $excepted = $got->{expressions}[0]{excepted} ? 1 : 0;

    if ($excepted && !$key{$key}{excepted}) {
        $seen{excepted}++;
        trace([$key], "$key is excepted");
    }

    $key{$key}{excepted} = $excepted;
}

sub count_late {
    my ($held) = @_;

    return if $held->{status} != 404;

    $seen{'404 from before another load'}++
        if $held->{number} ne $switch{number};
    $seen{'404 for a key that is owed'}++ if owed($held->{key});
}


# Returns new keys that the filter takes for present and that nobody added.

sub fresh {
    my ($n) = @_;

    while (1) {
        @false = grep { !$serving->{has}{$_} } @false;
        last if @false >= $n;

        my @keys = map { 'no' . ++$last_key } 1 .. 100;
        my @answers = lookup_keys($t, 'ids', @keys);

        push @false, @keys[grep { $answers[$_] eq 'present' } 0 .. $#keys];
    }

    my @keys = splice @false, 0, $n;
    $key{$_} //= {} for @keys;

    return @keys;
}

sub refill {
    push @hot, fresh(HOT - @hot) if @hot < HOT;
}


# Sends an addition of a key.  added() reads the response.

sub adds {
    my ($key) = @_;

    my $how = one_of('POST keys', 'POST keys durable', 'bloom_add');
    my $record = $key{$key};
    my $connection = $t->connect;

    $record->{row} = 1 if chance(0.3);
    $seen{'addition of an excepted key'}++ if $record->{excepted};
    trace([$key], "$how of $key" . ($record->{row} ? '' : ', no row'));

    $record->{add_began} = now();
    $record->{adds} = $connection;

    $connection->send($how eq 'bloom_add'
        ? $t->request_text(GET => "/add/ids?k=$key")
        : $t->request_text(POST => '/bloom/zones/ids/keys'
                                   . ($how =~ /durable/ ? '?durable=true' : ''),
                           body => "$key\n"));
}

sub added {
    my ($key) = @_;

    my $record = $key{$key};
    my $connection = delete $record->{adds} or return;
    my $status = $connection->response('GET')->status;

    trace([$key], "the addition of $key is answered with $status");

    if ($status == 200) {
        $record->{added} = 1;
        $record->{removed} = 0;
        $seen{addition}++;

    } elsif ($status != 0) {
        die "step $step: an addition is answered with $status\n";
    }
}

sub all_added { added($_) for grep { $key{$_}{adds} } sort keys %key }


# Notes which image serves after what may have changed it.

sub switched {
    my ($from) = @_;

    my $state;

    wait_until(sub {
        $state = zone_state($t, 'ids');
        return $state->{image} && !$state->{load}{in_progress};
    }) or die "step $step: no image serves\n";

    my $number = "$state->{generation} of " . $t->master;

    return if $number eq ($switch{number} // '');

    my $id = $state->{image}{build_id};
    my $image = first { $_->{build_id} eq $id } @images
        or die "step $step: build id $id is not known\n";

    if ($serving && $image != $serving) {
        $seen{'another image'}++;
        $seen{'another image with an excepted key'}
            += grep { $key{$_}{excepted} && $image->{has}{$_} } keys %key;
        $_->{excepted} = 0 for values %key;
        @false = ();

    } else {
        $seen{'load of the same image'}++;
    }

    $serving = $image;
    %switch = (from => $from, to => now(), number => $number);
    trace([], "generation $state->{generation} serves, $image->{name}");
}

sub load_ends {
    return if !$load;

    my $status = $load->{connection}->response('POST')->status;
    my $from = $load->{from};

    trace([], "the load is answered with $status");
    die "step $step: a load is answered with $status\n"
        if $status !~ /^(?:200|503|0)$/;

    switched($from);
    undef $load;
}


# Images: the file of the zone is a link to one of them.

sub image {
    my ($name, @keys) = @_;

    my (undef, $json) = $t->run_tool('info', '--json', "$dir/$name.bloom");

    $json =~ /"build_id":\s*"(\w+)"/ or die "no build id: $json\n";

    push @images, { name => $name, build_id => $1,
                    has => { map { $_ => 1 } @keys } };

    return $images[-1];
}

sub build {
    my @keys = @_;

    my $name = 'built' . @images;
    my $image_seed = one_of(1, 2);

    $t->build_image("$name.bloom", [@ids, @keys], '-p', '0.2', '-n', 400,
                    '--seed', $image_seed);
    trace(\@keys, "$name with seed $image_seed has @keys");

    return image($name, @keys);
}

# Returns an image to load next: a new one, one of "ngx-bloom add", or an
# earlier one.

sub next_image {
    my $how = one_of(qw(build build build add add earlier));

    return $images[-1 - rand(@images > 4 ? 4 : @images)] if $how eq 'earlier';

    my %some = map { $_ => 1 } grep { chance(0.4) && !$key{$_}{removed} } @hot;

    $seen{'key of an image without a row'}
        += grep { !$key{$_}{row} } keys %some;

    return build(sort keys %some) if $how eq 'build';

    my $from = one_of($serving, $images[-1]);
    my $name = 'with' . @images;

    $t->write_file("$name.bloom", $t->read_file("$from->{name}.bloom"));

    my @some = sort keys %some;
    my ($exit, undef, $err)
        = $t->run_tool('add', '-q', "$dir/$name.bloom", '-',
                       { stdin => join '', map { "$_\n" } @some });

    die "ngx-bloom add: $err\n" if $exit != 0;
    trace(\@some, "$name is $from->{name} with @some");

    return image($name, keys %{ $from->{has} }, @some);
}

sub begins_load {
    my ($image) = @_;

    install_image($t, $image->{name});
    trace([], "POST reload of $image->{name}");

    $load = { image => $image, from => now(), connection => $t->connect };
    $load->{connection}->send($t->request_text(
        POST => '/bloom/zones/ids/reload'));
}


# Reloads nginx, perhaps with another image in the place of the file.  Old
# workers stay as long as the backend holds responses to them.

sub hup {
    my ($image) = @_;

    my $from = now();

    install_image($t, $image->{name}) if $image;
    trace([], 'HUP' . ($image ? " with $image->{name}" : ''));
    $t->reload(keep_old => 1);
    $seen{HUP}++;
    switched($from);
}


sub kills_worker {
    trace([], 'kill -9 of a worker');
    $t->kill_worker('KILL', one_of($t->workers));
    $seen{'kill of a worker'}++;
}


# What a step does, and how often in proportion to others.

my %event = (

    lookup => [26, sub {
        return if @held >= HELD;

        my $key = one_of(@hot);
        my $held = looks_up($key);

        push @held, $held if $held;

        # a key that the image that serves does not find is of no more use

        @hot = grep { $_ ne $key } @hot
            if !$held && !$key{$key}{excepted} && !$key{$key}{adds}
               && chance(0.5);
    }],

    late => [24, sub {
        my ($held) = splice @held, rand @held, 1 or return;
        let_out($held);
    }],

    except => [8, sub { passes(one_of(@hot)) }],

    add => [12, sub {
        my $key = hot_key();

        adds($key) if !$key{$key}{adds};
        added($key) if chance(0.7);
    }],

    added => [4, \&all_added],

    # responses and additions at the same moment

    race => [5, sub {
        for my $key (fresh(6)) {
            my $held = looks_up($key);
            push @held, $held if $held;
        }

        my @out = splice @held, @held > 8 ? -8 : 0;
        my @add = grep { !$key{$_}{adds} } map { $_->{key} } @out;
        my %add = map { $_ => 1 } @add;

        begins_load($serving) if !$load && chance(0.1);

        for my $what (shuffle(@out, keys %add)) {
            if (ref $what) {
                count_late($what);
                trace([$what->{key}], "response for $what->{key}");
                $backend->lets_out($what);

            } else {
                adds($what);
            }
        }

        kills_worker() if chance(0.1);

        $backend->status_of($_) for @out;
        added($_) for sort keys %add;
    }],

    remove => [5, sub {
        my $key = hot_key();
        my $record = $key{$key};

        added($key);

        $record->{added} = 0;
        $record->{removed} = 1;
        delete $record->{add_began};
        trace([$key], "POST remove of $key");

        my $status = api($t, POST => 'zones/ids/remove', body => $key)->status;

        die "step $step: a removal is answered with $status\n"
            if $status != 200;

        $record->{row} = 0;
        $seen{removal}++;
    }],

    forget => [3, sub {
        @hot = grep { $key{$_}{adds} || chance(0.7) } @hot;
    }],

    reload_same => [2, sub {
        load_ends();
        begins_load($serving);
        load_ends() if chance(0.5);
    }],

    reload_other => [4, sub {
        load_ends();

        my $image = next_image();

        begins_load($image);
        load_ends() if chance(0.7);
    }],

    load_ends => [3, \&load_ends],

    hup => [1, sub {
        load_ends();
        hup();
    }],

    hup_other => [1, sub {
        load_ends();
        hup(next_image());
    }],

    clear_excepted => [2, sub {
        load_ends();
        trace([], 'POST clear?only=excepted');

        my $status = api($t, POST => 'zones/ids/clear?only=excepted')->status;

        die "step $step: a clear is answered with $status\n" if $status != 200;
        $_->{excepted} = 0 for values %key;
        $seen{clear}++;
    }],

    checkpoint => [2, sub {
        load_ends();
        trace([], 'POST checkpoint');

        my $status = api($t, POST => 'zones/ids/checkpoint')->status;

        die "step $step: a checkpoint is answered with $status\n"
            if $status != 200;
        $seen{checkpoint}++;
    }],

    save => [1, sub {
        load_ends();

        my $response = api($t, GET => 'zones/ids/image');
        my $name = 'saved' . @images;

        die "step $step: no image: " . $response->status . "\n"
            if $response->status != 200;

        $t->write_file("$name.bloom", $response->body);
        image($name, keys %{ $serving->{has} });
        trace([], "$name is saved");
    }],

    kill_worker => [1, sub { kills_worker() }],

    kill_helper => [1, sub {
        begins_load(one_of($serving, $images[-1])) if !$load && chance(0.5);
        trace([], 'kill -9 of the helper');
        $t->kill_helper;
        $seen{'kill of the helper'}++;
        load_ends();
    }],

    # all processes are killed, and nginx starts: excepted keys of a checkpoint
    # return

    start => [0.6, sub {
        all_added() if chance(0.5);
        trace([], 'kill -9 of all processes, and a start');

        my $from = now();

        $t->kill_all;
        all_added();

        @held = ();
        undef $load;

        $t->run;
        switched($from);
        $seen{start}++;

        $_->{excepted} = 0 for values %key;
        notice_excepted($_) for @hot;
    }],
);

# Waits until the zone excepts, since after a load it does not at first.  Then an
# excepted key is added, and a key whose response is late.

sub settle {
    load_ends();

    my ($late, $excepted, @more) = fresh(6);
    my $before = $seen{excepted} // 0;

    # a key that shares its place with a recent addition is not excepted

    wait_until(sub {
        passes($_) for $excepted, @more;
        return ($seen{excepted} // 0) > $before;
    }) or die "step $step: the zone excepts no key: "
              . api($t, GET => 'zones/ids')->body . "\n";

    passes($_) for $excepted, @more;

    my $held = looks_up($late) or die "step $step: $late is absent\n";

    for ($excepted, $late) {
        adds($_);
        added($_);
    }

    let_out($held);
    push @hot, $late, $excepted, @more;
    $seen{settled}++;
}

my @events = map { ($_) x (10 * $event{$_}[0]) } sort keys %event;

build();
install_image($t, $images[0]{name});

my $began = now();

$t->run;
switched($began);
refill();

my $done = eval {
    for (1 .. $steps) {
        $step++;
        refill();

        my $name = one_of(@events);

        $event{$name}[1]->();

        my @owed = check();
        my $recent = first { owed($_) } shuffle @hot;

        check_key(one_of(@owed)) if @owed && chance(0.1);
        check_key($recent) if $recent && chance(0.3);

        settle() if $step % SETTLE == 0;
    }

    settle() if $step % SETTLE != 0;
    let_out($_) for splice @held;
    all_added();

    for my $key (check()) {
        next if !chance(200 / $steps);
        check_key($key);
    }

    1;
};

diag($@) if !$done;
ok($done, 'each key that the zone owes is present in every answer');

if ($done) {
    my $least = $seen{settled} / 2;

    cmp_ok($seen{excepted}, '>=', $least, 'false positives are excepted');
    cmp_ok($seen{'addition of an excepted key'}, '>=', $least,
           'excepted keys are added');
    cmp_ok($seen{'404 for a key that is owed'}, '>=', $least,
           'the backend denies keys that the zone owes');
    note("$_: $seen{$_}") for sort keys %seen;
}

@held = ();    # so that nginx stops

done_testing;
