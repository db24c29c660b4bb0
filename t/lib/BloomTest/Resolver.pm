# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Resolver;

# Runs the resolvers that lists are written for, each with a list as its
# configuration, and asks them for names.  A server behind them has an address
# for every name, so a name without this address is blocked or answered anew.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);
use File::Copy qw(copy);
use IO::Select;
use IO::Socket::INET;
use Net::DNS;

use BloomTest::Process qw(spawn wait_until);

our @EXPORT_OK = qw(resolver resolver_stop blocks);

# A test reserves a UDP port by the TCP port of the same number.  BIND and
# unbound do without TCP.  dnsmasq does not, but takes any address of the
# loopback interface, and at this one both are free.

use constant { ADDRESS => '127.0.0.1', DNSMASQ => '127.0.0.2' };

# A name that no list has.

use constant BESIDE => 'beside.example';


my %program = (dnsmasq => 'dnsmasq', unbound => 'unbound', rpz => 'named');

# The arguments of each program.

my %arguments = (
    dnsmasq => sub {
        my ($t, $list, $port, $upstream) = @_;

        $list =~ s/192\.0\.2\.53/@{[ADDRESS]}#$upstream/g;
        my $path = $t->write_file('dnsmasq.conf', $list);

        return ('--keep-in-foreground', "--conf-file=$path",
                "--port=$port", '--listen-address=' . DNSMASQ,
                '--bind-interfaces', '--no-resolv', '--no-hosts', '--user=root',
                '--pid-file=', '--log-facility=-', '--cache-size=0',
                '--server=' . ADDRESS . "#$upstream");
    },

    unbound => sub {
        my ($t, $list, $port, $upstream) = @_;

        my $dir = $t->testdir;
        my $path = $t->write_file('list', $list);
        my $address = ADDRESS;

        return ('-d', '-c', $t->write_file('unbound.conf', <<"CONF"));
server:
    interface: $address
    port: $port
    access-control: 127.0.0.0/8 allow
    chroot: ""
    username: ""
    directory: "$dir"
    pidfile: ""
    use-syslog: no
    do-tcp: no
    do-not-query-localhost: no
    do-ip6: no
    module-config: "iterator"
remote-control:
    control-enable: no
forward-zone:
    name: "."
    forward-addr: $address\@$upstream
include: "$path"
CONF
    },

    rpz => sub {
        my ($t, $list, $port, $upstream) = @_;

        my $dir = $t->testdir;
        my $path = $t->write_file('rpz.zone', $list);
        my $address = ADDRESS;

        return ('-g', '-c', $t->write_file('named.conf', <<"CONF"));
options {
    directory "$dir";
    pid-file none;
    session-keyfile none;
    listen-on port $port { $address; };
    listen-on-v6 { none; };
    allow-query { any; };
    recursion yes;
    dnssec-validation no;
    forward only;
    forwarders { $address port $upstream; };
    response-policy { zone "rpz.test"; } qname-wait-recurse no;
};
controls { };
zone "rpz.test" { type primary; file "$path"; };
CONF
    },
);


# Returns a copy of a resolver's program.  AppArmor knows the original by its
# path, and lets it read no file of a test.

sub _program {
    my ($t, $kind) = @_;

    for (split(/:/, $ENV{PATH}), '/usr/sbin') {
        my $copy = $t->testdir . "/$program{$kind}";
        next if !-x "$_/$program{$kind}";
        copy("$_/$program{$kind}", $copy) or croak "cannot copy: $!";
        chmod 0700, $copy;
        return $copy;
    }

    croak "$program{$kind} is not installed";
}


# Answers every question with an address of its own.

sub _answer_all {
    my ($port) = @_;

    my $socket = IO::Socket::INET->new(Proto => 'udp', LocalAddr => ADDRESS,
                                       LocalPort => $port)
        or die "cannot listen: $!";

    while (defined $socket->recv(my $data, 4096)) {
        my $query = Net::DNS::Packet->new(\$data) or next;
        my ($question) = $query->question;
        my $reply = $query->reply(1232);

        $reply->header->ra(1);
        $reply->header->rcode('NOERROR');
        $reply->push(answer => Net::DNS::RR->new(
            owner => $question->qname, ttl => 60, type => 'A',
            address => '198.51.100.200')) if $question->qtype eq 'A';
        $socket->send($reply->data);
    }
}


# Asks for the addresses of names, and again for those without an answer.
# Returns the answers, by the name.

sub _ask {
    my ($self, @names) = @_;

    my $socket = IO::Socket::INET->new(
        Proto => 'udp', PeerPort => $self->{port},
        PeerAddr => $self->{kind} eq 'dnsmasq' ? DNSMASQ : ADDRESS)
        or croak "cannot make a socket: $!";
    my $readable = IO::Select->new($socket);
    my %answer;

    # a name counts as dropped if the resolver answers for another one in each
    # of these rounds, and never for it

    for my $round (1 .. 3) {
        delete $answer{+BESIDE};

        for my $name (BESIDE, grep { !$answer{$_} } @names) {
            my $query = Net::DNS::Packet->new($name, 'A');
            $query->header->rd(1);
            $socket->send($query->data);
        }

        while ($readable->can_read(1)) {
            defined $socket->recv(my $data, 4096) or last;
            my $reply = Net::DNS::Packet->new(\$data) or next;
            $answer{lc(($reply->question)[0]->qname)} = $reply;
        }

        return if !$answer{+BESIDE};
        last if !grep { !$answer{$_} } @names;
    }

    return \%answer;
}


# Starts a resolver, dnsmasq, unbound or rpz (BIND), with the text of a list.

sub resolver {
    my ($t, $kind, $list) = @_;

    my $port = $t->udp_port($kind);
    my $upstream = $t->udp_port("upstream of $kind");
    my $self = { kind => $kind, port => $port, pids => [] };
    my $log = $t->testdir . "/$kind.log";

    open my $err, '>', $log or croak "$log: $!";
    push @{ $self->{pids} },
         spawn(sub { _answer_all($upstream) }),
         spawn([_program($t, $kind), $arguments{$kind}->($t, $list, $port, $upstream)],
               stderr => $err);

    wait_until(sub { _ask($self) })
        or resolver_stop($self), croak "$kind does not start: " . $t->read_file("$kind.log");

    return $self;
}

sub resolver_stop {
    my ($self) = @_;

    kill 'KILL', @{ $self->{pids} };
    waitpid $_, 0 for @{ $self->{pids} };
}


# Returns which of the names a resolver blocks, as a hash: it says that no such
# name exists, refuses or drops the question, or has no IPv4 address or one that
# stands for none.  A truncated answer only asks for TCP.

sub blocks {
    my ($self, @names) = @_;

    my $answers = _ask($self, map { lc } @names)
        or croak "$self->{kind} does not answer";
    my %blocks;

    for my $name (@names) {
        my $answer = $answers->{lc $name};
        $blocks{$name} = 1;
        next if !$answer;

        my $code = $answer->header->rcode;
        croak "$self->{kind} fails for $name: $code"
            if $code !~ /^(?:NOERROR|NXDOMAIN|REFUSED)$/;

        $blocks{$name} = 0
            if $answer->header->tc
               || grep { $_->type eq 'A'
                         && $_->address !~ /^(?:0\.0\.0\.0|127\..*)$/ }
                       $answer->answer;
    }

    return \%blocks;
}


1;
