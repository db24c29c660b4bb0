# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Clients;

# Clients that send requests all the time, each in its own process, while the
# test reloads nginx or kills its processes.
#
#   my $clients = BloomTest::Clients->new($t, 2, sub {
#       my ($client, $round) = @_;    client 1 or 2; round 1, 2, 3, ...
#       my $answers = eval { ask($t, 'ids', @keys) } // return;
#       return $answers eq $right ? '' : $answers;
#   });
#   ...
#   for my $result ($clients->finish) {
#       $result->{client}     1 or 2
#       $result->{right}      the number of right answers
#       $result->{wrong}      the wrong answers
#   }
#
# The function returns an empty string for a right answer, the text of a wrong
# answer, or nothing if no answer came, which does not count.  new() returns
# when each client has had an answer.

use strict;
use warnings;

use Carp qw(croak);

use BloomTest::Process qw(spawn alive wait_until);


sub new {
    my ($class, $t, $count, $ask) = @_;

    my $self = bless { t => $t, count => $count }, $class;

    $self->{pids} = [map { $self->_client($_, $ask) } 1 .. $count];
    $t->waitforfile("client-$_.begun") for 1 .. $count;

    return $self;
}


sub _client {
    my ($self, $client, $ask) = @_;

    my $t = $self->{t};
    my $enough = $t->testdir . '/clients.enough';

    return spawn(sub {
        my ($right, @wrong) = (0);

        for (my $round = 1; !-e $enough; $round++) {
            my $wrong = $ask->($client, $round) // next;

            $wrong eq '' ? $right++ : push @wrong, $wrong;
            $t->write_file("client-$client.begun", '')
                if $right + @wrong == 1;
        }

        $t->write_file("client-$client.result", join "\n", $right, @wrong);
    });
}


# Stops the clients and returns their results.

sub finish {
    my ($self) = @_;

    my $t = $self->{t};

    $t->write_file('clients.enough', '');
    wait_until(sub { !grep { alive($_) } @{ $self->{pids} } })
        or croak 'the clients do not end';

    return map {
        my ($right, @wrong) = split /\n/, $t->read_file("client-$_.result");
        { client => $_, right => $right, wrong => \@wrong }
    } 1 .. $self->{count};
}


1;
