# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Durable;

# Runs operations on zones of several kinds at once, notes in a ledger what each
# zone promised, and checks after a failure that each zone kept it.
#
#   my $zones = BloomTest::Durable->new($t, 'disk', mark => sub { ... });
#   $zones->begin('image', 'empty');     a directory without any key
#   $t->run;
#   $zones->run(add => 'a', 'b');        on all of these zones
#   $zones->moments(sub { ... });        what the marks are worth
#   my @problems = $zones->check($moment);
#
# Options: mark, a function that returns a number for the present moment; disk,
# an object that does what other programs do with images, as PowerLoss does.
# Each zone is called like its kind.  The directory has `state`, the state
# directories, and `images`, where the file of file= is called like its zone.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);
use File::Path qw(make_path remove_tree);

use BloomTest::Api;
use BloomTest::Base;
use BloomTest::Process qw(wait_until);
use BloomTest::Promises;
use BloomTest::Source;
use BloomTest::Zones;

our @EXPORT = qw(sequences long);

use constant NEVER => 'never1', 'never2', 'never3';

# What the configuration of each kind of zone has besides its file, and options
# of its image.

my %kind = (
    image => { has => '', image => [qw(-n 1k)] },
    fuse => { has => ' max_keys=50k', image => [qw(--layout fuse)] },
    empty => { has => ' capacity=1k fpr=1e-9' },
    growing => { has => ' capacity=4 max_keys=100k fpr=1e-9' },
    expiring => { has => ' capacity=1k fpr=1e-9 expire=8h' },
    tick => { has => ' capacity=8k fpr=0.001' },
    source => { has => '; bloom_source zone=source name=s max_lag=off',
                image => [qw(-n 1k --source s=1)], position => 1 },
);

# The operations.  `notes` is the change in the ledger, `asks` makes the request
# and returns the response.  With `durable`, all changes are durable then; with
# `kept`, this one is.

my %operation = (
    add => { notes => 'add', asks => \&_post, path => 'keys' },
    durable => { notes => 'add', asks => \&_post, durable => 1,
                 path => 'keys?durable=true' },
    remove => { notes => 'remove', asks => \&_post, path => 'remove' },
    durable_remove => { notes => 'remove', asks => \&_post, durable => 1,
                        path => 'remove?durable=true' },
    restore => { notes => 'restore', asks => \&_post,
                 path => 'clear?only=removed' },
    clear => { notes => 'clear', asks => \&_post, path => 'clear',
               durable => 1 },
    checkpoint => { asks => \&_post, path => 'checkpoint', durable => 1 },
    bloom_add => { notes => 'add', asks => \&_get, path => 'add' },
    bloom_adds => { notes => 'add', each => 1, asks => \&_get_list },
    bloom_remove => { notes => 'remove', asks => \&_get, path => 'remove' },
    changes => { notes => 'changes', asks => \&_changes },
    upload => { notes => 'upload', asks => \&_upload, kept => 1 },
    rename => { notes => 'file', asks => \&_rename, kept => 1 },
    move => { notes => 'file', asks => \&_move },
    synchronised => { asks => \&_synchronised, durable => 1 },
    segments => { asks => \&_segments },
);


# Sequences of operations: a name, kinds of zones, the operations, and `then`,
# what may follow after a failure.

my @keyed = qw(image empty growing fuse expiring);

my @sequences = (
    ['additions', \@keyed,
     [[add => 'a'], [add => long('b', 'c')], [bloom_add => 'd'],
      [synchronised => ], [add => 'e'], [add => long('f')], [add => 'g'],
      [bloom_adds => long('h', 'i'), 'j']]],

    ['durable additions', [qw(image growing expiring)],
     [[durable => 'a'], [add => long('b')], [durable => 'c'],
      [bloom_add => 'd'], [durable => long('e')], [add => long('f'), 'g']]],

    ['removals', [qw(image empty expiring)],
     [[durable_remove => 'id1'], [durable => 'a', 'b'], [remove => 'a'],
      [add => 'a'], [durable_remove => 'b'], [remove => 'a'], [add => 'c']],
     then => [[durable => 'b'], [remove => 'b'], [add => 'd']]],

    ['removals by bloom_remove', ['empty'],
     [[durable => 'a', 'b'], [bloom_remove => 'a'], [bloom_add => 'c'],
      [bloom_remove => 'c'], [durable => 'd'], [bloom_remove => 'b']]],

    ['restorations', [qw(image growing)],
     [[durable_remove => 'id1'], [durable => 'a'], [remove => 'a'],
      [restore => ], [remove => 'id2'], [add => 'b'], [restore => ]]],

    ['changes of a source', ['source'],
     [[changes => 3, '+a', '-id1'], [changes => 4, '+b', '-a'],
      [synchronised => ], [changes => 5, '+' . (long('c'))[0]],
      [changes => 6, '-b'], [changes => 7, '+a', '+d']],
     then => [[changes => 20, '+e'], [changes => 21, '-e', '+f']]],

    ['another image', ['image', 'fuse'],
     [[durable => 'a'], [add => 'b'], [rename => 'id1', 'image1'],
      [add => 'c'], [durable => 'd'], [rename => 'image2']],
     then => [[durable => 'e'], [rename => 'image3'], [add => 'f']]],

    ['an uploaded image', ['image', 'fuse'],
     [[durable => 'a'], [add => 'b'], [upload => 'id1', 'image1'],
      [add => 'c'], [upload => 'image2'], [add => 'd']]],

    ['a clear', [qw(image empty expiring)],
     [[durable => 'a'], [add => 'b'], [clear => ], [add => 'c'],
      [durable => 'd'], [add => 'e']]],

    ['a clear of an uploaded image', ['image'],
     [[durable => 'a'], [upload => 'image1'], [add => 'b'], [clear => ],
      [add => 'c']]],

    ['a checkpoint', [qw(image growing expiring)],
     [[durable => 'a'], [add => 'b'], [checkpoint => ], [add => 'c'],
      [durable => 'd'], [checkpoint => ], [add => 'e']]],

    ['further segments', ['empty'],
     [[durable => 'a'], [segments => 'b'], [durable => 'c'], [add => 'd']],
     then => [[segments => 'e'], [durable => 'f'], [add => 'g']]],
);


sub sequences { return @sequences }


# Returns keys of most of a page each.

sub long { return map { "$_-" . 'x' x 3000 } @_ }


sub new {
    my ($class, $t, $directory, %option) = @_;

    return bless { t => $t, directory => $directory, %option }, $class;
}


# Writes the configuration for zones of these kinds, and an empty directory.

sub begin {
    my ($self, @kinds) = @_;

    my ($t, $directory) = @$self{qw(t directory)};
    my $below = $t->testdir . "/$directory";
    my @zones;

    remove_tree($below, { keep_root => 1 });
    make_path(map { "$below/$_" } 'images', 'state',
              map { "state/$_" } @kinds);
    chmod 0711, "$below/state";
    chmod 0700, map { "$below/state/$_" } @kinds;

    $self->{kinds} = \@kinds;
    $self->{ledger} = {};
    $self->{match} = {};

    for (@kinds) {
        my $kind = $kind{$_};
        my $file = $kind->{image} ? " file=$below/images/$_.bloom" : '';

        $t->write_file("$directory/images/$_.bloom",
                       $self->image($_, 'id1', 'id2')) if $file;
        $self->{ledger}{$_} = BloomTest::Promises->new(
            file => $file ? ['id1', 'id2'] : [], keys => [NEVER],
            position => $kind->{position});
        push @zones, "zone=$_$file$kind->{has}";
    }

    configure($t, \@zones, api => 1, add => !$self->{ledger}{source},
              remove => !$self->{ledger}{source},
              server => join('', map { "location = /adds/$_ {"
                  . " bloom_add \$arg_k zone=$_ split=,; return 200; }\n" }
                  $self->{ledger}{source} ? () : @kinds),
              http => "bloom_state_path $below/state;");
}


# Starts the zones for the first time: each gets a durable key, and a control
# page that says so.

sub first_keys {
    my ($self) = @_;

    $self->{t}->run;
    $self->run(@$_) for $self->{ledger}{source}
                        ? ([changes => 2, '+first'], ['synchronised'])
                        : [durable => 'first'];
    $self->{t}->kill_all;
    $self->settle;
}


# Returns the bytes of an image for a kind of zone, with the as_of of the
# attribute `as_of`, if that is set.

sub image {
    my ($self, $kind, @keys) = @_;

    my $as_of = $self->{as_of} // '';

    return $self->{image}{"$kind $as_of @keys"} //= do {
        $self->{t}->build_image('built.bloom', \@keys, '-p', '1e-9',
                                @{ $kind{$kind}{image} },
                                $as_of ? ('--as-of', rfc3339($as_of)) : ());
        $self->{t}->read_file('built.bloom');
    };
}


# Runs an operation on each zone.

sub run {
    my ($self, $name, @value) = @_;

    my $operation = $operation{$name} // croak "no operation $name";

    for my $zone (@{ $self->{kinds} }) {
        my $ledger = $self->{ledger}{$zone};
        my @records = $operation->{each} ? map { [$_] } @value : [@value];
        my @changes = !$operation->{notes} ? ()
            : map { $ledger->begin($operation->{notes}, $_, $self->{mark}->()) }
                  @records;

        my $response = $operation->{asks}->($self, $zone, $operation->{path},
                                            @value);

        croak "zone $zone: no $name: $response"
            if ref $response && $response->status != 200;

        my $done = $self->{mark}->();
        $_->{done} = $done for @changes;
        $_->{durable} = $done for $operation->{kept} ? @changes : ();
        $ledger->durable($done) if $operation->{durable};
    }
}


# Turns all marks into moments.

sub moments {
    my ($self, $moment) = @_;

    $self->{ledger}{$_}->moments($moment) for @{ $self->{kinds} };
}


sub _post {
    my ($self, $zone, $path, @keys) = @_;

    return api($self->{t}, POST => "zones/$zone/$path",
               body => join '', map { "$_\n" } @keys);
}


sub _get {
    my ($self, $zone, $path, @keys) = @_;

    my $response;
    $response = $self->{t}->get("/$path/$zone?k=$_") for @keys;

    return $response;
}


# Adds keys in one request, which writes a record for each of them at once.

sub _get_list {
    my ($self, $zone, undef, @keys) = @_;

    return $self->{t}->get("/adds/$zone?k=" . join ',', @keys);
}


sub _changes {
    my ($self, $zone, undef, $position, @changes) = @_;

    return changes($self->{t}, $zone, position($self->{t}, $zone), $position,
                   @changes);
}


sub _upload {
    my ($self, $zone, undef, @keys) = @_;

    return api($self->{t}, PUT => "zones/$zone/image",
               body => $self->image($zone, @keys));
}


# A program that writes an image synchronises it before the rename, and the
# directory after it, as ngx-bloom build does.

sub _rename {
    my ($self, $zone, undef, @keys) = @_;

    my $disk = $self->{disk};

    $disk->store("images/$zone.new", $self->image($zone, @keys));
    $disk->sync("images/$zone.new");
    $disk->rename("images/$zone.new", "images/$zone.bloom");
    $disk->sync('images');

    return _post($self, $zone, 'reload');
}


# mv synchronises nothing.

sub _move {
    my ($self, $zone, undef, @keys) = @_;

    my $disk = $self->{disk};

    $disk->store("images/$zone.new", $self->image($zone, @keys));
    $disk->rename("images/$zone.new", "images/$zone.bloom");

    return _post($self, $zone, 'reload');
}


sub _synchronised {
    my ($self, $zone) = @_;

    return wait_until(sub {
        zone_state($self->{t}, $zone)->{journal}{unsynced_bytes} == 0;
    }) || croak "zone $zone is not synchronised";
}


# Adds keys until a new segment has some of them.

sub _segments {
    my ($self, $zone, undef, $name) = @_;

    my $ledger = $self->{ledger}{$zone};

    # each is a record, since a longer request would be several

    for my $n (1 .. 37) {
        my @keys = ("$name$n-" . 'x' x 60_000);
        my $change = $ledger->begin('add', \@keys, $self->{mark}->());

        add($self->{t}, $zone, \@keys);
        $change->{done} = $self->{mark}->();
    }
}


# Returns a zone's state, and its answers about keys, as Promises has them.

sub _answers {
    my ($self, $zone) = @_;

    my $t = $self->{t};
    my %sign = (present => 1, absent => 0, unknown => '?');
    my $answers = api($t, POST => "zones/$zone/test", body =>
                      join "\n", $self->{ledger}{$zone}->keys)->json->{answers};
    my $state = zone_state($t, $zone);

    return ($state, join '', map { $sign{$_} } @$answers);
}


# Starts nginx, and checks that each zone kept what it had promised up to a
# moment: that it answers as after one of the outcomes, that it answers the same
# after kill -9 and another start, that the journal is in order, and that what
# is added durably then is there.  Returns the problems.  Options:
#
#   lies      the disk has lost what it said it has, or what it refused: the
#             zone may say that it does not know
#   refuses   the start may be refused by a message that names a file of the
#             state directory
#   started   a function that is called when the zones have answered
#   once      there is no second start, and nginx runs on

sub check {
    my ($self, $moment, %option) = @_;

    my $t = $self->{t};
    my ($how, $log) = $t->try_run;

    $self->{log} = $log;

    if ($how ne 'starts') {
        my ($line) = $log =~ /(\[emerg\].*)/;

        return if $option{refuses} && $how eq 'refused'
                  && ($line // '') =~ m{"[^"]*/state/\w+/[^"]+"};
        return 'the start ' . ($how eq 'refused' ? 'is refused' : $how)
               . ': ' . ($line // $log);
    }

    my (@problems, %first);

    for my $zone (@{ $self->{kinds} }) {
        my ($problem, $first) = $self->_kept($zone, $moment, $option{lies});

        push @problems, "zone $zone: $problem" if $problem;
        $first{$zone} = $first;
    }

    $option{started}->() if $option{started};

    return @problems if $option{once};

    if (!@problems) {
        for my $zone (@{ $self->{kinds} }) {
            my $r;

            # the helper may not have noticed yet that the disk has room again

            wait_until(sub {
                $r = $zone eq 'source'
                    ? changes($t, $zone, position($t, $zone), 99, '+after')
                    : api($t, POST => "zones/$zone/keys?durable=true",
                          body => 'after');
                return $r->status != 503;
            });

            push @problems, "zone $zone: no key is added after the start: $r"
                if $r->status != 200;
        }
    }

    $t->kill_all;

    for my $zone (@{ $self->{kinds} }) {
        my $state = "$t->{dir}/$self->{directory}/state/$zone";
        my ($exit, $out, $err) = $t->run_tool('journal', '--json', $state);

        push @problems, map { "zone $zone: base: $_" }
                            base_problems("$state/base");

        push @problems, "zone $zone: ngx-bloom journal: $out$err"
            if !$option{lies}
               && ($exit != 0
                   || $out =~ /"(?:missing|broken|torn)": *[1-9]/);
    }

    return @problems if @problems;

    ($how, $log) = $t->try_run;
    return "the second start fails: $log" if $how ne 'starts';

    for my $zone (@{ $self->{kinds} }) {
        my (undef, $answers) = $self->_answers($zone);
        my $after = api($t, GET => "zones/$zone/keys?key=after")
                        ->json->{answer};

        push @problems, "zone $zone: answers $answers after the second start,"
                        . " not $first{$zone}" if $answers ne $first{$zone};
        push @problems, "zone $zone: a durable key is $after after the second"
                        . ' start' if $after ne 'present';
    }

    $t->kill_all;

    return @problems;
}


# Returns what is wrong with a zone's answers, or '', and the answers.

sub _kept {
    my ($self, $zone, $moment, $lies) = @_;

    my $ledger = $self->{ledger}{$zone};
    my ($state, $answers) = $self->_answers($zone);
    my $position = $state->{source}{position} // '';
    my @outcomes = $ledger->outcomes($moment);

    my ($match) = grep {
        $_->{answers} eq $answers && $_->{position} eq $position
    } @outcomes;

    $self->{match}{$zone} = $match;

    return ('', $answers) if $match && ($lies || $state->{state} eq 'serving');

    # a zone that does not know may not be wrong

    return ('', $answers) if $lies && $state->{state} ne 'serving' && !grep {
        my $n = $_;
        my $answer = substr $answers, $n, 1;

        $answer eq '0' && !grep { substr($_->{answers}, $n, 1) eq '0' }
                                @outcomes;
    } 0 .. length($answers) - 1;

    return (sprintf('%s, answers %s%s about %s instead of %s', $state->{state},
                    $answers, $position && " at $position",
                    join(',', map { substr $_, 0, 8 } $ledger->keys),
                    join(' or ', map {
                        $_->{answers} . ($_->{position} && "at $_->{position}")
                    } @outcomes)),
            $answers);
}


# The answers of the last check are what is left; or everything, if there was
# none since begin().  Returns how many changes are lost.

sub settle {
    my ($self) = @_;

    my $lost = 0;

    for my $zone (@{ $self->{kinds} }) {
        my $ledger = $self->{ledger}{$zone};

        $lost += @{ $ledger->{changes} };
        $ledger->settle($self->{match}{$zone});
        $lost -= @{ $ledger->{changes} };
    }

    return $lost;
}


1;
