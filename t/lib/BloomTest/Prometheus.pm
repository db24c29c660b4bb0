# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Prometheus;

# What tests of the metrics share: promtool, and the samples of GET metrics.

use strict;
use warnings;

use Exporter qw(import);

use BloomTest::Process qw(run_command);

our @EXPORT = qw(promtool samples);


# Runs promtool and returns its exit status and what it says.  After the
# arguments, a hash may give stdin.

sub promtool {
    my (@arguments) = @_;

    my %option = ref $arguments[-1] ? %{ pop @arguments } : ();
    my ($exit, $out, $err)
        = run_command(['promtool', @arguments], limit => 60, %option);

    return ($exit, "$out$err");
}


# All samples: "name{labels}" => value; the name is without "nginx_bloom_".

sub samples {
    my ($t) = @_;

    return { map { /^nginx_bloom_(\S+?\{.*\}) (\S+)$/
                   ? ($1 => $2) : die "not a sample: $_" }
             grep { !/^#/ } split /\n/, $t->get('/bloom/metrics')->body };
}


1;
