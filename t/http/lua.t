#!/usr/bin/perl
# SPDX-License-Identifier: BSD-2-Clause

# Tests lua/resty/bloom.lua and the C interface below it: every function in
# every phase, the same answers as the variable and the endpoint give, no
# acknowledged key lost, and plain reasons for what cannot be done.

use strict;
use warnings;

use BloomTest;
use BloomTest::Api qw(api);
use BloomTest::Clock;
use BloomTest::Disk;
use BloomTest::Modules;
use BloomTest::Process qw(run_command wait_until);
use BloomTest::Rules;
use BloomTest::Zones qw(ask keys_of);
use JSON::PP ();

my $t = BloomTest->new;
my $load = load_modules($t, qw(ndk_http_module ngx_http_lua_module));
my $dir = $t->testdir;


# ---- a configuration that lets a test call everything ----

# In Lua, probe(PHASE) uses every function and returns what they return.

my $probe = <<'LUA';
local bloom = require "resty.bloom"

local function show(...)
    local shown = {}
    for i = 1, select("#", ...) do
        shown[i] = tostring((select(i, ...)))
    end
    return table.concat(shown, "|")
end

local function probe(phase)
    local key = "key of " .. phase
    local many = bloom.test_many("ids", { "id1", "none", key })
    return table.concat({ show(bloom.test("ids", "id1")),
                          show(bloom.test("ids", "none")),
                          show(bloom.add("ids", key)),
                          show(bloom.add("ids", key)),
                          show(bloom.test("ids", key)),
                          show(bloom.remove("ids", key)),
                          show(bloom.test("ids", key)),
                          many and table.concat(many, ",") or "none" }, " ")
end

return { probe = probe, show = show, bloom = bloom }
LUA

my $fine = 'true false true|added true|present true true|removed false'
           . ' present,absent,absent';

# GET /call?f=FUNCTION&z=ZONE calls a function; its key is the body.  /many
# calls test() for each line of the body, and test_many() with all of them.

my $locations = <<'CONF';
    client_max_body_size 0;
    client_body_buffer_size 300m;

    location = /call {
        content_by_lua_block {
            local loaded, probe = pcall(require, "probe")
            if not loaded then
                return ngx.print(probe)
            end
            local args = ngx.req.get_uri_args()
            ngx.req.read_body()
            local key = ngx.req.get_body_data() or ""
            ngx.print(probe.show(probe.bloom[args.f](args.z, key)))
        }
    }

    location = /many {
        content_by_lua_block {
            local bloom = require "resty.bloom"
            local zone = ngx.var.arg_z
            ngx.req.read_body()
            local keys, each = {}, {}
            for line in ngx.req.get_body_data():gmatch("([^\n]*)\n") do
                keys[#keys + 1] = line
                local answer, reason = bloom.test(zone, line)
                each[#each + 1] = answer and "present"
                                  or answer == false and "absent"
                                  or reason:match("^%a+")
            end
            ngx.say(table.concat(each, ","))
            ngx.say(table.concat(bloom.test_many(zone, keys), ","))
        }
    }

    location = /eval {
        content_by_lua_block {
            local probe = require "probe"
            ngx.req.read_body()
            local call, err = loadstring(ngx.req.get_body_data())
            ngx.print(probe.show(pcall(call or error, probe.bloom, err)))
        }
    }

    location /bloom/ { bloom_api; }
CONF

sub write_conf {
    my ($t, $load, %option) = @_;

    my @zones = @{ $option{zones} };
    my @names = map { /zone=(\w+)/ } @zones;

    $t->write_file('probe.lua', $probe);
    $t->write_file_expand('nginx.conf', join "\n",
        '%%TEST_GLOBALS%%', $load, $option{main} // 'worker_processes 1;',
        'events { }', 'http {', '%%TEST_GLOBALS_HTTP%%', 'access_log off;',
        lua_path() =~ s,;;,;$option{lua}/?.lua;;,r,
        (map { "bloom_zone $_;" } @zones),
        (map { "bloom_lookup \$arg_k \$known_$_ zone=$_;" } @names),
        $option{http} // '',
        'server {', 'listen 127.0.0.1:%%PORT_8080%%;', $locations,
        (map { "location = /$_ { return 200 \"\$known_$_ of \$pid\"; }" }
             @names),
        $option{server} // '', '}', '}', '');
}


sub call {
    my ($t, $f, $zone, $key) = @_;

    return $t->post("/call?f=$f&z=$zone", $key)->body;
}


sub evaluate {
    my ($t, $code) = @_;

    return $t->post('/eval', "local bloom, err = ... $code")->body;
}


# ---- every phase ----

my @ids = keys_of('id', 3000);
my @zones = ('zone=ids file=ids.bloom journal=on',
             'zone=urls file=urls.bloom form=url journal=on',
             'zone=grows capacity=100 fpr=0.01 max_keys=5k journal=on',
             'zone=lives capacity=5k fpr=0.01 expire=24h journal=on',
             'zone=seen capacity=5k fpr=0.01 form=lower journal=off',
             'zone=fixed file=ids.bloom journal=off',
             'zone=quiet file=ids.bloom',
             'zone=full file=ids.bloom removals=0 journal=on',
             'zone=none:1m file=none.bloom required=off');

$t->build_image('ids.bloom', \@ids, '-p', '0.01', '-n', '20k', '--seed', 1);
$t->build_image('urls.bloom', [map { "h$_.example/a/" } 1 .. 1000],
                '-p', '0.01', '-n', '5k', '--form', 'url');

my @lua = (lua => $dir);

write_conf($t, $load, zones => \@zones, @lua,
           main => 'worker_processes 2; thread_pool threads threads=2;',
           http => <<'CONF', server => <<'CONF');
    lua_shared_dict said 1m;

    init_by_lua_block {
        local probe = require "probe"
        ngx.shared.said:set("init", probe.probe("init"))
    }
    init_worker_by_lua_block {
        local probe = require "probe"
        local id = ngx.worker.pid() .. "-" .. ngx.now()
        ngx.shared.said:set("init_worker", probe.probe("init_worker" .. id))

        -- just after a start, the journal has no segment for removals yet

        local function timer()
            local said = probe.probe("timer " .. id)
            if said:find("not now", 1, true) then
                probe.bloom.remove("ids", "key of timer " .. id)
                return ngx.timer.at(0.01, timer)
            end
            ngx.shared.said:set("timer", said)
        end
        ngx.timer.at(0, timer)
    }
    exit_worker_by_lua_block {
        ngx.log(ngx.NOTICE, "exiting says ", (require "probe").probe("exit"))
    }

    upstream balanced {
        server 0.0.0.1;
        balancer_by_lua_block {
            ngx.ctx.balancer = (require "probe").probe("balancer")
            require("ngx.balancer").set_current_peer("127.0.0.1",
                                                     ngx.var.server_port)
        }
    }
CONF
    location = /said {
        content_by_lua_block {
            ngx.print(ngx.shared.said:get(ngx.var.arg_phase) or "nothing")
        }
    }
    location = /set {
        set_by_lua_block $said { return (require "probe").probe("set") }
        return 200 $said;
    }
    location = /rewrite {
        rewrite_by_lua_block { ngx.print((require "probe").probe("rewrite")) }
        content_by_lua_block { ngx.exit(200) }
    }
    location = /access {
        access_by_lua_block { ngx.print((require "probe").probe("access")) }
        content_by_lua_block { ngx.exit(200) }
    }
    location = /content {
        content_by_lua_block { ngx.print((require "probe").probe("content")) }
    }
    location = /header_filter {
        return 200 "";
        header_filter_by_lua_block {
            ngx.header["X-Said"] = (require "probe").probe("header_filter")
        }
    }
    location = /body_filter {
        return 200 "body";
        body_filter_by_lua_block {
            if ngx.arg[2] then
                ngx.shared.said:set("body_filter",
                                    (require "probe").probe("body_filter"))
            end
        }
    }
    location = /log {
        return 200 "";
        log_by_lua_block {
            ngx.shared.said:set("log", (require "probe").probe("log"))
        }
    }
    location = /balancer {
        proxy_pass http://balanced/content;
        log_by_lua_block {
            ngx.shared.said:set("balancer", ngx.ctx.balancer)
        }
    }
    location = /thread {
        content_by_lua_block {
            local ok, said = ngx.run_worker_thread("threads", "inthread", "say")
            ngx.print(tostring(said))
        }
    }
CONF

# ngx.run_worker_thread() needs the path of a file without a global lock

$t->write_file('inthread.lua', <<'LUA');
local function say()
    local bloom = require "resty.bloom"
    local a, b = bloom.test("ids", "id1")
    local c, d = bloom.add("ids", "x")
    return tostring(a) .. "|" .. tostring(b) .. "|" .. tostring(c)
end
return { say = say }
LUA
my $mark = $t->log_mark;
$t->run;
$t->excuse_log($mark);


sub said {
    my ($phase) = @_;

    return wait_until(sub {
        my $said = $t->get("/said?phase=$phase")->body;
        return $said ne 'nothing' && $said;
    });
}

wait_until(sub { call($t, 'remove', 'ids', 'nothing') eq 'true|absent' });

is($t->get("/$_")->body, $fine, "all functions work in the phase $_")
    for qw(set rewrite access content);
is($t->get('/header_filter')->header('X-Said'), $fine,
   'all functions work in the phase header_filter');

for my $phase (qw(body_filter log balancer)) {
    $t->get("/$phase");
    is(said($phase), $fine, "all functions work in the phase $phase");
}

my $busy = 'nil|not now: bloom_zone "ids": another process holds the lock of the zone, or keys of bloom_add wait for it; remove the key again later true'
           . ' present,absent,absent';

my $removed = 'true|removed false present,absent,absent';

is(said('init_worker') =~ s/\Q$busy\E$/$removed/r,
   $fine, 'all functions work in init_worker');
like(said('timer'),
     qr/^true false true\|\w+ true\|present true true\|removed false /,
     'all functions work in a timer');

like(said('init'), qr/^nil\|not here: this process or thread .* none$/,
     'calls in init_by_lua, in the master, are refused');
like($t->get('/thread')->body, qr/^nil\|not here: .*\|nil$/,
     'calls in a thread are refused');


# ---- the same answers ----

# Returns what test(), test_many(), the variable and the endpoint say, each as
# a string of answers.

sub answers {
    my ($zone, @keys) = @_;

    my $body = join '', map { "$_\n" } @keys;
    my ($each, $many) = split /\n/, $t->post("/many?z=$zone", $body)->body;
    my $endpoint = join ',', @{ api($t, POST => "zones/$zone/test",
                                    body => $body)->json->{answers} };
    my %word = (0 => 'absent', 1 => 'present', '?' => 'unknown');
    my $variable = join ',', map { $word{$_} } split //, ask($t, $zone, @keys);

    return ($each, $many, $variable, $endpoint);
}

sub agree {
    my ($what, $zone, @keys) = @_;

    my ($each, $many, $variable, $endpoint) = answers($zone, @keys);
    my $present = () = $endpoint =~ /present/g;

    # the variable is empty for an invalid key, as for an unknown one

    ok(length $endpoint && $each eq $endpoint,
       "$what: test() agrees with the endpoint");
    is($many, $each, "$what: test_many() agrees with test()");
    is($each =~ s/invalid/unknown/gr, $variable,
       "$what: test() agrees with the variable");
    ok($present > 0 && $present < @keys,
       "$what: $present of " . @keys . ' keys are present');
}

agree('an image', 'ids', keys_of('id', 2000), keys_of('other', 4000));
agree('URLs', 'urls', map { ("http://H$_.example/a/b?c", "x$_.example/%61",
                             'http:///') } 900 .. 1900);

for my $zone (qw(grows lives seen)) {
    my @keys = map { "Key-$zone-$_" } 1 .. 1500;
    my $code = "for i = 1, 1500 do assert(bloom.add('$zone', 'Key-$zone-' .. i))"
               . " end for i = 1, 1500, 7 do"
               . " while not bloom.remove('$zone', 'Key-$zone-' .. i) do"
               . ' ngx.sleep(0.01) end end';
    is(evaluate($t, $code), 'true', "keys are added to and removed from $zone");
    agree("zone $zone", $zone, @keys, keys_of('never', 1500));
    is(call($t, 'test', $zone, "Key-$zone-2"), 'true',
       "zone $zone has an added key");
}

my ($parts) = map { scalar @{ $_->json->{filter}{parts} } }
              api($t, GET => 'zones/grows');
cmp_ok($parts, '>', 1, 'the zone has grown by layers');

is(evaluate($t, 'return bloom.add("seen", "MiXed"),'
                . ' bloom.test("seen", "mixeD")'),
   'true|true|true', 'the key form is applied');
is(evaluate($t, 'return bloom.add("urls", "http://Evil.example:80/x/"),'
                . ' bloom.test("urls", "evil.example/x/y.html")'),
   'true|true|true', 'an added URL is found by its parts');


# ---- keys and arguments of every kind ----

my $null = "a\0b";

is(call($t, 'add', 'ids', $null), 'true|added', 'a key with NUL is added');
is(call($t, 'test', 'ids', $null), 'true', 'and found');
is(call($t, 'test', 'ids', "a\0c"), 'false', 'all its bytes count');
is(call($t, 'add', 'ids', 'x' x 65535), 'true|added',
   'a key of 65535 bytes is added');
is(call($t, 'test', 'ids', 'x' x 65535), 'true', 'and found');

my $long = 'nil|invalid: the key is longer than 65535 bytes';

for my $zone (qw(ids urls seen)) {
    for my $f (qw(test add remove)) {
        for my $length (65536, 1_000_000, 20_000_000) {
            is(call($t, $f, $zone, 'x' x $length), $long,
               "$f in zone $zone refuses a key of $length bytes");
        }
    }
}

is(evaluate($t, 'return bloom.test_many("ids", { ("x"):rep(1e8), "id1" })[1]'),
   'true|invalid', 'test_many() answers invalid for a key that is too long');

is(call($t, $_, 'ids', ''), 'nil|empty: the key is empty',
   "$_ refuses an empty key") for qw(test add remove);
like(call($t, $_, 'urls', 'http:///'), qr/^nil\|invalid: the key [a-z ]+/,
     "$_ says why a key is invalid") for qw(test add remove);
is(call($t, $_, 'nowhere', 'a'),
   'nil|no zone: the configuration has no bloom_zone "nowhere"',
   "$_ refuses an unknown zone") for qw(test add remove);

for (['bloom.test("ids")', 'nil|empty: there is no key', 'no key'],
     ['bloom.test("ids", nil)', 'nil|empty: there is no key', 'nil'],
     ['bloom.test("ids", 42)', 'nil|invalid: a key must be a string, not number',
      'a number'],
     ['bloom.add("ids", 2^60)', 'nil|invalid: a key must be a string, not number',
      'a large number'],
     ['bloom.remove("ids", {})', 'nil|invalid: a key must be a string, not table',
      'a table'],
     ['bloom.test("ids", true)',
      'nil|invalid: a key must be a string, not boolean', 'a boolean'],
     ['bloom.test("ids", ngx.null)',
      'nil|invalid: a key must be a string, not userdata', 'ngx.null'],
     ['bloom.test(nil, "a")',
      'nil|no zone: the name of a zone must be a string, not nil', 'no zone'],
     ['bloom.test({}, "a")',
      'nil|no zone: the name of a zone must be a string, not table',
      'a table as the zone'],
     ['bloom.test(("z"):rep(1e7), "a")',
      'nil|no zone: the configuration has no bloom_zone "' . 'z' x 64 . '"',
      'a long name of a zone'],
     ['bloom.test("", "a")',
      'nil|no zone: the configuration has no bloom_zone ""',
      'an empty name of a zone'],
     ['bloom.test_many("ids", "a")',
      'nil|invalid: the keys must be an array, not string', 'no table'],
     ['bloom.test_many("ids", { a = "id1" })',
      'nil|invalid: the keys must be an array, and the table has no element 1',
      'a table that is no array'],
     ['bloom.test_many("ids", { nil, "id1" })',
      'nil|invalid: the keys must be an array, and the table has no element 1',
      'an array that begins with a hole'],
     ['bloom.test_many("x", {})',
      'nil|no zone: the configuration has no bloom_zone "x"',
      'many keys in an unknown zone'],
     ['table.concat(bloom.test_many("ids", {}), ",")', '', 'no keys'],
     ['table.concat(bloom.test_many("ids", { "id1", "", 1, {}, "none" }), ",")',
      'present,empty,invalid,invalid,absent', 'many keys of every kind'])
{
    my ($code, $want, $what) = @$_;
    is(evaluate($t, "return $code"), "true|$want", "$what: $code");
}

like(evaluate($t, 'local keys = {} for i = 1, 1e6 do keys[i] = "id" .. i end'
                  . ' local a = bloom.test_many("ids", keys)'
                  . ' return #a, a[1], a[3000], a[1e6]'),
     qr/^true\|1000000\|present\|present\|(?:absent|present)$/,
     'a table of a million keys is looked up');


# ---- tables whose elements are computed ----

# An array of 300 elements, of which the metatable computes all but the first
# and the last: "id1", "none-2", "id3", ...  `during` runs whenever it does so.

my $computed = <<'LUA';
local function element(i)
    return (i % 2 == 1 and "id" or "none-") .. i
end

local function computed(during)
    local keys = loadstring("return { 'id1', " .. ("nil, "):rep(298)
                            .. "'none-300' }")()
    assert(#keys == 300)
    return setmetatable(keys, { __index = function (_, i)
        local key = element(i)
        during(i)
        return key
    end })
end

local function wrong(answers)
    if type(answers) ~= "table" or #answers ~= 300 then
        return "no answers"
    end
    local n = 0
    for i = 1, 300 do
        if (answers[i] == "present") ~= bloom.test("ids", element(i)) then
            n = n + 1
        end
    end
    return n .. " wrong"
end
LUA

is(evaluate($t, "$computed return wrong(bloom.test_many('ids',"
                . ' computed(function () collectgarbage()'
                . ' for i = 1, 50 do local _ = "junk" .. math.random() end'
                . ' end)))'),
   'true|0 wrong',
   'the elements of a table are held while others are computed');
is(evaluate($t, "$computed return wrong(bloom.test_many('ids',"
                . ' computed(function ()'
                . ' bloom.test_many("ids", { "id1", "id1", "id1" }) end)))'),
   'true|0 wrong', 'test_many() may be called while an element is computed');
is(evaluate($t, "$computed local other = ngx.thread.spawn(function ()"
                . ' for i = 1, 50 do bloom.test_many("ids", { "id1", "id1" })'
                . ' ngx.sleep(0) end end)'
                . ' return wrong(bloom.test_many("ids",'
                . ' computed(function (i) if i % 9 == 0 then ngx.sleep(0) end'
                . ' end)))'),
   'true|0 wrong', 'a computation may yield to other requests');
is(evaluate($t, "$computed local n = 0 bloom.test_many('ids', computed("
                . 'function () n = n + 1 end)) return n'),
   'true|298', 'each element is computed once');
is(evaluate($t, "$computed return pcall(bloom.test_many, 'ids', computed("
                . 'function () error("it fails", 0) end))'),
   'true|false|it fails', 'an error of a computation is passed on');
like(evaluate($t, 'return bloom.test_many("ids", setmetatable({}, {'
                  . ' __index = function () return "id1" end }))'),
     qr/^true\|nil\|invalid: the keys must be an array, and the length of the/,
     'a table that has elements and no length is refused');


# ---- zones that cannot ----

is(call($t, 'test', 'none', 'a'),
   'nil|unknown: the zone is not loaded; load an image',
   'a zone that is not loaded answers unknown');
is(evaluate($t, 'return bloom.test_many("none", { "a", "b" })[2]'),
   'true|unknown', 'many keys in such a zone are unknown');
like(call($t, 'remove', 'none', 'a'), qr/^nil\|not? \w+: .*not loaded|never/,
     'such a zone removes no key');
like(call($t, $_, 'fixed', 'a'),
     qr/^nil\|never: bloom_zone "fixed": the zone has an image file and no journal/,
     "$_ refuses a zone with journal=off") for qw(add remove);
is(call($t, 'test', 'fixed', 'id1'), 'true', 'which is looked up nevertheless');
like(call($t, $_, 'quiet', 'a'),
     qr/^nil\|never: bloom_zone "quiet": nothing in the configuration .*"journal=on"/,
     "$_ refuses a zone whose keys nothing changes") for qw(add remove);
ok(!-e "$dir/state/quiet", 'such a zone has no directory');
like(call($t, 'remove', 'full', 'id1'), qr/^nil\|no room: /,
     'a zone with removals=0 has no room');
is(call($t, 'test', 'full', 'id1'), 'true', 'and keeps the key');
is(call($t, 'add', 'seen', 'memory'), 'true|added',
   'a zone in memory takes keys');


# ---- the C interface itself ----

my $ffi = <<'LUA';
local ffi = require "ffi"
local C = ffi.C
local keys = ffi.new("ngx_http_bloom_ffi_key_t[2]")
local answers = ffi.new("unsigned char[2]")
LUA

for (['ngx_http_bloom_ffi_version()', 1000],
     ['ngx_http_bloom_ffi_test(nil, 3, "a", 1)', -1],
     ['ngx_http_bloom_ffi_test("ids\0", 4, "a", 1)', -3],
     ['ngx_http_bloom_ffi_test("ids", 2, "a", 1)', -3],
     ['ngx_http_bloom_ffi_add("id", 2, "a", 1)', -3],
     ['ngx_http_bloom_ffi_remove("id", 2, "a", 1)', -3],
     ['ngx_http_bloom_ffi_test_many("id", 2, keys, 1, answers)', -3],
     ['ngx_http_bloom_ffi_test("ids", 3, nil, 5)', -1],
     ['ngx_http_bloom_ffi_add("ids", 3, nil, 5)', -1],
     ['ngx_http_bloom_ffi_remove("ids", 3, nil, 5)', -1],
     ['ngx_http_bloom_ffi_test("ids", 3, nil, 0)', 4],
     ['ngx_http_bloom_ffi_test("ids", 3, "id1", 3)', 1],
     ['ngx_http_bloom_ffi_test("ids", 3, "id1", ffi.cast("size_t", -1))', 3],
     ['ngx_http_bloom_ffi_add("ids", 3, "id1", ffi.cast("size_t", -1))', 3],
     ['ngx_http_bloom_ffi_remove("ids", 3, "id1", ffi.cast("size_t", -1))', 3],
     ['ngx_http_bloom_ffi_test_many("ids", 3, nil, 1, answers)', -1],
     ['ngx_http_bloom_ffi_test_many("ids", 3, keys, 1, nil)', -1],
     ['ngx_http_bloom_ffi_test_many("ids", 3, keys, 1025, answers)', -1],
     ['ngx_http_bloom_ffi_test_many("ids", 3, keys, ffi.cast("size_t", -1), answers)',
      -1],
     ['ngx_http_bloom_ffi_test_many("ids", 3, nil, 0, nil)', 0],
     ['ngx_http_bloom_ffi_test_many("ids", 3, keys, 2, answers)', 0])
{
    my ($code, $want) = @$_;
    is(evaluate($t, "$ffi return C.$code"), "true|$want", $code);
}

is(evaluate($t, "$ffi keys[0].len = 9 return C.ngx_http_bloom_ffi_test_many("
                . '"ids", 3, keys, 1, answers)'), 'true|-1',
   'a key without memory is refused');

my $symbols = `nm -D --defined-only \Q$t->{module}\E`;
my @names = sort $symbols =~ /^\S+ \w (\S+)$/mg;

is_deeply(\@names,
          [sort((map { "ngx_http_bloom_ffi_$_" }
                     qw(add reason remove test test_many version)),
                qw(ngx_http_bloom_filter_module ngx_http_bloom_module
                   ngx_module_names ngx_module_order ngx_modules))],
          'the module exports these symbols only');


# ---- counters ----

my $count = sub {
    api($t, GET => 'zones/fixed')->json->{requests} // {}
};
my $before = JSON::PP->new->canonical->encode(
    api($t, GET => 'zones/fixed')->json);
call($t, 'test', 'fixed', 'id1') for 1 .. 5;
my $after = JSON::PP->new->canonical->encode(
    api($t, GET => 'zones/fixed')->json);
my $present = sub { $_[0] =~ /"present":(\d+)/ ? $1 : -1 };
is($present->($after) - $present->($before), 5, 'lookups are counted');


# ---- the end of a worker ----

$mark = $t->log_mark;
$t->reload;
$t->excuse_log($mark);
like($t->wait_for_log(qr/exiting says /, $mark), qr/says nil\|not here: /,
     'calls of an exiting worker, after its last request, are refused');
is(call($t, 'test', 'ids', $null), 'true', 'a reload keeps the added keys');
is($t->get('/content')->body, $fine, 'all functions work after a reload');

$t->kill_all;
$mark = $t->log_mark;
$t->run;
$t->excuse_log($mark);
is(evaluate($t, 'return bloom.test("ids", "a\0b"), bloom.test("grows",'
                . ' "Key-grows-2"), bloom.test("lives", "Key-lives-2"),'
                . ' bloom.test("urls", "evil.example/x/"),'
                . ' bloom.test("ids", "key of log")'),
   'true|true|true|true|true|false',
   'added and removed keys survive kill -9 of all processes');
$t->stop;


# ---- no acknowledged key is lost ----

subtest 'keys of a timer survive reloads and deaths' => sub {
    my $t = BloomTest->new;
    my $dir = $t->testdir;

    $t->build_image('ids.bloom', ['id1'], '-p', '1e-6', '-n', '200k');
    write_conf($t, $load, lua => $dir, main => 'worker_processes 2;',
               zones => ['zone=ids file=ids.bloom journal=on'],
               http => <<"CONF");
    init_worker_by_lua_block {
        local bloom = require "resty.bloom"
        local name = ngx.worker.pid() .. "-" .. ngx.now()
        local file = io.open("$dir/acknowledged." .. name, "w")
        local n = 0
        file:setvbuf("no")
        local function add(premature)
            for i = 1, 20 do
                n = n + 1
                local key = name .. "-" .. n
                local ok, what = bloom.add("ids", key)
                if ok then file:write(key, "\\n")
                else ngx.log(ngx.ALERT, what) end
                if n % 5 == 0 then
                    ok, what = bloom.remove("ids", key)
                    if ok then file:write("removed ", key, "\\n") end
                end
            end
            if not premature and n < 3000 then ngx.timer.at(0.01, add) end
        end
        ngx.timer.at(0, add)
    }
CONF
    $t->run;

    my $acknowledged = sub {
        my %added;
        for my $file (glob "$dir/acknowledged.*") {
            open my $fh, '<', $file or die "$file: $!\n";
            while (<$fh>) {
                next unless /\n\z/;
                chomp;
                /^removed (.*)/ ? delete $added{$1} : ($added{$_} = 1);
            }
        }
        return keys %added;
    };
    my $more = sub {
        my $least = $_[0] + $acknowledged->();
        wait_until(sub { $acknowledged->() > $least })
            or die "the timers add no keys\n";
    };

    for (1 .. 3) {
        $more->(300);
        $t->expect_log(qr/exited on signal 9/);
        $t->kill_worker;
        $more->(300);
        $t->reload;
    }

    $more->(300);
    $t->kill_all;
    $t->run;

    my @keys = $acknowledged->();
    my $answers = $t->post('/many?z=ids', join '', map { "$_\n" } @keys)
                    ->body;
    my %n;
    $n{$_}++ for split /,/, ($answers =~ /^(.*)$/m)[0];

    cmp_ok(scalar @keys, '>', 2000, 'thousands of keys are acknowledged');
    is_deeply(\%n, { present => scalar @keys },
              'each acknowledged key is present');
    $t->stop;
};


subtest 'a key that cannot be saved is not acknowledged' => sub {
    my $t = BloomTest->new;

    $t->build_image('ids.bloom', ['id1'], '-p', '1e-6', '-n', '200k');

    my $disk = BloomTest::Disk->new($t, 'state');

    write_conf($t, $load, lua => $t->testdir,
               zones => ['zone=ids file=ids.bloom journal=on']);
    $t->run;
    is(call($t, 'add', 'ids', 'before'), 'true|added', 'a key is added');

    my $mark = $t->log_mark;
    $disk->refuse('ENOSPC', qw(write grow allocate open));

    like(call($t, 'add', 'ids', 'lost'),
         qr/^nil\|not saved: bloom_zone "\w+": the journal cannot be written/,
         'the addition fails');
    is(call($t, 'test', 'ids', 'lost'), 'true',
       'although the filter that serves has the key');
    like(call($t, 'remove', 'ids', 'id1'), qr/^nil\|not now: /,
         'a removal is refused');
    is(call($t, 'test', 'ids', 'id1'), 'true', 'and the key is present');

    $disk->allow;
    $t->kill_all;
    $t->excuse_log($mark);
    $t->run;
    is(call($t, 'test', 'ids', 'before'), 'true',
       'an acknowledged key survives kill -9 of all processes');
    like(call($t, 'test', 'ids', 'never added'), qr/^nil\|unknown: the zone has/,
         'the zone knows that keys were lost');
    $t->excuse_log($mark);
    $t->stop;
};


subtest 'keys expire' => sub {
    my $t = BloomTest->new;
    my $clock = BloomTest::Clock->new($t);

    write_conf($t, $load, lua => $t->testdir,
               zones => ['zone=lives capacity=1k fpr=1e-6 expire=1h'
                         . ' journal=on']);
    $t->run;
    is(call($t, 'add', 'lives', 'a'), 'true|added', 'a key is added');
    $clock->pass_all(2400);
    is(call($t, 'test', 'lives', 'a'), 'true', 'it lives');
    ok(wait_until(sub { $clock->pass_all(300);
                        call($t, 'test', 'lives', 'a') eq 'false' }),
       'then it expires');
    $t->stop;
};


subtest 'one process does everything' => sub {
    my $t = BloomTest->new;

    $t->build_image('ids.bloom', ['id1'], '-p', '1e-6');
    write_conf($t, $load, lua => $t->testdir,
               main => 'master_process off;',
               zones => ['zone=ids file=ids.bloom journal=on'],
               http => <<'CONF', server => <<'CONF');
    init_by_lua_block { said = (require "probe").probe("init") }
CONF
    location = /init { content_by_lua_block { ngx.print(said) } }
CONF
    $t->run;
    is(call($t, 'add', 'ids', 'a'), 'true|added', 'a key is added');
    is(call($t, 'test', 'ids', 'a'), 'true', 'and found');
    like($t->get('/init')->body, qr/not here/, 'calls in init_by_lua fail');

    ok(wait_until(sub { call($t, 'remove', 'ids', 'a') eq 'true|removed' }),
       'a key is removed');
    $t->stop;
};


# ---- the module is not there, or is another ----

subtest 'without the module, require says what to do' => sub {
    my $t = BloomTest->new(module => 0);

    configure_rules($t, {}, <<"CONF", main => $load);
    @{[lua_path()]}
    server {
        listen 127.0.0.1:%%PORT_8080%%;
        location / {
            content_by_lua_block {
                ngx.print(select(2, pcall(require, "resty.bloom")))
            }
        }
    }
CONF
    $t->run;
    like($t->get('/')->body, qr{nginx has not loaded ngx_http_bloom_module, .*"load_module modules/},
         'the message names the directive');
    $t->stop;
};


for (['older', 999, 0], ['of the next major number', 2000, 0],
     ['newer, with more functions', 1007, 1])
{
    my ($what, $version, $works) = @$_;

    subtest "a version of the interface that is $what" => sub {
        my $t = BloomTest->new;
        my $dir = $t->testdir;
        my $code = $t->write_file('version.c',
            "int ngx_http_bloom_ffi_version(void) { return $version; }\n");
        my ($exit, undef, $err) = run_command(
            [$ENV{CC} // 'cc', '-shared', '-fPIC', '-o', "$dir/version.so",
             $code]);

        $exit == 0 or die "version.c does not compile: $err";
        $t->environment(LD_PRELOAD => "$dir/version.so");
        $t->build_image('ids.bloom', ['id1']);
        write_conf($t, $load, lua => $dir, zones => ['zone=ids file=ids.bloom']);
        $t->run;

        my $response = $t->post('/call?f=test&z=ids', 'id1');

        if ($works) {
            is($response->body, 'true', 'works');
        } else {
            my $number = int($version / 1000) . '.' . $version % 1000;
            like($response->body, qr/needs version 1\.0 of .* loaded version \Q$number\E: install/s,
                 'is refused, and the message says what to install');
        }

        $t->stop;
    };
}

done_testing();
