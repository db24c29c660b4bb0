# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::PowerLoss;

# Makes directories as a loss of power may leave them.  nginx runs once, and
# everything that reaches a directory is recorded.  For each moment of the
# record there are many states that the kernel may have written to the disk by
# then.
#
#   my $power = BloomTest::PowerLoss->new($t, 'disk');   before nginx.conf
#   $power->begin;            what the directory has now is on the disk
#   my $moment = $power->mark;                           a moment of the record
#   $power->store('a.new', $bytes);          what another program does: writes
#   $power->sync('a.new');                   a new file, synchronises it or a
#   $power->rename('a.new', 'a.bloom');      directory, renames it
#   $power->end;              ends the record, and reads it
#   $power->moments;          the number of the last moment
#   $power->moment($mark);    the moment of a mark
#   my $state = $power->at($moment, lies => qr/^journal/);
#   $state->restore(sub { 0 });
#
# What a synchronisation has covered is on the disk.  Everything else is a list
# of `items`, each with versions: version 0 is on the disk, the last version is
# what processes saw.
#
#   page    4096 bytes of a file, written or mapped
#   size    the size of a file
#   name    a name was created, renamed or removed in a directory
#
# restore() takes a function that chooses a version of each item, and makes the
# directory anew.  It may return [VERSION, OTHER, SECTORS] for a torn page: it
# has the sectors (512 bytes) in the bit mask SECTORS from the other version; or
# [VERSION, OTHER, undef, BYTES]: it has the first BYTES bytes from the other
# version.  A change of a name that needs an earlier one is lost with it.

use strict;
use warnings;

use Carp qw(croak);
use File::Find ();
use File::Path qw(make_path);

use BloomTest::Writes;

use constant PAGE => 4096;


sub new {
    my ($class, $t, $directory) = @_;

    my $below = $t->testdir . "/$directory";
    make_path($below);

    return bless {
        t => $t, below => $below,
        writes => BloomTest::Writes->new($t, below => $below, contents => 1),
    }, $class;
}


sub begin {
    my ($self) = @_;

    $self->{base} = [$self->_look];
    $self->{writes}->begin;
    $self->{recording} = 1;
}


# Returns what the directory has: files with path, inode and contents, and
# directories with path and mode.

sub _look {
    my ($self) = @_;

    my @found;

    File::Find::find({ no_chdir => 1, wanted => sub {
        my @stat = lstat or return;
        my %file = (path => $_, mode => $stat[2] & 07777, inode => $stat[1]);

        if (-f _) {
            open my $fh, '<:raw', $_ or croak "$_: $!";
            $file{data} = do { local $/; <$fh> } // '';
        }

        push @found, \%file;
    } }, $self->{below});

    return @found;
}


# Notes a moment, and what mapped files have then.  Returns its mark; 0 before
# the record begins.

sub mark {
    my ($self) = @_;

    return 0 if !$self->{recording};
    return $self->{writes}->mark(glob "$self->{below}/state/*/control");
}


# Writes a new file, and synchronises nothing.

sub store {
    my ($self, $name, $data) = @_;

    my $path = "$self->{below}/$name";
    my $writes = $self->{writes};

    open my $fh, '>:raw', $path or croak "$path: $!";
    my $inode = (stat $fh)[1];
    $writes->note('create', path => $path, inode => $inode);
    print $fh $data;
    close $fh or croak "$path: $!";
    $writes->note('write', path => $path, inode => $inode, data => $data,
                  bytes => length $data);
}


# Synchronises a file or a directory.

sub sync {
    my ($self, $name) = @_;

    my $path = "$self->{below}/$name";

    $self->{writes}->note($_, path => $path, inode => (stat $path)[1],
                          at => $$) for 'begin', 'sync';
}


sub rename {
    my ($self, $from, $to) = @_;

    my ($old, $new) = map { "$self->{below}/$_" } $from, $to;

    rename $old, $new or croak "$old: $!";
    $self->{writes}->note('rename', path => $new, from => $old);
}


sub end {
    my ($self) = @_;

    $self->{entries} = [$self->{writes}->entries];
    $self->{writes}->end;
    $self->{recording} = 0;

    my $moment = 0;
    $self->{marks} = { map { $moment++; $_->{what} eq 'mark'
                             ? ($_->{at} => $moment) : () }
                           @{ $self->{entries} } };
}


sub moments { return scalar @{ $_[0]{entries} } }


# Returns the moment after the last entry that a function accepts.

sub last_moment {
    my ($self, $accepts) = @_;

    my ($moment) = grep { $accepts->($self->{entries}[$_ - 1]) }
                        reverse 1 .. $self->moments;

    return $moment // croak 'no such moment';
}


sub moment { return $_[0]{marks}{$_[1]} // croak "no mark $_[1]" }


# Returns the state of the disk at a moment: what is on it, and what may be.
# Synchronisations of files with a name like `lies` promise nothing.

sub at {
    my ($self, $moment, %option) = @_;

    my $state = bless {
        lies => $option{lies}, below => $self->{below}, files => [],
        inode => {}, names => {}, pending => [], mode => {},
    }, 'BloomTest::PowerLoss::State';

    for (@{ $self->{base} }) {
        $state->{mode}{$_->{path}} = $_->{mode};

        if (defined $_->{data}) {
            my $file = $state->_file($_->{path}, $_->{inode}, 0);
            $file->{size} = [[0, length $_->{data}]];

            for (my $at = 0; $at < length $_->{data}; $at += PAGE) {
                my $page = substr $_->{data}, $at, PAGE;
                $file->{page}{$at / PAGE} = [[0, $page]] if $page =~ tr/\0//c;
            }

            $state->{names}{$_->{path}} = $file;

        } elsif ($_->{path} ne $self->{below}) {
            $state->{names}{$_->{path}} = 'directory';
        }
    }

    $state->{seen} = { %{ $state->{names} } };
    $state->_apply($self->{entries}[$_ - 1], $_) for 1 .. $moment;

    return $state;
}


package BloomTest::PowerLoss::State;

use strict;
use warnings;

use Carp qw(croak);
use File::Basename qw(basename dirname);
use File::Path qw(remove_tree);

use constant { PAGE => 4096, SECTOR => 512 };


# Makes a file that has this inode from now on.  Its pages and its size have
# versions, each with the moment of its change; the first one is on the disk.

sub _file {
    my ($self, $path, $inode, $when) = @_;

    my $file = { name => basename($path), zone => basename(dirname($path)),
                 page => {}, size => [[$when, 0]], cut => [] };

    push @{ $self->{files} }, $file;

    return $self->{inode}{$inode} = $file;
}


# Applies an entry of the record.

sub _apply {
    my ($self, $entry, $when) = @_;

    my ($what, $path, $at, $bytes) = @$entry{qw(what path at bytes)};
    my $file = $entry->{inode} ? $self->{inode}{$entry->{inode}} : undef;

    if ($what eq 'create') {
        $file = $entry->{inode} ? $self->_file($path, $entry->{inode}, $when)
                                : 'directory';
        push @{ $self->{pending} }, { when => $when, what => $what,
                                      path => $path, file => $file };
        _rename($self->{seen}, $self->{pending}[-1]);

    } elsif ($what =~ /^(?:rename|remove)$/) {
        push @{ $self->{pending} }, { when => $when, what => $what,
                                      path => $path, from => $entry->{from} };
        _rename($self->{seen}, $self->{pending}[-1]);

    } elsif ($what eq 'begin') {
        $self->{begun}{"$at $path"} = $when;

    } elsif ($what eq 'syncfs') {
        my $begun = $self->{begun}{"$at $path"};

        $self->_synced($_, $begun) for @{ $self->{files} };
        $self->_names_synced(undef, $begun);

    } elsif ($what eq 'sync') {
        my $begun = $self->{begun}{"$at $path"} // $when;

        $file ? $self->_synced($file, $begun)
              : $self->_names_synced($path, $begun);

    } elsif (!$file) {
        return;

    } elsif ($what eq 'truncate') {
        my $last = int(($bytes + PAGE - 1) / PAGE);

        for (grep { $_ >= $last } keys %{ $file->{page} }) {
            push @{ $file->{page}{$_} }, [$when, ''];
        }

        push @{ $file->{cut} }, [$when, $bytes];
        push @{ $file->{size} }, [$when, $bytes];

    } elsif ($what eq 'grow') {
        push @{ $file->{size} }, [$when, $bytes]
            if $bytes > $file->{size}[-1][1];

    } elsif ($what =~ /^(?:write|page)$/) {
        my $end = $at + length $entry->{data};

        for (my $n = int($at / PAGE); $n * PAGE < $end; $n++) {
            my $versions = $file->{page}{$n} //= [[0, '']];
            my $first = $n * PAGE > $at ? $n * PAGE : $at;
            my $last = ($n + 1) * PAGE < $end ? ($n + 1) * PAGE : $end;
            my $page = $versions->[-1][1];

            $page .= "\0" x (PAGE - length $page);
            substr $page, $first - $n * PAGE, $last - $first,
                   substr $entry->{data}, $first - $at, $last - $first;
            push @$versions, [$when, $page] if $page ne $versions->[-1][1];
        }

        push @{ $file->{size} }, [$when, $end]
            if $what eq 'write' && $end > $file->{size}[-1][1];
    }
}


# What was written to a file before a moment is on the disk.

sub _synced {
    my ($self, $file, $begun) = @_;

    return if $self->{lies} && $file->{name} =~ $self->{lies};

    for (values %{ $file->{page} }, $file->{size}) {
        my @later = grep { $_->[0] >= $begun } @$_;
        my @before = grep { $_->[0] < $begun } @$_;

        @$_ = (@before ? $before[-1] : [0, ''], @later);
    }
}


# The names of a directory, or of all, are on the disk as they were at a
# moment.

sub _names_synced {
    my ($self, $directory, $begun) = @_;

    my @left;

    for (@{ $self->{pending} }) {
        if ($_->{when} < $begun
            && (!defined $directory || dirname($_->{path}) eq $directory))
        {
            _rename($self->{names}, $_);

        } else {
            push @left, $_;
        }
    }

    $self->{pending} = \@left;
}


sub _rename {
    my ($names, $change) = @_;

    if ($change->{what} eq 'create') {
        $names->{$change->{path}} = $change->{file};

    } elsif ($change->{what} eq 'remove') {
        delete $names->{$change->{path}};

    } elsif (my $file = delete $names->{$change->{from}}) {
        $names->{$change->{path}} = $file;
        $file->{name} = basename($change->{path}) if ref $file;
    }
}


# Returns the items that are not decided.

sub items {
    my ($self) = @_;

    return @{ $self->{items} } if $self->{items};

    my @items;
    my %reached = map { $_ => 1 }
                      grep { ref } values %{ $self->{names} },
                      map { $_->{file} // () } @{ $self->{pending} };

    for my $file (grep { $reached{$_} } @{ $self->{files} }) {
        for my $n (sort { $a <=> $b } keys %{ $file->{page} }) {
            my $versions = $file->{page}{$n};

            push @items, { kind => 'page', file => $file, page => $n,
                           versions => $versions } if @$versions > 1;
        }

        push @items, { kind => 'size', file => $file,
                       versions => $file->{size} } if @{ $file->{size} } > 1;
    }

    for my $change (@{ $self->{pending} }) {
        push @items, { kind => 'name', change => $change,
                       versions => [0, 1] };
    }

    return @{ $self->{items} = \@items };
}


# Returns what an item is, for a message.

sub describe {
    my ($item) = @_;

    return "$item->{file}{zone}/$item->{file}{name} "
           . ($item->{kind} eq 'page' ? "page $item->{page}" : 'size')
        if $item->{file};

    my ($zone, $name) = $item->{change}{path} =~ m{([^/]*)/([^/]*)$};

    return "$item->{change}{what} of $zone/$name";
}


# Makes the directory with the versions that a function chooses.  Returns what
# is not as processes saw it, for a message.

sub restore {
    my ($self, $choose) = @_;

    my (%chosen, %lost, @lost);
    my %names = %{ $self->{names} };

    for my $item ($self->items) {
        my $choice = $choose->($item);
        my $last = $#{ $item->{versions} };

        push @lost, describe($item)
                    . (ref $choice ? " torn: version $choice->[1] of $last in"
                                     . " $choice->[0]"
                       : " version $choice of $last")
            if ref $choice || $choice != $last;

        if ($item->{kind} eq 'name') {
            my $change = $item->{change};
            my @touched = grep { length } $change->{path},
                          $change->{from} // '', dirname($change->{path});

            if (!$choice || grep { $lost{$_} } @touched) {
                @lost{grep { length } @$change{qw(path)},
                      $change->{from} // ''} = (1, 1);

            } else {
                _rename(\%names, $change);
            }

        } else {
            $chosen{$item->{versions}} = $choice;
        }
    }

    remove_tree($self->{below}, { keep_root => 1 });

    for my $path (sort keys %names) {
        next if !-d dirname($path);

        if (!ref $names{$path}) {
            mkdir $path or croak "$path: $!";
            chmod $self->{mode}{$path} // 0700, $path;
            next;
        }

        $self->_write($path, $names{$path}, \%chosen);
    }

    return join ', ', @lost;
}


# Writes a file with the chosen versions of its pages.

sub _write {
    my ($self, $path, $file, $chosen) = @_;

    my $size = $file->{size}[$chosen->{$file->{size}} // -1];

    open my $fh, '>:raw', $path or croak "$path: $!";
    chmod $self->{mode}{$path} // 0600, $path;

    for my $n (keys %{ $file->{page} }) {
        my $versions = $file->{page}{$n};
        my $choice = $chosen->{$versions} // -1;
        my ($one, $other, $sectors, $bytes) = ref $choice ? @$choice : $choice;
        my $page = _page($file, $n, $versions->[$one], $size);

        if (defined $other) {
            my $second = _page($file, $n, $versions->[$other], $size);
            my @from = defined $bytes
                ? [0, $bytes]
                : map { [SECTOR * $_, SECTOR] }
                      grep { $sectors & 1 << $_ } 0 .. PAGE / SECTOR - 1;

            substr $page, $_->[0], $_->[1], substr $second, $_->[0], $_->[1]
                for @from;
        }

        next if $page !~ tr/\0//c || $n * PAGE >= $size->[1];

        seek $fh, $n * PAGE, 0;
        print $fh $page;
    }

    close $fh or croak "$path: $!";
    truncate $path, $size->[1] or croak "$path: $!";
}


# Returns the bytes of a version of a page.  What was before a cut that took
# place is gone.

sub _page {
    my ($file, $n, $version, $size) = @_;

    my $cut = grep {
        $version->[0] < $_->[0] && $_->[0] <= $size->[0]
            && $n * PAGE >= $_->[1]
    } @{ $file->{cut} };
    my $page = $cut ? '' : $version->[1];

    return $page . "\0" x (PAGE - length $page);
}


1;
