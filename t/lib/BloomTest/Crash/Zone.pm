# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Crash::Zone;

# Runs the zone of a crash test, of any kind: starts and restarts nginx, makes
# operations (BloomTest::Crash::Operations), and tests that each key answers as
# an account of them says (BloomTest::Account).

use strict;
use warnings;

use Carp qw(croak);

use BloomTest;
use BloomTest::Account;
use BloomTest::Base;
use BloomTest::Control qw(all_applied);
use BloomTest::Crash::Operations;
use BloomTest::Feedback;
use BloomTest::Image qw(with_exceptions);
use BloomTest::Process qw(resume_process wait_until);
use BloomTest::Zones;

# The images of a zone with file= cover none of the changes: they are as of ten
# minutes before.

my $file = 'file=ids.bloom removals=4000';
my @image = ('-n', '20k', '-p', '1e-9', '--as-of', rfc3339(time - 600));

# zone       the parameters of bloom_zone
# image      options of `ngx-bloom build` for the two images of ids.bloom
# other      further options for the second image
# excepted   keys that the images except, so that a clear of excepted keys
#            restores them
# part       how many keys a part of the filter, such as a layer or a slice, has
#            room for
# lives      true if keys expire
# layers     the largest number of layers that the operations may need

my $fuse = ['--layout', 'fuse', @image[2 .. 5]];

my %kind = (
    file => { zone => $file, image => \@image },
    forms => { zone => $file, image => ['--form', 'lower', @image],
               other => ['--form', 'raw'] },
    excepted => { zone => $file, image => \@image,
                  excepted => [keys_of('ex', 40)] },
    except => { zone => $file, image => ['-p', '1e-2', @image[4, 5]] },
    fuse => { zone => "$file max_keys=100k", image => $fuse, layers => 1 },
    mixed => { zone => "zone=ids:8m $file", image => $fuse,
               other => ['--layout', 'blocked', '-n', '20k'] },
    grow => { zone => 'capacity=100 fpr=1e-6 max_keys=100k removals=4000',
              part => 100, layers => 1 },
    expire => { zone => 'capacity=800 fpr=1e-6 expire=8h', part => 100,
                lives => 1 },

    # a slice of 8 MiB is cleared in pieces
    large => { zone => 'zone=ids:400m capacity=16m fpr=1e-5 expire=8h',
               part => 10, lives => 1 },

    source => { zone => 'file=ids.bloom removals=4000;'
                        . ' bloom_source zone=ids name=s max_lag=off',
                image => [@image[0 .. 3], '--source', 's=0'] },
);

# Two rules about the argument k, and one that excepts false positives

my $rules = <<'CONF';
        location = /rules {
            bloom_reject absent $arg_k zone=ids;
            bloom_reject absent $arg_k zone=ids;
            try_files /none =204;
        }
CONF

my $except = <<'CONF';
        location /of/ids {
            bloom_reject absent $arg_id zone=ids;
            bloom_feedback 404 except=on rate=1000r/s after=1s;
            proxy_pass http://127.0.0.1:%%PORT_8081%%;
        }
CONF


# Starts nginx with a fresh zone.

sub begin {
    my ($self) = @_;

    my $t = $self->{t};

    system('rm', '-rf', $t->testdir . '/state');
    $self->{disk}->allow;
    $self->{images} = 0;
    $self->{position} = 0;
    delete $self->{last};
    $self->{account} = BloomTest::Account->new(
        life => $self->{kind}{lives} ? LIFE : 0);
    $self->{account}->set(%{ $self->{base} });
    $self->next_image;
    $self->_configure(8080);
    $t->run;
    await_feedback($t, 'ids', '/of/ids?id=', shift @{ $self->{false} })
        if $self->{name} eq 'except';
    $self->_second_instance if $self->{instances} == 2;
}


sub end {
    my ($self) = @_;

    my $t = $self->{t};

    local $self->{instances} = 1;

    $self->restart('after kill -9 of all processes');
    $self->_keys_expire if $self->{kind}{lives};
    $t->kill_all;
    $self->_journal_is_whole if !$self->{memory};
}


sub restart {
    my ($self, $when) = @_;

    my $t = $self->{t};

    $t->kill_all;
    $self->all_died;
    $self->{disk}->allow;
    $self->_configure(8080);
    $t->run;
    $self->check($when);
    $self->_second_instance if $self->{instances} == 2;
}


# Tests that each key answers as it must in each instance.  `stopped` is true
# while a process is stopped: a zone that waits for it may say "unknown".

sub check {
    my ($self, $when, $stopped) = @_;

    for my $port ($self->_ports) {
        my $instance = $port == 8090 ? ', in the new instance' : '';
        my @keys = $self->{account}->keys($self->_now);
        my $state = $self->state($port);

        if (($state->{state} // '') eq 'damaged') {
            ok($self->{lossy}, "no key is lost $when$instance");
            $self->{account}->lose;
        }

        cmp_ok($state->{filter}{layers} // 0, '<=', $self->{kind}{layers},
               "no layer begins twice $when$instance")
            if $self->{kind}{layers};

        my $answers = $self->_answers($port, $stopped, @keys);

        # an instance that is behind has not applied the last removals of the
        # other one

        if ($stopped && ($state->{state} // '') eq 'behind') {
            $_ = '?' for grep { $_ eq '1' } values %$answers;
        }

        is($self->{account}->wrong($self->_now, $answers,
                                   $stopped || $self->{account}->damaged),
           '', "each key answers as it must $when$instance")
            or diag(explain { map { $_ => $state->{$_} }
                                   qw(state generation journal removals) });
    }

    $self->_base_is_valid($when) if !$self->{memory};
}


# A writer of `base` overwrites the entry that does not count, so both must be
# valid.

sub _base_is_valid {
    my ($self, $when) = @_;

    is(join('; ', base_problems($self->{t}->testdir . '/state/ids/base')), '',
       "no entry of base is invalid $when");
}


# Preparations

# Returns an operation by its name.

sub operation { return prepare(@_) }


# Makes an operation, which must succeed.

sub insist {
    my ($self, $operation) = @_;

    my $response;

    wait_until(sub {
        $response = $self->perform($operation);
        return $response && $response->status == 200;
    }) or croak "$operation->{name} fails: " . ($response // 'no answer');
}


sub new_keys {
    my ($self, $n) = @_;

    return @{ $self->{keys} = [map { 'key' . ++$self->{count} } 1 .. $n] };
}

sub old_keys {
    my ($self, $n) = @_;

    my @keys = $self->new_keys($n);
    $self->insist(adds('', @keys));

    return @keys;
}

sub removed_keys {
    my ($self, $n) = @_;

    my @keys = $self->old_keys($n);
    $self->insist(removes('', @keys));

    return @keys;
}

sub fill_disk {
    my ($self) = @_;

    $self->{disk}->refuse('ENOSPC', 'grow');
    $self->insist($self->operation('bloom_add')) for 1 .. 3;
}

# Adds keys while the disk refuses every write.

sub lose_keys {
    my ($self) = @_;

    my @keys = $self->new_keys(3);

    $self->{disk}->refuse('ENOSPC', qw(write grow rename));
    $self->{t}->pipeline(map { "/add/ids?k=$_" } @keys);
    $self->{account}->set(map { $_ => 1 } @keys);
    $self->{account}->lose;
}

# Lets a worker stop that has locked the zone for an addition.  Returns a
# function that lets it go on.

sub stop_with_lock {
    my ($self) = @_;

    my $stop = $self->{faults}->stop_at('locked');
    my $addition = adds('', $self->new_keys(1));
    my $connection = $self->send($addition);
    my $pid = $self->{faults}->stopped($stop);

    return sub {
        resume_process($pid);
        $self->complete($addition, $connection);
    };
}

sub base_key {
    my ($self) = @_;

    return (grep { $self->{base}{$_} } sort keys %{ $self->{base} })[0];
}

sub false_keys {
    my ($self, $n) = @_;

    return @{ $self->{keys} = [splice @{ $self->{false} }, 0, $n] };
}

sub fill {
    my ($self, $n) = @_;

    $self->insist(adds('', $self->new_keys($n < 50 ? $n : 50))), $n -= 50
        while $n > 0;
}


# Returns the bytes of the image that is not in its place.

sub other_image {
    my ($self) = @_;

    my $other = ($self->{images} + 1) % 2;

    return $self->{t}->read_file("image$other.bloom");
}


# Puts the next image in its place.  With keys, builds one of them at the
# source's position.

sub next_image {
    my ($self, @keys) = @_;

    my ($t, $kind) = @$self{qw(t kind)};

    $kind->{image} or return;

    my $name = 'image' . ++$self->{images} % 2;

    if (@keys) {
        $name = "at$self->{position}";
        $t->build_image("$name.bloom", \@keys, @image[0 .. 3], '--source',
                        "s=$self->{position}");
    }

    install_image($t, $name);
}


# Lets time pass, and waits until the helper has looked after the zone, unless
# the helper is stopped.

sub let_pass {
    my ($self, $seconds) = @_;

    $self->_pass($seconds);

    my $beat = '';

    for (1 .. 2) {
        wait_until(sub {
            kill 'IO', $self->{t}->helpers;
            my $new = $self->state(8080)->{helper}{heartbeat} // '';
            my $done = $new ne $beat || $self->_helper_is_stopped;
            $beat = $new;
            return $done;
        });
        $self->_pass(2);
    }
}


# The driver's parts

sub _helper_is_stopped {
    my ($self) = @_;

    return grep {
        open my $stat, '<', "/proc/$_/stat";
        $stat && (<$stat> // '') =~ /\) T /;
    } $self->{t}->helpers;
}

sub _pass {
    my ($self, $seconds) = @_;

    $self->{clock}->pass_all($seconds);
    $self->{passed} += $seconds;
}

sub _now { return $_[0]{passed} // 0 }

sub _ports { return $_[0]{second} ? (8080, 8090) : (8080) }

# Makes the next zone one of a kind.

sub become {
    my ($self, $text) = @_;

    my ($name, $how) = split m{/}, $text;

    @$self{qw(name kind)} = ($name, $kind{$name} // croak "no kind $name");
    $self->{memory} = ($how // '') eq 'memory';
    $self->{instances} = ($how // '') eq 'two' ? 2 : 1;
    $self->_build_images;
}


sub _build_images {
    my ($self) = @_;

    my ($t, $kind) = @$self{qw(t kind)};
    my @keys = keys_of($self->{name} eq 'forms' ? 'ID' : 'id',
                       $self->{name} eq 'except' ? 1000 : 10);

    $self->{base} = {};
    $kind->{image} or return;
    $self->{base} = { map { $_ => 1 } @keys };

    for (0, 1) {
        $t->build_image("image$_.bloom", [@keys, @{ $kind->{excepted} // [] }],
                        @{ $kind->{image} },
                        $_ ? () : @{ $kind->{other} // [] },
                        '--seed', 1 + $_);
    }

if (my $excepted = $kind->{excepted}) {
        $self->{base}{$_} = 0 for @$excepted;
        replace_file($t, "image$_.bloom", with_exceptions(
            $t->read_file("image$_.bloom"), [map { [4, 0, $_] } @$excepted]))
            for 0, 1;
    }

    $self->{name} eq 'except' or return;

    # both images have the same false positives

    replace_file($t, 'image0.bloom', $t->read_file('image1.bloom'));
    $self->{false} = [false_positives($t, 'image1', 2000)];
}


sub _configure {
    my ($self, $port) = @_;

    my $t = $self->{t};
    my $zone = $self->{kind}{zone} =~ s/^(?!zone=)/zone=ids /r;

    $zone .= ' journal=off' if $self->{memory};

    # a source is the only one that changes its zone

    configure($t, [$zone], api => 1, workers => $self->{workers},
              (map { $_ => $self->{name} ne 'source' } qw(add remove)),
              server => $rules . ($self->{name} eq 'except' ? $except : ''));

    my ($old, $new) = map { $t->port($_) } 8080, $port;
    my $conf = $t->read_file('nginx.conf');
    $t->write_file('nginx.conf', $conf =~ s/127.0.0.1:$old/127.0.0.1:$new/r);
}


# Begins an upgrade: the new instance is at port 8090.

sub _second_instance {
    my ($self) = @_;

    $self->_configure(8090);
    $self->{second} = $self->{t}->upgrade_begin;
}


# All processes have died, and with them what was in memory only.

sub all_died {
    my ($self) = @_;

    delete $self->{second};
    $self->{account}->all_died;
    $self->{account}->forget(%{ $self->{base} }) if $self->{memory};
}


# Sends a request, or acts.  Returns the connection.

sub send {
    my ($self, $operation) = @_;

    $operation->{to} = $operation->{to}->() if ref $operation->{to} eq 'CODE';
    $self->{account}->begin($operation, $self->_now);

    if ($operation->{act}) {
        $operation->{act}->();
        return;
    }

    return $self->_connect($operation);
}


sub _connect {
    my ($self, $operation) = @_;

    my ($method, $path, $body) = @{ $operation->{request} };

    $path = "/bloom/zones/ids/$path" if $path !~ m{^/};

    my $connection = eval { $self->{t}->connect(8080) } or return;
    $connection->send($self->{t}->request_text(
        $method, $path, defined $body ? (body => $body) : ()));

    return $connection;
}


# Waits for the response, if any, and enters it into the account.

sub complete {
    my ($self, $operation, $connection) = @_;

    if ($operation->{act}) {
        wait_until(sub { eval { $operation->{over}->() } })
            if $operation->{over};
        return;
    }

    my $response = $connection
                   && eval { $connection->response($operation->{request}[0]) };

    if (!$response || !$response->complete || !$response->status) {
        $self->{account}->close($operation);
        return;
    }

    my $next = $operation->{next} && $operation->{next}->($response);

    if ($next) {
        $operation->{request} = $next;
        return $self->complete($operation, $self->_connect($operation));
    }

    my $status = $response->status;

    if ($status == ($operation->{status} // 200)) {
        $self->{account}->acknowledge($operation, $self->_now);
        $operation->{after}->($response) if $operation->{after};
        return $response;
    }

    $self->{account}->close($operation);
    fail("$operation->{name} is answered") || diag($response)
        if !grep { $status == $_ } 503, @{ $operation->{refused} // [] };

    return $response;
}


sub perform {
    my ($self, $operation) = @_;

    return $self->complete($operation, $self->send($operation));
}


# Sends the changes of a source again until they are acknowledged.

sub deliver {
    my ($self, $operation) = @_;

    $operation->{again} && $operation->{open} or return;

    my $response;

    wait_until(sub {
        $response = $self->perform($operation);
        return $response && $response->status == 200;
    }) or die "$operation->{name}: " . ($response // 'no answer');
}


# Waits until all processes of each instance run, the zone answers, and each
# instance has applied the journal, also what a process has left that has died.

sub serves {
    my ($self) = @_;

    my $t = $self->{t};
    my @masters = grep { $_ } $t->master, $self->{second};

    wait_until(sub {
        for my $master (@masters) {
            return if $t->workers($master) < $self->{workers}
                      || !$t->helpers($master);
        }

        for my $port ($self->_ports) {
            my $state = $self->state($port);
            return if !$state->{generation} || $state->{state} eq 'behind';
        }

        return $self->{memory} || all_applied("$t->{dir}/state/ids/control");
    }) or fail('nginx serves');
}


# Returns the state of the zone, or an empty hash if no worker answers.

sub state {
    my ($self, $port) = @_;

    my $response = eval {
        $self->{t}->request(GET => '/bloom/zones/ids', port => $port);
    };

    return eval { $response->json } // {};
}


# Returns the answers about keys, as soon as none is "unknown" that need not be.

sub _answers {
    my ($self, $port, $stopped, @keys) = @_;

    my %answers;

    wait_until(sub {
        my $response = eval {
            $self->{t}->request(POST => '/bloom/zones/ids/test', port => $port,
                                body => join "\n", @keys);
        } or return;
        my ($list) = $response->body =~ /"answers":\[(.*?)\]/ or return;

        @answers{@keys} = $list =~ /"(\w+)"/g;
        $_ = { present => 1, absent => 0, unknown => '?' }->{$_}
            for values %answers;

        return $stopped || $self->{account}->damaged
               || ($self->state($port)->{state} // '') eq 'damaged'
               || !grep { $_ eq '?' } values %answers;
    });

    return \%answers;
}


# The tool reads the journal without finding damage.

sub _journal_is_whole {
    my ($self) = @_;

    my ($exit, $out, $err) = $self->{t}->run_tool(
        'journal', $self->{t}->testdir . '/state/ids');

    is($exit, 0, 'ngx-bloom finds no damage in the journal')
        or diag($out, $err);
}


# All keys expire in the end, and each lives as long as it should.

sub _keys_expire {
    my ($self) = @_;

    for (1 .. 2 * (LIFE + 3 * SLICE) / (SLICE / 2)) {
        $self->let_pass(SLICE / 4);
        $self->check('while time passes') if $_ % 8 == 0;
    }

    my @keys = $self->{account}->all;
    my $answers = $self->_answers(8080, 0, @keys);

    is(join(' ', grep { $answers->{$_} ne '0' } @keys), '',
       'all keys have expired in the end');
}



1;
