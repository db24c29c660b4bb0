# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Zones;

# Serves the tests of zones: it writes a configuration that shows the answers of
# each zone, asks zones about keys, replaces their images, and measures their
# memory.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);
use POSIX ();

use BloomTest::Process qw(wait_until);

our @EXPORT = qw(configure ask ask_until_known keys_of files replace_file
                 install_image another_image flip rfc3339 zone_memory
                 small_pages bytes_read sides both);

use constant PR_SET_THP_DISABLE => 41;


# Writes an nginx.conf with these zones, given as parameters of `bloom_zone`,
# and a location for each: GET /ids?k=KEY shows the answer of zone ids.  Further
# directives may follow the parameters, as in 'zone=ids file=ids.bloom;
# bloom_source zone=ids name=s'.  With
# the option `add`, GET /add/ids?k=KEY adds a key by `bloom_add`; with `remove`,
# GET /remove/ids?k=KEY removes it by `bloom_remove`.  The option `api` puts the
# endpoint at /bloom/.  Other options: workers (default: 1),
# main, http and server (lines for the end of these blocks).

sub configure {
    my ($t, $zones, %option) = @_;

    my @names = map { /\bzone=(\w+)/ ? $1 : croak "no zone= in '$_'" } @$zones;
    my $workers = $option{workers} // 1;

    $t->write_file_expand('nginx.conf', join "\n",
        '%%TEST_GLOBALS%%',
        "worker_processes $workers;",
        'events { }',
        'http {',
        '%%TEST_GLOBALS_HTTP%%',
        'access_log off;',
        (map { "bloom_zone $_;" } @$zones),
        (map { "bloom_lookup \$arg_k \$known_$_ zone=$_;" } @names),
        'server {',
        'listen 127.0.0.1:%%PORT_8080%%;',
        (map { "location = /$_ { return 200 \"\$known_$_ of \$pid\"; }" }
             @names),
        (map { "location = /add/$_ { bloom_add \$arg_k zone=$_; return 200; }" }
             $option{add} ? @names : ()),
        (map { "location = /remove/$_ { bloom_remove \$arg_k zone=$_;"
               . ' return 200; }' } $option{remove} ? @names : ()),
        ($option{api} ? ('location /bloom/ {', 'client_max_body_size 0;',
                         'bloom_api write=on;', '}')
                      : ()),
        $option{server} // '',
        '}',
        $option{http} // '',
        '}',
        $option{main} // '', '');
}


# Returns a zone's answers about keys in a string: 0 for absent, 1 for present,
# ? for unknown.  In list context, returns also the workers that answered.

sub ask {
    my ($t, $zone, @keys) = @_;

    my ($answers, %workers) = ('');

    while (my @some = splice @keys, 0, 200) {
        for my $response ($t->pipeline(map { "/$zone?k=$_" } @some)) {
            my ($known, $worker) = $response->body =~ /^([01]?) of (\d+)$/
                or croak "zone $zone: unexpected answer:\n$response";

            $answers .= length $known ? $known : '?';
            $workers{$worker} = 1;
        }
    }

    return wantarray ? ($answers, sort keys %workers) : $answers;
}


# Returns a zone's answers about keys as soon as none is unknown: after a start
# or an upgrade the zone may have to apply records first.

sub ask_until_known {
    my ($t, $zone, @keys) = @_;

    my $answers = '';

    wait_until(sub {
        $answers = ask($t, $zone, @keys);
        return $answers !~ /\?/;
    });

    return $answers;
}


# Returns the workers of two masters: their ids, with `old` or `new`.

sub sides {
    my ($t, $old, $new) = @_;

    my %side = map { $_ => 'old' } $t->workers($old);
    $side{$_} = 'new' for $t->workers($new);

    return %side;
}


# Returns what both instances of a zone answer, as "new 01 old 01", once neither
# answer is unknown and they agree.

sub both {
    my ($t, $zone, $side, @keys) = @_;

    my %answers;

    wait_until(sub {
        my ($answers, @by) = ask($t, $zone, @keys);
        $answers{$side->{$by[0]}} = $answers if $answers !~ /\?/;
        return keys %answers == 2 && $answers{old} eq $answers{new};
    });

    return join ' ', map { "$_ $answers{$_}" } sort keys %answers;
}


# Returns keys: keys_of('a', 3) is a1, a2, a3.

sub keys_of {
    my ($prefix, $count) = @_;

    return map { "$prefix$_" } 1 .. $count;
}


# Returns the files that match a pattern.

sub files {
    my ($pattern) = @_;

    my @files = sort glob $pattern;

    return @files;
}


# Inverts the lowest bit of a file's byte, in place.  A negative offset counts
# from the end.

sub flip {
    my ($path, $offset) = @_;

    open my $fh, '+<:raw', $path or croak "cannot open $path: $!";
    seek $fh, $offset, $offset < 0 ? 2 : 0
        or croak "cannot seek in $path: $!";
    read $fh, my $byte, 1 or croak "$path has no byte $offset";
    seek $fh, -1, 1;
    print $fh chr(ord($byte) ^ 1);
    close $fh or croak "cannot write $path: $!";
}


# Replaces a file by a rename, as a program that writes an image should.

sub replace_file {
    my ($t, $name, $content) = @_;

    my $path = $t->testdir . "/$name";

    $t->write_file("$name.new", $content);
    rename "$path.new", $path or croak "cannot replace $path: $!";
}


# Replaces PLACE.bloom, by default ids.bloom, the file of the zone in most
# tests, by a link to the image NAME.bloom.

sub install_image {
    my ($t, $name, $place) = @_;

    my $dir = $t->testdir;
    my $new = "$dir/" . ($place // 'ids') . '.bloom';

    unlink "$new.new";
    link "$dir/$name.bloom", "$new.new" or croak "link: $!";
    rename "$new.new", $new or croak "rename: $!";
}


# Puts another image of the keys id1 to id10 in the place of ids.bloom.  Two
# images alternate.

sub another_image {
    my ($t) = @_;

    my $dir = $t->testdir;
    my $image = 'image' . $t->{images}++ % 2;

    $t->build_image("$image.bloom", [keys_of('id', 10)], '-p', '1e-9',
                    '-n', '20k', '--seed', $t->{images})
        unless -e "$dir/$image.bloom";

    install_image($t, $image);
}


# Returns a time in seconds in the form that --as-of takes.

sub rfc3339 {
    my @time = gmtime $_[0];

    return sprintf '%04d-%02d-%02dT%02d:%02d:%02dZ', $time[5] + 1900,
                   $time[4] + 1, @time[3, 2, 1, 0];
}


# Returns the shared memory of a process: for each zone, its size and how much
# of it is in memory, whichever process touched it.  Advice about huge pages
# splits a zone's mapping.  Returns an empty list if the system does not allow
# it, which needs root.

sub zone_memory {
    my ($pid) = @_;

    no warnings 'portable';    # of numbers over 32 bits

    open my $maps, '<', "/proc/$pid/maps" or return;
    my (@memory, $inode);

    while (<$maps>) {
        m{^([0-9a-f]+)-([0-9a-f]+) rw-s .* /dev/zero} or next;

        my @stat = stat "/proc/$pid/map_files/$1-$2" or return;

        if (defined $inode && $inode == $stat[1]) {
            $memory[-1]{size} += hex($2) - hex($1);
            next;
        }

        $inode = $stat[1];
        push @memory, { size => hex($2) - hex($1),
                        resident => 512 * $stat[12] };
    }

    return @memory;
}


# With 1, the processes that this test starts from now on get no huge pages,
# whatever the system permits: a huge page is taken as a whole, so tests that
# count bytes want none.  With 0, they get those that the system permits.

sub small_pages {
    my ($on) = @_;

    my %prctl = (x86_64 => 157, aarch64 => 167);
    my $number = $prctl{(POSIX::uname())[4]} or return;

    syscall($number, PR_SET_THP_DISABLE, $on, 0, 0, 0) == 0
        or croak "prctl(PR_SET_THP_DISABLE): $!";
}


# Returns the number of bytes that a process has read from files so far.

sub bytes_read {
    my ($pid) = @_;

    open my $io, '<', "/proc/$pid/io" or croak "cannot read /proc/$pid/io: $!";
    local $/;

    return (<$io> =~ /^rchar: (\d+)/m)[0];
}


1;
