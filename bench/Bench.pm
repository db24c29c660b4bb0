# SPDX-License-Identifier: BSD-2-Clause

package Bench;

# This package has what the benchmarks share: it runs nginx with the tests'
# BloomTest, runs the clients in C, assigns processors, computes medians, and
# prints a section of the report.

use strict;
use warnings;

use Carp qw(croak);
use Exporter qw(import);
use JSON::PP ();
use List::Util qw(sum min max);

use BloomTest ();
use BloomTest::Process qw(alive children now title wait_until);

$| = 1;

our @EXPORT = qw(quick rounds server started stop_started first_on second_on
                 client lookups by_name median ratios processor_time until_idle
                 section table line plot number verdict);


# A quick run shows that everything works; its figures mean little.

sub quick { return $ENV{BENCH_QUICK} }
sub rounds { return quick() ? 3 : $ENV{BENCH_ROUNDS} // $_[0] }


# On a machine with two processors, nginx's worker runs on the first, alone or
# with its clients, and everything else runs on the second.

my $processors = () = `cat /proc/cpuinfo` =~ /^processor\s/mg;

sub first_on { return $processors > 1 ? ('taskset', '-c', 0) : () }
sub second_on { return $processors > 1 ? ('taskset', '-c', 1) : () }


# Writes nginx.conf and starts nginx with one worker. `zones` has the parameters
# of each `bloom_zone`, and `server` the lines of the server. `module` names
# another module than the one of the checkout.  Returns a BloomTest.

sub server {
    my ($zones, $server, $module) = @_;

    my $t = BloomTest->new(log_level => 'notice');

    $t->{module} = $module if defined $module;
    configure($t, $zones, $server);
    $t->run;

    return $t;
}


sub configure {
    my ($t, $zones, $server) = @_;

    my $affinity = $processors > 1 ? 'worker_cpu_affinity 01;' : '';

    $t->write_file_expand('nginx.conf', join "\n",
        '%%TEST_GLOBALS%%', 'worker_processes 1;', $affinity, 'events { }',
        'http {', '%%TEST_GLOBALS_HTTP%%', 'access_log off;',
        'keepalive_requests 1000000000;',
        (map { "bloom_zone $_;" } @$zones),
        'server {', 'listen 127.0.0.1:%%PORT_8080%%;', $server,
        'location /bloom/ { client_max_body_size 0; bloom_api write=on; }',
        '}', '}', '');
}


# Starts nginx as BloomTest's run() does, but returns as soon as the command
# does. Returns the seconds it took, and the seconds of a processor. Call
# stop_started() afterwards.

sub started {
    my ($t) = @_;

    my @before = (now(), times);
    system($t->_command) == 0 or croak 'nginx does not start';
    my @after = (now(), times);

    return ($after[0] - $before[0],
            $after[3] + $after[4] - $before[3] - $before[4]);
}


sub stop_started {
    my ($t) = @_;

    my ($pid) = wait_until(sub {
        return -s $t->testdir . '/nginx.pid' && $t->read_file('nginx.pid');
    }) =~ /(\d+)/;

    # repeated, because a signal that comes before the workers is lost

    wait_until(sub { !alive($pid) || !kill QUIT => $pid })
        or croak 'nginx does not stop';
}


# Runs a client of build/bench. Returns a hash for each line that it printed.

sub client {
    my ($on, $name, @arguments) = @_;

    return map { JSON::PP::decode_json($_) } _output($on, $name, @arguments);
}


# Runs build/bench/lookups. Returns its results as a hash.

sub lookups {
    my ($on, @arguments) = @_;

    return JSON::PP::decode_json(
        join '', _output($on, 'lookups', '--json', @arguments));
}


sub _output {
    my ($on, $name, @arguments) = @_;

    my $program = ($ENV{BENCH_PROGRAMS} // 'build/bench') . "/$name";
    -x $program or croak "$program is missing; run it as: make bench";

    open my $out, '-|', @$on, $program, @arguments
        or croak "cannot run $program: $!";
    my @lines = <$out>;
    close $out or croak "$program @arguments failed ($?)";

    return @lines;
}


sub by_name {
    my ($name, @lines) = @_;

    return grep { $_->{name} eq $name } @lines;
}


sub median {
    my @sorted = sort { $a <=> $b } @_;

    @sorted or croak 'a median of nothing';

    return ($sorted[$#sorted / 2] + $sorted[@sorted / 2]) / 2;
}


# Divides two lists of results of the same rounds. Returns the median, the
# smallest and the largest ratio.

sub ratios {
    my ($above, $below) = @_;

    @$above == @$below or croak 'rounds differ';

    my @ratios = map { $above->[$_] / $below->[$_] } 0 .. $#$above;

    return (median(@ratios), min(@ratios), max(@ratios));
}


# Returns the seconds that a process has spent on a processor.

sub processor_time {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/schedstat"
        or croak "cannot read /proc/$pid/schedstat: $!";

    return (split ' ', <$fh>)[0] / 1e9;
}


# Returns the seconds of a processor that a process and its children that have
# ended have used, to 10 ms.

sub processor_time_with_children {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/stat"
        or croak "cannot read /proc/$pid/stat: $!";

    my @field = split ' ', <$fh> =~ s/.*\)//r;

    return sum(@field[11 .. 14]) / 100;
}


# Waits until the helper is idle: until it has no job, and has hardly been on a
# processor for 0.3 seconds.

sub until_idle {
    my ($t) = @_;

    my ($last, $since) = (-1, 0);

    return wait_until(sub {
        my $used = sum(map { processor_time($_) } $t->helpers);
        ($last, $since) = ($used, now())
            if $used - $last > 0.005
               || grep { title($_) =~ /bloom job/ } map { children($_) }
                                                        $t->helpers;
        return now() - $since > 0.3;
    }, 60);
}


# Lines of the report's section go to the terminal and to BENCH_SECTION.

sub line {
    my $text = join '', @_, "\n";

    print $text;

    if (defined $ENV{BENCH_SECTION}) {
        open my $fh, '>>', $ENV{BENCH_SECTION}
            or croak "cannot write $ENV{BENCH_SECTION}: $!";
        print $fh $text;
        close $fh or croak "cannot write $ENV{BENCH_SECTION}: $!";
    }
}


sub section { line('## ', @_); line('') }


sub table {
    my ($head, @rows) = @_;

    line('| ', join(' | ', @$head), ' |');
    line('|', join('|', '---', ('---:') x $#$head), '|');
    line('| ', join(' | ', @$_), ' |') for @rows;
    line('');
}


# Draws a plot over a logarithmic axis, in a file next to the report. Arguments:
# name, title, label of the x axis, names of the series; then rows of x and a
# value of each series, or "?" for none.

sub plot {
    my ($name, $title, $label, $series, @rows) = @_;

    my $files = $ENV{BENCH_FILES} or return;

    return line("No plot of \"$title\": gnuplot is not installed.")
        if system('command -v gnuplot > /dev/null') != 0;

    my $svg = "$files-$name.svg";
    my $data = join '', map { join(' ', @$_) . "\n" } @rows;
    my @lines = map {
        '$data using 1:' . ($_ + 2) . ' with linespoints title "'
        . $series->[$_] . '"'
    } 0 .. $#$series;

    open my $gnuplot, '|-', 'gnuplot' or croak "gnuplot: $!";
    print $gnuplot "\$data << end\n${data}end\n",
        "set terminal svg size 640,360 background 'white'\n",
        "set output '$svg'\nset title '$title'\nset xlabel '$label'\n",
        "set datafile missing '?'\nset logscale x\nset format x '10^{%L}'\nset yrange [0:*]\n",
        "set key bottom right\nset grid\nplot ", join(', ', @lines), "\n";
    close $gnuplot or croak "gnuplot failed ($?)";

    line("![$title](", $svg =~ s,.*/,,r, ')');
    line('');
}


# Formats a number with three significant digits: 1.23 M for 1234567, 0.0123

sub number {
    my ($n) = @_;

    for ([1e9, ' G'], [1e6, ' M'], [1e4, ' k', 1e3]) {
        my ($from, $unit, $by) = (@$_, $_->[0]);
        $by = $_->[2] // $_->[0];
        return _digits($n / $by) . $unit if $n >= $from;
    }

    return _digits($n);
}


sub _digits {
    my ($n) = @_;

    return '0' if $n == 0;

    my $decimals = 2 - int(log(abs $n) / log(10) + ($n < 1 ? -0.999 : 0));

    return sprintf '%.*f', max(0, min(6, $decimals)), $n;
}


sub percent { return sprintf '%.1f %%', 100 * $_[0] }


# Returns "met" or "missed", for the report only: no run fails because of it

sub verdict { return $_[0] ? 'met' : 'missed' }


1;
