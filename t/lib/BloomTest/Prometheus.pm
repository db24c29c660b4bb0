# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Prometheus;

# Serves the tests of metrics: it runs promtool and reads the samples of GET
# metrics.

use strict;
use warnings;

use Exporter qw(import);

use BloomTest::Process qw(run_command);

our @EXPORT = qw(promtool samples);


# Runs promtool and returns its exit status and its output.  After the
# arguments, a hash may give stdin.

sub promtool {
    my (@arguments) = @_;

    my %option = ref $arguments[-1] ? %{ pop @arguments } : ();
    my ($exit, $out, $err)
        = run_command(['promtool', @arguments], limit => 60, %option);

    return ($exit, "$out$err");
}


# Returns all samples as "name{labels}" => value, without "nginx_bloom_" in the
# names.

sub samples {
    my ($t) = @_;

    return { map { /^nginx_bloom_(\S+?\{.*\}) (\S+)$/
                   ? ($1 => $2) : die "not a sample: $_" }
             grep { !/^#/ } split /\n/, $t->get('/bloom/metrics')->body };
}


1;
