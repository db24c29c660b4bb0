# SPDX-License-Identifier: BSD-2-Clause

# `make help` lists the targets.

NGINX ?= $(or $(shell command -v nginx),/usr/sbin/nginx)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 10
TEST_JOBS ?= 4
CLANG ?= clang

CFLAGS ?= -O2 -g
WERROR ?= -Werror

# A file of src/core or src/interop finds headers only in its own layer and in the
# layers below.  Any other file finds all of them; check-layers.pl looks at
# those of src/cli.

layers_of_core = core
layers_of_interop = core interop
layers_of_all := core interop $(patsubst src/%/,%,$(wildcard src/cli/*/))

# The flags of each compilation, which also records the headers that it read.

compile = -std=c11 $(CFLAGS) -Wall -Wextra $(WERROR) -D_GNU_SOURCE \
          $(addprefix -Isrc/,$(or $(layers_of_$(firstword \
            $(subst /, ,$(patsubst src/%,%,$<)))),$(layers_of_all))) \
          -Wno-missing-field-initializers -MMD -MP -MT $@ -MF $@.d
sanitize = -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
           -fno-omit-frame-pointer
coverage = -O0 -g --coverage -include scripts/coverage.h
libraries = -lcurl -ljansson -lhiredis -lssl -lcrypto -lz -lbz2 -llzma -lzstd -lm -lidn2 \
            -lpthread
libs = $(LDFLAGS) $(libraries)

core := $(wildcard src/core/*.c)
interop := $(wildcard src/interop/*.c)
cli := $(wildcard src/cli/*/*.c)
unit := $(patsubst t/unit/%.c,%,$(wildcard t/unit/test_*.c))
fuzz := $(patsubst t/fuzz/%.c,build/fuzz/%,$(wildcard t/fuzz/fuzz_*.c))
bench := $(patsubst bench/%.c,build/bench/%, \
           $(filter-out bench/http.c bench/lookups_options.c, \
                        $(wildcard bench/*.c)))

.PHONY: all tool module man docs deps deps-run deps-bench run unit fuzzers nginxes \
        old-module check check-unit check-docs check-nginx \
        check-crashes check-files test test-layers test-unit test-nginx test-nginx-1.22 \
        test-nginx-1.26 test-nginx-1.26-short \
        test-nginxes test-nginxes-short test-nginx-tests \
        test-sanitize test-sanitize-unit test-sanitize-short \
        test-sanitize-nginx coverage coverage-report test-chaos test-fuzz test-docs test-cross cross \
        fuzz chaos fleet-chaos spellings dashboard dashboard-packages \
        screenshots bench removals lists pictures install uninstall \
        install-tool uninstall-tool install-lua deb test-deb clean help
.DELETE_ON_ERROR:
.SECONDARY:

all: module tool  ## build the module and the tool (default)


# Building

tool: build/ngx-bloom build/ngx-bloom-pull  ## build the command-line tool, build/ngx-bloom, and its script

build/ngx-bloom-pull: src/cli/ngx-bloom-pull
	@mkdir -p $(@D)
	@install -m 755 $< $@.new && mv $@.new $@

module:  ## build the module for the installed nginx, build/*.so
	scripts/build-nginx.sh installed dynamic
	@# replaced by a rename: a running nginx may have the old file mapped
	@cp build/nginx-installed-dynamic/objs/ngx_http_bloom_module.so build/new.so
	@mv build/new.so build/ngx_http_bloom_module.so

deps:  ## install the Debian packages that building and testing need
	scripts/install-deps.sh test

deps-run:  ## install the packages that `make run` needs
	@scripts/install-deps.sh run

deps-bench:  ## install the programs that `make bench` compares with
	@scripts/install-deps.sh bench \
	|| echo "the benchmarks leave out what is not installed"

# The core and the tool are compiled up to four times: into build/, with gcc's
# sanitizers into build/sanitize/, with counts of what runs into build/coverage/,
# and for the fuzzers into build/fuzz/.

core_objects = $(patsubst src/%.c,$(1)/obj/%.o,$(core) $(interop))
cli_objects = $(cli:src/%.c=$(1)/obj/%.o)
sources_and_objects = $< $(filter %.o,$^)

build/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(compile) -c $< -o $@

build/sanitize/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(compile) $(sanitize) -c $< -o $@

build/coverage/obj/%.o: src/%.c scripts/coverage.h
	@mkdir -p $(@D)
	$(CC) $(compile) $(coverage) -c $< -o $@

# The tool has threads, which count together.  That is slow, so the unit tests
# have objects of their own.

build/coverage/tool/obj/%.o: src/%.c scripts/coverage.h
	@mkdir -p $(@D)
	$(CC) $(compile) $(coverage) -fprofile-update=atomic -c $< -o $@

build/fuzz/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(CLANG) $(compile) $(sanitize) -fsanitize=fuzzer-no-link -c $< -o $@

build/ngx-bloom: $(call core_objects,build) $(call cli_objects,build)
	$(CC) $^ $(libs) -o $@

build/sanitize/ngx-bloom: $(call core_objects,build/sanitize) \
                          $(call cli_objects,build/sanitize)
	$(CC) $(sanitize) $^ $(libs) -o $@

build/coverage/ngx-bloom: $(call core_objects,build/coverage/tool) \
                          $(call cli_objects,build/coverage/tool)
	$(CC) --coverage $^ $(libs) -o $@

# A unit test names further libraries in a line /* LDLIBS: -lx */, and further
# flags in a line /* CFLAGS: -fx */.

unit_flags = $$(sed -n 's,^/\* CFLAGS: \(.*\) \*/$$,\1,p' $<)
unit_libs = -lcmocka -lm -lidn2 $$(sed -n 's,^/\* LDLIBS: \(.*\) \*/$$,\1,p' $<)

build/unit/%: t/unit/%.c $(call core_objects,build)
	@mkdir -p $(@D)
	$(CC) $(compile) $(unit_flags) $(sources_and_objects) $(unit_libs) -o $@

build/sanitize/unit/%: t/unit/%.c $(call core_objects,build/sanitize)
	@mkdir -p $(@D)
	$(CC) $(compile) $(sanitize) $(unit_flags) $(sources_and_objects) \
	    $(unit_libs) -o $@

build/coverage/unit/%: t/unit/%.c $(call core_objects,build/coverage)
	@mkdir -p $(@D)
	$(CC) $(compile) $(coverage) $(unit_flags) $(sources_and_objects) \
	    $(unit_libs) -o $@

# The tests of a part of the tool

build/unit/test_stream_judge: build/obj/cli/remote/stream_judge.o
build/sanitize/unit/test_stream_judge: build/sanitize/obj/cli/remote/stream_judge.o
build/coverage/unit/test_stream_judge: build/coverage/obj/cli/remote/stream_judge.o

# The readers of lists, with what they need

readers = $(patsubst src/%.c,$(1)/obj/%.o,$(wildcard src/cli/intake/list_*.c)) \
          $(patsubst %,$(1)/obj/cli/%.o,intake/keyform intake/key_set \
            intake/line_ends terminal/cli terminal/units terminal/visible)

build/unit/test_list_adblock: $(call readers,build)
build/sanitize/unit/test_list_adblock: $(call readers,build/sanitize)
build/coverage/unit/test_list_adblock: $(call readers,build/coverage)
build/cross/unit/test_list_adblock: $(call readers,build/cross)

build/fuzz/%: t/fuzz/%.c $(call core_objects,build/fuzz)
	@mkdir -p $(@D)
	$(CLANG) $(compile) $(sanitize) -fsanitize=fuzzer \
	    $(sources_and_objects) -lm -lidn2 -o $@

build/fuzz/fuzz_list: $(call readers,build/fuzz)

build/bench/%: bench/%.c bench/http.c $(call core_objects,build)
	@mkdir -p $(@D)
	$(CC) $(compile) $(filter %.c %.o,$^) $(libs) -o $@

build/sanitize/bench/%: bench/%.c bench/http.c \
                        $(call core_objects,build/sanitize)
	@mkdir -p $(@D)
	$(CC) $(compile) $(sanitize) $(filter %.c %.o,$^) $(libs) -o $@

build/coverage/bench/%: bench/%.c bench/http.c \
                        $(call core_objects,build/coverage)
	@mkdir -p $(@D)
	$(CC) $(compile) $(filter %.c %.o,$^) --coverage $(libs) -o $@

# Programs in t/reference that tests run, with lines LDLIBS as in unit tests

build/reference/%: t/reference/%.c $(call core_objects,build)
	@mkdir -p $(@D)
	$(CC) $(compile) $(sources_and_objects) $(unit_libs) -o $@

build/sanitize/reference/%: t/reference/%.c $(call core_objects,build/sanitize)
	@mkdir -p $(@D)
	$(CC) $(compile) $(sanitize) $(sources_and_objects) -lm -lidn2 -o $@

build/coverage/reference/%: t/reference/%.c $(call core_objects,build/coverage)
	@mkdir -p $(@D)
	$(CC) $(compile) $(sources_and_objects) --coverage -lm -lidn2 -o $@

# What bench/lookups needs of the tool

lookups = $(patsubst %,$(1)/obj/cli/terminal/%.o,json units visible)

build/bench/lookups build/sanitize/bench/lookups \
    build/coverage/bench/lookups: bench/lookups_options.c
build/bench/lookups: $(call lookups,build)
build/sanitize/bench/lookups: $(call lookups,build/sanitize)
build/coverage/bench/lookups: $(call lookups,build/coverage)

# The man page is generated from a template and the tool's tables of options,
# and is committed.  test-docs generates it again and compares.

build/manpage: scripts/manpage.c $(call core_objects,build) \
               $(filter-out %/main.o,$(call cli_objects,build))
	$(CC) $(compile) $(sources_and_objects) $(libs) -o $@

# So is the completion of bash.

build/completion: scripts/completion.c $(call core_objects,build) \
                  $(filter-out %/main.o,$(call cli_objects,build))
	$(CC) $(compile) $(sources_and_objects) $(libs) -o $@

man: build/manpage build/completion  ## generate docs/ngx-bloom.1 and docs/ngx-bloom.bash from the options
	build/manpage docs/ngx-bloom.1.in > build/ngx-bloom.1
	mv build/ngx-bloom.1 docs/ngx-bloom.1
	build/completion > build/ngx-bloom.bash
	mv build/ngx-bloom.bash docs/ngx-bloom.bash

# Tables in these documents are generated from those of the source, too.

docs:  ## generate tables in docs/api.md and docs/operations.md from the source
	@mkdir -p build
	scripts/tables.pl docs/api.md > build/api.md
	mv build/api.md docs/api.md
	scripts/tables.pl docs/operations.md > build/operations.md
	mv build/operations.md docs/operations.md

# The unit tests, and the programs that t/tool and scripts/check-docs.sh run

unit: $(unit:%=build/unit/%) build/bench/lookups build/manpage build/completion build/reference/expressions  ## build the unit tests
fuzzers: $(fuzz)  ## build the fuzzers

# test-cross also compiles the tool and the unit tests for aarch64.  It unpacks
# Debian's libraries into build/cross and does not install them.

cross = aarch64-linux-gnu
cross_libs = -Lbuild/cross/usr/lib/$(cross) \
             -Wl,-rpath-link,build/cross/usr/lib/$(cross) \
             -Wl,-rpath-link,build/cross/lib/$(cross)
cross_compile = $(compile) \
                -Ibuild/cross/usr/include -Ibuild/cross/usr/include/$(cross)

build/cross/unpacked:
	scripts/cross-libs.sh build/cross

build/cross/obj/%.o: src/%.c build/cross/unpacked
	@mkdir -p $(@D)
	$(cross)-gcc $(cross_compile) -c $< -o $@

build/cross/ngx-bloom: $(call core_objects,build/cross) \
                       $(call cli_objects,build/cross)
	$(cross)-gcc $^ $(cross_libs) $(libraries) -o $@

build/cross/unit/%: t/unit/%.c $(call core_objects,build/cross)
	@mkdir -p $(@D)
	$(cross)-gcc $(cross_compile) $(unit_flags) $(sources_and_objects) \
	    $(cross_libs) $(unit_libs) -o $@

cross: build/cross/ngx-bloom $(unit:%=build/cross/unit/%)  ## build the tool and unit tests for aarch64

# The page that the endpoint shows to browsers is committed, so that building the
# module needs no Node.js.  The versions of its packages are locked.

packages := dashboard/node_modules/.package-lock.json

$(packages): dashboard/package.json dashboard/package-lock.json dashboard/.npmrc
	cd dashboard && npm ci
	@touch $@

dashboard-packages: $(packages)  ## install the packages of dashboard/, in their locked versions

dashboard: $(packages)  ## build the page for browsers from dashboard/
	node dashboard/build.mjs dashboard/page.html

screenshots: all $(packages)  ## take the pictures in docs/screenshots (needs pngquant)
	perl -It/lib dashboard/test/screenshots.pl docs/screenshots

# nginx from Debian's sources; see scripts/build-nginx.sh for the kinds

nginxes: nginx-1.22.1-static nginx-1.26.3-dynamic nginx-1.26.3-sanitize  ## build every nginx that the tests use

nginx-%:
	scripts/build-nginx.sh $(subst -, ,$*)

old-module:  ## build an earlier module from the git history, to test upgrades
	@scripts/build-old-module.sh


# Running

run: deps-run all  ## serve a shield with real keys on localhost, from PORT (8080) on
	scripts/run.sh


# Testing

test:  ## run every test except test-cross; the last line is "N passed, N failed"
	@scripts/install-deps.sh test
	@+MAKE="$(MAKE)" scripts/test.sh

# `make check` is what one runs between edits: at most four minutes on two cores,
# once everything is built.  check_tests has files of each folder that together run
# most of src/, which make coverage TESTS="$$(make -s check-files)" shows, and of
# which each takes at most five seconds of processor time and hardly waits, as
# "prove --timer" shows.  check_crashes need fault points.  check_unit leaves out what
# measures rates for minutes.

check_tests = \
    $(addprefix t/http/, arg.t audit.t changes.t cookie-header.t decision-log.t \
      dry-run.t feedback.t http2-http3.t key-decode.t key-forms.t lookup-once.t \
      lookup.t match.t retry.t route.t rules-if.t rules-inherit.t \
      rules-invalid.t rules-phase.t rules-several.t rules-split.t rules-trial.t \
      rules.t unknown.t) \
    $(addprefix t/api/, changes-parts.t changes.t clear.t counts.t excepted.t \
      expire.t follow-file.t image.t keys.t metrics.t page.t remove.t \
      upload-early.t version.t why.t) \
    $(addprefix t/zone/, counters.t damaged-image.t except.t \
      fuse-feedback.t growth-removals.t growth.t key-form.t load-additions.t \
      permissions.t reload.t remove-image.t removed-lookups.t required.t \
      resize-and-upgrade.t size.t start.t state-directory.t stop.t \
      test-config.t upgrade.t upload.t without-journal.t worker-death.t) \
    $(addprefix t/journal/, as-of.t changes-times.t checkpoint.t control-page.t \
      disk-errors.t recovery.t remove-clock.t remove-disk.t replay.t slices.t \
      switch-on-off.t temporary-files.t) \
    $(addprefix t/import/, key-form.t redis-connection.t serve.t) \
    $(addprefix t/lists/, extracts.t no-key.t resolvers.t) \
    $(addprefix t/tool/, add.t analyze.t completion.t expand.t \
      follow-counts.t follow-origin.t follow-tls.t golden-base.t golden-images.t help.t info.t \
      journal.t json.t key-forms.t layers.t key-files.t list-formats.t merge.t \
      output-files.t removed.t size.t source.t status.t test.t verify.t \
      without.t)
check_crashes = t/crash/deaths.t t/crash/tasks.t t/crash/waits.t
check_rows = zone (file|grow): .* of (an addition|a removal|a clear)$$
check_unit = $(filter-out test_geometry_%,$(unit))

# TESTS replaces check_tests if it is set.

check_files = $(if $(filter file,$(origin TESTS)),$(check_tests),$(TESTS))
check_make = $(MAKE) --no-print-directory

check:  ## run what finds most mistakes in four minutes: parts of the stages below (or TESTS)
	@scripts/install-deps.sh test
	@+failed=0; \
	$(check_make) -k -j 2 -O test-layers check-unit check-docs || failed=1; \
	$(check_make) check-nginx || failed=1; \
	$(check_make) check-crashes || failed=1; \
	echo; \
	echo "make check ran:"; \
	echo "  the check of the layers, links and tables of the documents"; \
	echo "  $(words $(check_unit)) of $(words $(unit)) programs of unit tests"; \
	echo "  $(words $(shell find $(check_files) -name '*.t')) of $(words $(all_tests)) test files with the installed nginx"; \
	echo "  $(words $(check_crashes)) files of crash tests with sanitizers and fault points"; \
	echo "It ran no other test file or unit test, no command of a document, no other"; \
	echo "nginx, no model checker and no fuzzer. make test runs all of them."; \
	[ $$failed = 0 ] || echo "make check: something FAILED, see above"; \
	exit $$failed

check-unit: $(check_unit:%=build/unit/%)
	@scripts/run-unit.sh $^

check-docs: all build/manpage build/completion
	@scripts/check-docs.sh --tables

check-nginx: all build/reference/h3client
	$(call with,$(NGINX),$(CURDIR)/build/ngx_http_bloom_module.so) prove -r -It/lib -j $(TEST_JOBS) $(check_files)

check-crashes: build/sanitize/ngx-bloom nginx-1.26.3-sanitize
	CRASH_ROWS='$(check_rows)' TEST_NGINX_SANITIZED=1 $(call with,$(CURDIR)/build/nginx-1.26.3-sanitize/objs/nginx,,build/sanitize/ngx-bloom) prove -It/lib -j $(TEST_JOBS) $(check_crashes)

check-files:
	@echo $(check_files) $(check_crashes)

test-layers: all  ## check that the folders of src/ are layers without circles
	@scripts/check-layers.pl

test-unit: unit  ## run the unit tests
	@scripts/run-unit.sh $(unit:%=build/unit/%)

# $(call suite,NGINX,MODULE,TOOL) runs the tests in t/ with this nginx.  MODULE is
# empty if the module is linked into nginx.

with = TEST_NGINX_BINARY="$(1)" TEST_NGINX_MODULE="$(2)" \
       TEST_BLOOM_TOOL="$(CURDIR)/$(or $(3),build/ngx-bloom)" \
       BENCH_PROGRAMS="$(CURDIR)/$(dir $(or $(3),build/ngx-bloom))bench"
suite = $(with) prove -r -It/lib -j $(TEST_JOBS) $(TESTS)
all_tests = $(shell find $(test_folders) -name '*.t')
TESTS ?= $(test_folders)
test_folders = t/harness.t t/old-names.t t/http t/api t/zone t/journal t/crash \
               t/import t/lists t/tool

# $(call serving,NGINX,MODULE) leaves out the tests of the tool and of the page in
# a browser, which do not depend on nginx's version.

tests = $(shell find $(TESTS) -name '*.t' | sort)
serving_tests = $(filter-out t/old-names.t t/lists/% t/tool/% t/import/% \
                  t/api/page-browser.t,$(tests)) \
                $(filter t/import/serve.t,$(tests))
serving = $(with) prove -It/lib -j $(TEST_JOBS) $(or $(4),$(serving_tests))

test-nginx: all build/bench/lookups build/reference/expressions build/reference/h3client old-module $(packages)  ## run TESTS (files or folders in t/; all) with the installed nginx
	TEST_NGINX_OLD_MODULE="$(CURDIR)/build/old-module/ngx_http_bloom_module.so" \
	$(call suite,$(NGINX),$(CURDIR)/build/ngx_http_bloom_module.so)

# A few tests of what depends on nginx: directives, phases, bodies of requests,
# reloads, upgrades and restarts; fewer still; and what needs an nginx with HTTP/3

short_tests = t/http/rules.t t/http/rules-phase.t t/http/route.t \
              t/http/changes.t t/http/change-lists.t t/http/cache.t t/http/retry.t \
              t/http/cookie-header.t \
              t/http/key-decode.t t/http/feedback.t t/http/audit.t \
              t/api/keys.t t/api/image.t t/zone/reload.t t/zone/upload.t \
              t/zone/upgrade.t t/zone/worker-death.t t/journal/replay.t \
              t/journal/checkpoint.t
fewest_tests = t/http/rules-phase.t t/http/route.t t/http/feedback.t \
               t/http/change-lists.t \
               t/http/cookie-header.t t/api/image.t \
               t/zone/reload.t t/zone/upgrade.t t/journal/checkpoint.t
http3_tests = $(shell find t/http t/api -name '*http3*.t' | sort)

# The module in Debian's nginx 1.22.1 has all tests in test-nginx.

test-nginx-1.22: tool nginx-1.22.1-static  ## run a few tests with the module linked into nginx 1.22.1
	$(call serving,$(CURDIR)/build/nginx-1.22.1-static/objs/nginx,,,$(short_tests))

test-nginx-1.26 test-nginx-1.26-short: tool build/reference/h3client nginx-1.26.3-dynamic nginx-1.22.1-static
	TEST_NGINX_OTHER_BINARY="$(CURDIR)/build/nginx-1.22.1-static/objs/nginx" \
	$(call serving,$(CURDIR)/build/nginx-1.26.3-dynamic/objs/nginx,$(CURDIR)/build/nginx-1.26.3-dynamic/objs/ngx_http_bloom_module.so,,$(if $(filter %-short,$@),$(short_tests) $(http3_tests) t/zone/upgrade-nginx.t))

test-nginx-1.26:  ## run the tests with the module loaded into nginx 1.26.3
test-nginx-1.26-short:  ## run a few of them, and those of HTTP/3

# nginxes from the sources in NGINX_SOURCES; see scripts/nginx-sources.sh

test-nginxes: all build/reference/h3client  ## run the tests with every nginx in NGINX_SOURCES, built in four ways
	@TEST_JOBS=$(TEST_JOBS) scripts/test-nginxes.sh all $(serving_tests)

test-nginxes-short: all build/reference/h3client  ## run a few of them with every nginx in NGINX_SOURCES, built in one way
	@TEST_JOBS=$(TEST_JOBS) scripts/test-nginxes.sh short $(fewest_tests)

# nginx's own tests, which are not a part of this project: SUITE is a checkout of
# nginx/nginx-tests.  SOURCE is a version that scripts/nginx-source.sh fetches, or
# one of the sources in NGINX_SOURCES.

SOURCE ?= 1.26.3
full = build/$(if $(filter 0% 1% 2%,$(SOURCE)),nginx-$(SOURCE)-full,$(SOURCE)-full-gcc)/objs

test-nginx-tests:  ## run nginx's own tests in SUITE, without and with the module (SOURCE: 1.26.3)
	@test -n "$(SUITE)" || { echo "usage: make test-nginx-tests SUITE=DIR" \
	    "[SOURCE=NAME], with a checkout of nginx/nginx-tests" >&2; exit 1; }
	CC=gcc scripts/build-nginx.sh $(SOURCE) full
	@scripts/nginx-tests.sh "$(SUITE)" $(full)/nginx \
	    $(full)/ngx_http_bloom_module.so $(FILES)

test-sanitize: test-sanitize-unit test-sanitize-nginx  ## run test-sanitize-unit and test-sanitize-nginx

test-sanitize-unit: $(unit:%=build/sanitize/unit/%)  ## run the unit tests with ASan and UBSan
	@scripts/run-unit.sh $^

# Shell scripts have nothing that the sanitizers see.

sanitized_tests = $(filter-out t/tool/pull%.t t/tool/install.t,$(tests))

# In "make test" they run the tests that inject faults, and those that give nginx
# or the tool bytes from outside.

sanitized_short = $(filter-out t/http/audit-add.t t/http/feedback-except.t \
                    t/http/conf-errors.t t/http/conf-examples%.t \
                    t/api/page-browser.t t/api/runbook.t, \
                    $(wildcard t/http/*.t t/api/*.t t/zone/hostile-*.t)) \
                  $(addprefix t/zone/, damaged-image.t except.t \
                    growth.t feedback-late.t reload.t remove-image.t \
                    resize-and-upgrade.t upgrade.t upload.t worker-death.t) \
                  $(addprefix t/tool/, add.t bombs.t build.t compressed.t \
                    except.t follow.t hostile-text.t info.t journal.t \
                    key-files.t merge.t not-keys.t status.t test.t verify.t) \
                  t/import/serve.t t/import/hostile.t t/lists/extracts.t \
                  $(wildcard t/crash/*.t) \
                  $(shell grep -l BloomTest::Faults t/journal/*.t t/zone/*.t)

test-sanitize-nginx test-sanitize-short: build/sanitize/ngx-bloom build/sanitize/bench/lookups build/sanitize/reference/expressions build/reference/h3client nginx-1.26.3-sanitize $(packages)
	TEST_NGINX_SANITIZED=1 $(call serving,$(CURDIR)/build/nginx-1.26.3-sanitize/objs/nginx,,build/sanitize/ngx-bloom,$(sort $(if $(filter %-short,$@),$(sanitized_short),$(sanitized_tests))))

test-sanitize-nginx:  ## run TESTS with an nginx built with ASan and UBSan
test-sanitize-short:  ## run a part of them

# Unit tests, a tool and two nginxes that count what runs; see scripts/coverage.pl.
# The tests of Lua and njs need the installed nginx.  test_form_linear counts basic
# blocks, and would count the counters.

covered_unit = $(patsubst %,build/coverage/unit/%,$(filter-out test_form_linear,$(check_unit)))
covered_tests = $(filter t/http/lua.t t/http/njs.t,$(tests))
count = GCOV_ERROR_FILE="$(CURDIR)/build/coverage/errors.log" \
        $(call with,$(1),$(2),build/coverage/ngx-bloom) prove -It/lib -j $(TEST_JOBS)
covered = $(call count,$(CURDIR)/build/nginx-1.26.3-coverage/objs/nginx)
covered_installed = $(call count,$(NGINX),$(CURDIR)/build/nginx-installed-coverage/objs/ngx_http_bloom_module.so)

coverage: $(covered_unit) build/coverage/ngx-bloom build/coverage/bench/lookups build/coverage/reference/expressions build/reference/h3client nginx-1.26.3-coverage nginx-installed-coverage $(packages)  ## run the unit tests and TESTS, and report what of src/ they run
	@scripts/coverage.pl --clear
	@failed=0; \
	scripts/run-unit.sh $(covered_unit) || failed=1; \
	$(covered) -r $(TESTS) || failed=1; \
	$(if $(covered_tests),$(covered_installed) $(covered_tests) || failed=1;) \
	scripts/coverage.pl || failed=1; \
	exit $$failed

coverage-report:  ## report again what ran in `make coverage`
	@scripts/coverage.pl

# The model checker is in t/chaos.  CHAOS passes it options, such as --seed N.

TIME ?= 20s
installed = $(call with,$(NGINX),$(CURDIR)/build/ngx_http_bloom_module.so)
sanitized = TEST_NGINX_SANITIZED=1 $(call with,$(CURDIR)/build/nginx-1.26.3-sanitize/objs/nginx,,build/sanitize/ngx-bloom)
checker = perl -It/lib t/chaos/chaos.pl --time $(TIME) $(CHAOS)

# Clocks that jump and memory that runs out need minutes to show anything, so
# only "make chaos" draws them.  The sanitizers would report the workers that die
# when an attacker damages files or shared memory.

test-chaos: all build/sanitize/ngx-bloom nginx-1.26.3-sanitize  ## run the model checkers for TIME (20s), and check that they can fail
	$(installed) prove -It/lib t/chaos/self.t t/chaos/fleet.t
	$(installed) $(checker) --skip clock,memory
	$(sanitized) $(checker) --skip clock,memory,tamper,forge

chaos: all  ## run the model checker with all events: make chaos TIME=10m
	$(installed) $(checker)

fleet-chaos: all  ## run the model checker of a fleet: make fleet-chaos TIME=10m
	$(installed) perl -It/lib t/chaos/fleet.pl --time $(TIME) $(CHAOS)

test-fuzz fuzz: fuzzers
	@scripts/run-fuzz.sh $(FUZZ_SECONDS) $(fuzz)

test-fuzz:  ## run each fuzzer for FUZZ_SECONDS (10)
fuzz:  ## run each fuzzer for longer: make fuzz FUZZ_SECONDS=3600

SPELLINGS ?= 400000
SEED ?= 1

spellings: tool build/reference/expressions $(packages)  ## compare the key forms with the parsers of Node and Chromium on SPELLINGS each (400000)
	@failed=0; \
	for parser in node chromium; do \
	    echo "The URL parser of $$parser:"; \
	    node t/reference/browser.mjs --count $(SPELLINGS) --seed $(SEED) \
	        --parser $$parser --tool build/ngx-bloom \
	        --program build/reference/expressions || failed=1; \
	done; \
	exit $$failed

codepoints: build/reference/expressions $(packages)  ## compare every code point in a host with tr46 and with Chromium
	node t/reference/codepoints.mjs --program $<

test-cross: tool unit  ## run the tool and unit tests on emulated aarch64 and old x86-64
	@scripts/install-deps.sh cross
	@+$(MAKE) --no-print-directory cross
	@scripts/test-cross.sh $(unit)

test-docs: all build/manpage build/completion  ## run the commands in the documents, and check links and tables
	scripts/check-docs.sh


# Measuring

pictures: docs/analyze.svg  ## measure false-positive rates and draw docs/analyze.svg (needs gnuplot)

docs/analyze.svg: build/ngx-bloom scripts/analyze.gnuplot
	build/ngx-bloom analyze --layout blocked -n 100k -p 0.001 --csv > build/analyze-blocked.csv
	build/ngx-bloom analyze --layout classic -n 100k -p 0.001 --csv > build/analyze-classic.csv
	gnuplot -c scripts/analyze.gnuplot 100000 0.001 build/analyze-blocked.csv build/analyze-classic.csv > build/analyze.svg
	mv build/analyze.svg $@

bench: deps-bench all $(bench)  ## measure BENCH (all sections) and write bench/results
	scripts/bench.sh $(BENCH)

removals: all  ## remove 100,000 of ten million keys, then ask for every key
	TEST_NGINX_LARGE=1 $(installed) prove -v -It/lib t/zone/remove-scale.t

lists: all $(packages)  ## find the entries of published lists through nginx (LISTS: options)
	scripts/measure-lists.pl $(LISTS)


# Installing and cleaning

# The usual variables: PREFIX or prefix, DESTDIR, and the directories below.

prefix ?= $(PREFIX)
exec_prefix ?= $(prefix)
bindir ?= $(exec_prefix)/bin
datarootdir ?= $(prefix)/share
datadir ?= $(datarootdir)
mandir ?= $(datarootdir)/man
man1dir ?= $(mandir)/man1
docdir ?= $(datarootdir)/doc/ngx-bloom
examplesdir ?= $(docdir)/examples
completiondir ?= $(datarootdir)/bash-completion/completions
luadir ?= $(datarootdir)/lua/5.1
modulesdir ?= $(shell $(NGINX) -V 2>&1 | sed -n 's/.*--modules-path=\([^ ]*\).*/\1/p')

directories = DESTDIR bindir man1dir completiondir examplesdir luadir modulesdir
install_sh = NGINX="$(NGINX)" $(foreach name,$(directories),$(name)="$($(name))") \
             scripts/install.sh

install: all  ## install the tool, the library for Lua and examples into PREFIX (/usr/local), and the module for nginx
	@$(install_sh) install tool module lua

uninstall:  ## remove what `make install` installed
	@$(install_sh) uninstall tool module lua

install-tool: tool  ## install the tool alone
	@$(install_sh) install tool

uninstall-tool:  ## remove what `make install-tool` installed
	@$(install_sh) uninstall tool

install-lua:
	@$(install_sh) install lua

# The packages are built from a copy of the sources in build/deb.

deb:  ## build the Debian packages, build/deb/*.deb
	@scripts/install-deps.sh deb
	scripts/build-deb.sh build/deb

test-deb: deb  ## install, upgrade and purge the packages in a minimal chroot (root)
	scripts/test-deb.sh

clean:  ## remove build/, but not the cache of compiled nginxes
	rm -rf build

help:  ## list the targets
	@sed -n 's/^\([a-z0-9.-]*\):.*  ## \(.*\)/\1|\2/p' Makefile \
	| while IFS='|' read -r target text; do \
	    printf '%-19s %s\n' "$$target" "$$text"; done

-include $(shell find build -path 'build/deb*' -prune -o -name '*.d' -type f -print 2>/dev/null)
