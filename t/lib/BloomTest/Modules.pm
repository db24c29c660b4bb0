# SPDX-License-Identifier: BSD-2-Clause

package BloomTest::Modules;

# Serves the tests with other modules of nginx, such as Lua and njs, of which
# Debian has packages for its own nginx.

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use Test::More ();

our @EXPORT = qw(load_modules lua_path);

my $checkout = abs_path(dirname(__FILE__) . '/../../..');


# Returns the lines of nginx.conf that load modules, such as
# 'ngx_http_lua_module'.  Skips the test if this nginx is not the one that they
# are installed for.

sub load_modules {
    my ($t, @names) = @_;

    my ($path) = $t->nginx_build =~ /--modules-path=(\S+)/;
    my $own = $t->{binary} eq abs_path('/usr/sbin/nginx');
    my @missing = grep { !$path || !-e "$path/$_.so" } @names;

    Test::More::plan(skip_all => "$t->{binary} is not Debian's nginx, for which"
                                 . " @names are installed")
        if !$own;

    @missing and die "missing in $path: @missing; run"
                     . " scripts/install-deps.sh test\n";

    return join "\n", map { "load_module $path/$_.so;" } @names;
}


# Returns a lua_package_path for lua/ of the checkout.

sub lua_path {
    return "lua_package_path \"$checkout/lua/?.lua;;\";";
}


1;
