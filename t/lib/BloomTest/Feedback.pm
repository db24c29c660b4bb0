# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Feedback;

# Serves the tests of "bloom_feedback except=on": false positives of an image,
# and a backend that has the keys that a test gives it.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);

use BloomTest::Api;
use BloomTest::Process qw(wait_until);

our @EXPORT = qw(false_positives feedback_backend has_row let_answer
                 answers_late excepted await_feedback);


# Returns n keys PREFIX1, PREFIX2 ..., with `suffix` behind the number, that the
# image NAME.bloom takes for present.

sub false_positives {
    my ($t, $name, $n, %option) = @_;

    my $prefix = $option{prefix} // 'no';
    my $suffix = $option{suffix} // '';
    my @found;

    for (my $i = 0; @found < $n; $i += 50_000) {
        my $keys = join '', map { "$prefix$_$suffix\n" } $i + 1 .. $i + 50_000;
        my (undef, $out) = $t->run_tool('test', '-f', '-',
                                        $t->testdir . "/$name.bloom",
                                        { stdin => $keys });

        push @found, $out =~ /^present (\S+)$/mg;

        $i < 10_000_000 or croak "$name.bloom has no $n false positives";
    }

    return @found[0 .. $n - 1];
}


# Runs a backend on a port.  It has a row for a key after has_row().  The
# argument "id" of a request is the key.  With the argument "late", the backend
# looks for the row and then waits for let_answer().

sub feedback_backend {
    my ($t, $port) = @_;

    my $dir = $t->testdir;

    mkdir "$dir/rows";
    mkdir "$dir/late";

    return $t->backend($port, sub {
        my ($request) = @_;

        my ($id) = $request->{uri} =~ /[?&]id=([^&]*)/;
        my $status = -e "$dir/rows/" . ($id // '') =~ s{/}{%2F}gr ? 200 : 404;

        if ($request->{uri} =~ /[?&]late=(\w+)/) {
            my $late = "$dir/late/$1";

            open my $fh, '>', "$late.asked" or die "$late: $!";
            close $fh;
            wait_until(sub { -e "$late.go" }, 60);
        }

        return { status => $status, body => "$status\n" };
    });
}


# Gives the backend rows of keys, or takes one from it.

sub has_row {
    my ($t, @keys) = @_;

    $t->write_file('rows/' . s{/}{%2F}gr, '') for @keys;
}


# Makes a request to which the backend answers late: waits until the backend has
# looked for the row, and returns a connection.  let_answer() lets the backend
# answer, and returns the response.

sub answers_late {
    my ($t, $path, $name) = @_;

    my $connection = $t->connect;

    $connection->send($t->request_text(GET => "$path&late=$name"));
    wait_until(sub { -e $t->testdir . "/late/$name.asked" })
        or croak "the backend is not asked: $path";

    return $connection;
}

sub let_answer {
    my ($t, $connection, $name) = @_;

    $t->write_file("late/$name.go", '');

    return $connection->response('GET');
}


# Returns how many keys a zone has excepted, if none is removed.

sub excepted { return zone_state($_[0], $_[1])->{removals}{count} }


# Waits until a zone excepts: asks for false positives at a path, to which the key
# is added, until one is excepted.  Keys are not excepted at first after a load.

sub await_feedback {
    my ($t, $zone, $path, @keys) = @_;

    my $before = excepted($t, $zone);

    wait_until(sub {
        $t->get($path . $keys[0]);
        return excepted($t, $zone) > $before;
    }) or croak "zone $zone excepts no key";
}


1;
