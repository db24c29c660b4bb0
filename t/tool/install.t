#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests `make install` and `make uninstall`, in a temporary directory: which
# files they install, that these work, that a file in use is replaced by a
# rename, and that nothing of them is left in the end.

use strict;
use warnings;

use BloomTest;
use BloomTest::Process qw(run_command);
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Find qw(find);

plan skip_all => 'the sanitized module and tool are not installed'
    if $ENV{TEST_NGINX_SANITIZED};

my $t = BloomTest->new;
my $root = $t->testdir . '/root';
my $checkout = abs_path(dirname(__FILE__) . '/../..');
my $module = 'usr/lib/nginx/modules/ngx_http_bloom_module.so';
my @modules = ('modulesdir=/usr/lib/nginx/modules');
my $state = '/var/lib/nginx/bloom';

my %usual = (
    'usr/local/bin/ngx-bloom' => '0755',
    'usr/local/bin/ngx-bloom-pull' => '0755',
    'usr/local/share/man/man1/ngx-bloom.1' => '0644',
    'usr/local/share/man/man1/ngx-bloom-pull.1' => '0644',
    'usr/local/share/bash-completion/completions/ngx-bloom' => '0644',
    'usr/local/share/bash-completion/completions/ngx-bloom-pull' => '0644',
    $module => '0644',
);
$usual{'usr/local/share/lua/5.1/resty/bloom.lua'} = '0644'
    if -e "$checkout/lua/resty/bloom.lua";

my ($tracked) = (run_command(['git', '-C', $checkout, 'ls-files',
                              'conf-examples']))[1];
my @examples = grep { !/\.gitignore$/ } map { s/^conf-examples\///r }
                                            split /\n/, $tracked;


# ---- twice in a row: install, install over it, use, uninstall ----

for my $round (1, 2) {
    my $out = make_ok('install', @modules);

    my %files = modes();
    my %example = map { /^usr\/local\/share\/doc\/ngx-bloom\/examples\/(.*)/
                            ? ($1 => delete $files{$_}) : () } sort keys %files;

    is_deeply(\%files, \%usual, "install $round installs these files");
    if (@examples) {
        is_deeply([sort keys %example], [sort @examples],
                  "install $round installs the examples that git has");
    }
    is($example{'nightly/rebuild.sh'}, '0755', 'a script is executable');
    is($example{'shield.conf'}, '0644', 'an example is not');

    like($out, qr/^installed \Q$root\/$_\E$/m, "it says so of $_")
        for sort keys %usual;
    like($out, qr/^ +load_module \/\Q$module\E;$/m,
         'it says what to write into nginx.conf');
    like($out, qr/a reload keeps that version/,
         'it says that a reload keeps an earlier version');

    works();
    replaces_by_rename();

    $out = make_ok('uninstall', @modules);
    is_deeply({ modes() }, {}, "uninstall $round leaves no file");
    ok(!-e "$root/usr/local/share/doc/ngx-bloom",
       'and not the directory of the examples');
    like($out, qr/^removed \Q$root\/$_\E$/m, "it says so of $_")
        for sort keys %usual;
    like($out, qr/remove it with all bloom_ directives/,
         'it says what to remove from nginx.conf');
    like($out, qr/ not removed: bloom_state_path, by default \Q$state\E\./,
         'it says that it leaves the state');
    is(-d "$root$state" ? 1 : 0, 1, 'the state is there');
}


# ---- other directories, and what does not belong to the project ----

make_ok('install', @modules, 'prefix=/opt/bloom', 'bindir=/opt/bin',
        'mandir=/opt/man', 'docdir=/opt/doc/ngx-bloom');
for my $path ('bin/ngx-bloom', 'man/man1/ngx-bloom.1',
              'doc/ngx-bloom/examples/shield.conf',
              'bloom/share/bash-completion/completions/ngx-bloom')
{
    ok(-f "$root/opt/$path", "the directories are variables: $path");
}

write_to("$root/opt/doc/ngx-bloom/examples/mine.conf");
make_ok('uninstall', @modules, 'prefix=/opt/bloom', 'bindir=/opt/bin',
        'mandir=/opt/man', 'docdir=/opt/doc/ngx-bloom');
is_deeply([keys %{{ modes() }}], ['opt/doc/ngx-bloom/examples/mine.conf'],
          'uninstall leaves the file of a user');
unlink "$root/opt/doc/ngx-bloom/examples/mine.conf";

make_ok('install', @modules, 'PREFIX=/usr');
ok(-f "$root/usr/bin/ngx-bloom", 'PREFIX is the same as prefix');
unlike(make_ok('uninstall', @modules, 'PREFIX=/usr'), qr/were not there/,
       'uninstall finds everything');
like(make_ok('uninstall', @modules, 'PREFIX=/usr'),
     qr/^\d+ files were not there\. If they were installed with another PREFIX, DESTDIR or directory, give the same/m,
     'a second uninstall says that nothing is there');
is_deeply({ modes() }, {}, 'uninstalling what is not there is no error');

like(make_ok('install', @modules, 'PREFIX=/opt'),
     qr{^For Lua, write into http\{\}: lua_package_path "/opt/share/lua/5\.1/\?\.lua;;";}m,
     'install says how Lua finds the library below another PREFIX');
make_ok('uninstall', @modules, 'PREFIX=/opt');

make_ok('install-tool', 'PREFIX=/usr');
ok(-f "$root/usr/bin/ngx-bloom", 'the tool can be installed alone');
make_ok('uninstall-tool', 'PREFIX=/usr', 'NGINX=/nonexistent');
is_deeply({ modes() }, {}, 'and uninstalled without nginx');


# ---- what cannot work ----

fails(qr/-V shows no --modules-path.*; set modulesdir=DIR, or NGINX=PATH/,
      'install', 'NGINX=/bin/true');
is_deeply({ modes() }, {}, 'an install without a directory installs nothing');

fails(qr/NGINX=\/nonexistent: there is no such program, .*; set NGINX=PATH/,
      'install', 'NGINX=/nonexistent');
fails(qr/bindir "opt\/bin": must be an absolute path, as PREFIX must/, 'install',
      @modules, 'PREFIX=opt');
is_deeply({ modes() }, {}, 'nor does one with a relative path');

write_to("$root/file");
fails(qr/cannot write to \Q$root\E\/file\/bin; run this as root, or set PREFIX or DESTDIR; nothing was installed/,
      'install', @modules, 'PREFIX=/file');
fails(qr/cannot write to \Q$root\E\/file\/modules; run this as root, or set modulesdir or DESTDIR; nothing was installed/,
      'install', 'modulesdir=/file/modules', 'PREFIX=/usr');
is_deeply([keys %{{ modes() }}], ['file'], 'nothing is installed in part');

# A file of a Debian package is apt's.

my $bin = $t->testdir . '/bin';
mkdir $bin or die "mkdir: $!";
write_to("$bin/dpkg-query", "#!/bin/sh\necho libnginx-mod-http-bloom: \$2\n");
chmod 0755, "$bin/dpkg-query";
local $ENV{PATH} = "$bin:$ENV{PATH}";

for my $do ('install', 'uninstall') {
    fails(qr/belongs to the Debian package libnginx-mod-http-bloom; remove that/,
          $do, 'DESTDIR=', "modulesdir=$root/modules", "PREFIX=$root/apt");
}

done_testing;


sub make {
    my @arguments = @_;
    delete local @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES)};

    # the module and the tool are built, and other tests use them
    return run_command(['make', '-s', '-C', $checkout, '-o', 'all',
                        "DESTDIR=$root", @arguments]);
}

sub make_ok {
    my @arguments = @_;

    mkdir $_ for $root, "$root/var", "$root/var/lib", "$root/var/lib/nginx",
                 "$root$state";
    my ($exit, $out, $err) = make(@arguments);
    is($exit, 0, "make @arguments") or diag($err);

    return $out;
}

sub fails {
    my ($message, @arguments) = @_;

    my ($exit, undef, $err) = make(@arguments);
    isnt($exit, 0, "make @arguments fails");
    like($err, $message, 'and says why');
}

# Returns the mode of each file below the directory.

sub modes {
    my %mode;

    find({ no_chdir => 1, wanted => sub {
        $mode{ s/^\Q$root\E\///r } = sprintf '%04o', (stat)[2] & 07777 if -f;
    } }, $root);

    return %mode;
}

sub write_to {
    my ($path, $text) = @_;

    open my $file, '>', $path or die "$path: $!";
    print $file $text // '';
    close $file or die "$path: $!";
}

# The tool builds an image, and nginx accepts the module with it.

sub works {
    my $ids = $t->testdir . '/ids.bloom';

    my ($exit, undef, $err) = run_command(
        ["$root/usr/local/bin/ngx-bloom", 'build', '-q', '-o', $ids, '-'],
        stdin => "a\n");
    is($exit, 0, 'the installed tool builds an image') or diag($err);

    my ($status, $help)
        = run_command(["$root/usr/local/bin/ngx-bloom-pull", '--help']);
    is($status, 0, 'the installed script runs');
    like($help, qr/^Usage: ngx-bloom-pull URL FILE /, 'it shows its options');

    $t->write_file('nginx.conf', "load_module $root/$module; pid nginx.pid;"
                   . " events {} http { bloom_state_path off;"
                   . " bloom_zone zone=ids file=$ids; }");

    SKIP: {
        skip 'the module is for the installed nginx', 1
            if $t->{binary} ne '/usr/sbin/nginx';

        ($exit, undef, $err) = run_command(
            [$t->{binary}, '-e', 'stderr', '-p', $t->testdir,
             '-c', 'nginx.conf', '-t']);
        is($exit, 0, 'nginx accepts the installed module') or diag($err);
    }
}

sub replaces_by_rename {
    open my $old, '<', "$root/$module" or die "$module: $!";
    make_ok('install', @modules);

    is((stat $old)[3], 0, 'the file that a running nginx has is not written');
    isnt((stat $old)[1], (stat "$root/$module")[1], 'there is a new one');
    is_deeply([grep { /\.new$/ } keys %{{ modes() }}], [],
              'no temporary file is left');
}
