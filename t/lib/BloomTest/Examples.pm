# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Examples;

# Serves the tests of conf-examples/: it makes a directory that looks like the
# checkout, in which the commands of an example's first comment run.

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(basename dirname);
use Test::More;

use BloomTest::Process qw(run_command);

our @EXPORT = qw(checkout command_lines configure content example_names
                 run_at_top start_command);

my $examples = abs_path(dirname(__FILE__) . '/../../../conf-examples');


# Returns the names of the configurations, apart from local.conf.  Examples
# whose modules this nginx cannot load are left out, and skipped as one test
# each.

sub example_names {
    return grep { $_ ne 'local.conf' && loads($_) }
           map { basename($_) } sort glob "$examples/*.conf";
}


sub loads {
    my ($name) = @_;

    return 1 if content($name) !~ m{^load_module +/usr/lib/nginx/}m;

    my $own = ($ENV{TEST_NGINX_BINARY} // '/usr/sbin/nginx')
              eq '/usr/sbin/nginx';

    SKIP: { skip "$name needs modules of Debian's nginx", 1 if !$own; }

    return $own;
}


sub content {
    my ($name) = @_;

    open my $fh, '<', "$examples/$name" or die "cannot read $name: $!\n";
    local $/;

    return <$fh>;
}


# Returns the commands of an example's comments.

sub command_lines { return content($_[0]) =~ /^#     (\S.*)$/mg }


sub start_command {
    my ($name) = @_;

    return "nginx -e error.log -p \$PWD/conf-examples -c $name";
}


# Makes the directory that the commands run in look like the checkout.

sub checkout {
    my ($t) = @_;

    my $dir = $t->testdir;
    my $tool = $ENV{TEST_BLOOM_TOOL} // "$examples/../build/ngx-bloom";

    $t->write_file($_, content($_))
        for 'local.conf', 'confirm.pl', 'block-page.html', 'njs.js';
    $t->write_file("keys/$_", content("keys/$_"))
        for map { basename($_) } glob "$examples/keys/*";

    mkdir "$dir/top" or die "mkdir: $!";
    mkdir "$dir/top/build" or die "mkdir: $!";
    symlink '..', "$dir/top/conf-examples" or die "symlink: $!";
    symlink abs_path($tool), "$dir/top/build/ngx-bloom" or die "symlink: $!";
    symlink "$examples/../src/cli/ngx-bloom-pull",
            "$dir/top/build/ngx-bloom-pull" or die "symlink: $!";
}


# Writes the example as nginx.conf, with the test's ports, module and logs.  With
# the option `retries`, nginx asks a dead server before each backend.

sub configure {
    my ($t, $text, %option) = @_;

    my $header = qr/^load_module\s.*\npid\s.*\nerror_log\s.*\n/m;

    like($text, $header, 'the example has the lines that the test replaces');
    $text =~ s/$header/%%TEST_GLOBALS%%\n/;
    $text =~ s{\$prefix/\.\./lua}{$examples/../lua};
    retry(\$text) if $option{retries};
    $text =~ s/\b127\.0\.0\.1:(80\d\d)\b/127.0.0.1:%%PORT_$1%%/g;

    $t->write_file_expand('nginx.conf', $text);
}


# Puts a dead server in front of each backend, for each request.

sub retry {
    my ($text) = @_;

    my %backends;

    $$text =~ s{(proxy_pass\s+http://)127\.0\.0\.1:(80\d\d)}
               {$backends{$2} = 1; "$1backend_$2"}ge;

    my $upstreams = join '', map { <<"CONF" } sort keys %backends;
    upstream backend_$_ {
        server 127.0.0.1:8099 max_fails=0;
        server 127.0.0.1:$_ backup;
    }
CONF

    $$text =~ s/^http \{\n/$&$upstreams/m;
}


# Runs a command at the top of the checkout.  Returns its output or, in list
# context, its exit status, its output and its errors.

sub run_at_top {
    my ($t, $command) = @_;

    my $top = $t->testdir . '/top';

    $command =~ s/\b127\.0\.0\.1:(80\d\d)\b/'127.0.0.1:' . $t->port($1)/ge;

    my @result = run_command(['sh', '-c', "cd '$top' && $command"],
                             env => $t->{env});

    return wantarray ? @result : $result[1];
}


1;
