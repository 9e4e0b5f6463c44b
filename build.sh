#!/bin/sh
# build.sh - builds, tests and measures subagent; `./build.sh help` says how.
#
# Everything made lands in build/, except ./subagent itself.  A step runs only
# when the text of its inputs (file sums, flags, compiler) differs from the
# text kept when it last succeeded; see fresh() and done_with().
#
# All paths given to compilers are relative to this folder, so no name of a
# folder gets into the binary and two builds are alike bit by bit.
#
# Flags and file names are lists of words without spaces in them:
# shellcheck disable=SC2086,SC2046
set -eu
cd "$(dirname "$0")"
LC_ALL=C TZ=UTC PYTHONDONTWRITEBYTECODE=1 DEBIAN_FRONTEND=noninteractive
export LC_ALL TZ PYTHONDONTWRITEBYTECODE DEBIAN_FRONTEND
umask 022

SOURCES='bearssl cjson libyaml pcre2'
JOBS=${JOBS:-$(nproc)}
HOST=$(dpkg --print-architecture)

say() { printf 'build: %s\n' "$*"; }
die() { printf 'build: %s\n' "$*" >&2; exit 1; }

# fresh STAMP TEXT: whether the step of this stamp was last done for TEXT.
fresh() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }
done_with() { printf '%s\n' "$2" > "$1"; }

# quiet LOG COMMAND...: its output goes to build/log, and is shown if it fails.
quiet() {
	log=build/log/$1
	shift
	"$@" > "$log" 2>&1 && return
	tail -n 40 "$log" >&2
	die "failed: $1 (all of it in $log)"
}

### What must be installed ####################################################

# need WHAT=PACKAGE...: installs the packages whose WHAT, a command or a file,
# is missing.  The lists are fetched only when the install fails without.
need() {
	missing=
	for n; do
		case $n in
		/*) [ -e "${n%%=*}" ] ;;
		*) command -v "${n%%=*}" > /dev/null ;;
		esac || missing="$missing ${n#*=}"
	done
	[ "$missing" ] || return 0
	[ "$(id -u)" = 0 ] || die "missing packages, to be installed by root:$missing"
	say "installing:$missing"
	install_packages $missing > build/log/install 2>&1 ||
	    { apt-get -q update && install_packages $missing; } \
	    >> build/log/install 2>&1 ||
	    { tail -n 20 build/log/install >&2; die "cannot install:$missing"; }
}

install_packages() {
	apt-get -q -y -o DPkg::Lock::Timeout=600 install --no-install-recommends "$@"
}

need_compiler() {
	need gcc=gcc ar=binutils dpkg-source=dpkg-dev patch=patch xz=xz-utils \
	    flock=util-linux
}

need_glibc() { need /usr/include/stdio.h=libc6-dev; }

### The libraries' sources ####################################################

# The Debian mirrors that this system uses, as lines "URI SUITE".  A system
# that never fetched its lists knows no origins yet: there the URI decides.
mirrors() {
	# shellcheck disable=SC2016 # apt's own variables
	apt-get indextargets 'Created-By: Packages' \
	    --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' |
	awk '$3 == "main" && ($4 == "Debian" ||
	    $4 == "" && $1 ~ /\/debian(-security)?\/?$/) { print $1, $2 }' |
	sort -u
}

# apt_sources LINES: the mirrors as a sources file of a private apt.
apt_sources() {
	printf '%s\n' "$1" | while read -r uri suite; do
		cat <<-E
		Types: deb deb-src
		URIs: $uri
		Suites: $suite
		Components: main
		Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

		E
	done > build/apt/s.sources
}

# A private apt: its state is under build/, the system's is not touched.
private_apt() { APT_CONFIG=build/apt/apt.conf "$@"; }

apt_setup() {
	mkdir -p build/apt/lists/partial build/apt/cache/archives/partial \
	    build/apt/empty
	cat > build/apt/apt.conf <<-E
	APT::Architecture "$HOST";
	APT::Architectures { "amd64"; "arm64"; };
	APT::Sandbox::User "root";
	APT::Update::Post-Invoke-Success "";
	Acquire::Languages "none";
	Acquire::Retries "3";
	Dir::Etc::sourcelist "$PWD/build/apt/s.sources";
	Dir::Etc::sourceparts "$PWD/build/apt/empty";
	Dir::Etc::preferencesparts "$PWD/build/apt/empty";
	Dir::State::lists "$PWD/build/apt/lists";
	Dir::State::status "/dev/null";
	Dir::Cache "$PWD/build/apt/cache";
	E
}

# Fetches the package lists.  A bootstrapped system names no security suite;
# it is added, and left out again where it cannot be reached.
apt_lists() {
	plain=$(mirrors)
	# shellcheck source=/dev/null
	. /etc/os-release
	[ "$plain" ] ||
	    plain="http://deb.debian.org/debian $VERSION_CODENAME"
	secure=$plain
	case $plain in
	*-security*) ;;
	*)
		uri=${plain%% *}
		secure="$plain
${uri%/}-security $VERSION_CODENAME-security"
		;;
	esac
	apt_sources "$secure"
	private_apt apt-get -q update && return
	apt_sources "$plain"
	private_apt apt-get -q update
}

# get_source NAME: the newest version whose files are all served; a mirror may
# list a security update before it has its source files.
get_source() {
	for v in $(private_apt apt-cache showsrc "$1" |
	    sed -n 's/^Version: //p' | sort -ruV); do
		in_dl apt-get -q source --download-only "$1=$v" || continue
		# The signature of the archive covers the file; the
		# maintainer's cannot be checked, his key is not here.
		dpkg-source --no-check -x "build/dl/${1}_${v#*:}.dsc" \
		    "build/src/$1"
		return
	done
	return 1
}

in_dl() { (cd build/dl && APT_CONFIG=../apt/apt.conf "$@"); }

get_deb() {
	in_dl apt-get -q download "$1" || return
	for deb in build/dl/"${1%:*}"_*_"$2".deb; do
		dpkg-deb -x "$deb" "build/root"
	done
}

# All sources and packages, from nothing: files of an older version must not
# stay (a union of two root stores would hold distrusted roots).
fetch() {
	fresh build/fetch.stamp "$SOURCES $HOST" && return
	say 'fetching sources'
	rm -rf build/apt build/dl build/root build/src build/inc
	mkdir -p build/dl build/root build/src build/inc
	apt_setup
	quiet fetch fetch_all
	unpack_headers
	(cd build/dl && sha256sum ./*.*) | sed 's|\./||' |
	    sort -k 2 > build/MANIFEST
	sed 's/^/build:   /' build/MANIFEST
	cmp -s build/MANIFEST tests/lint/MANIFEST.expected ||
	    say 'note: not the versions of tests/lint/MANIFEST.expected'
	done_with build/fetch.stamp "$SOURCES $HOST"
}

fetch_all() {
	apt_lists || return
	for s in $SOURCES; do
		get_source "$s" || return
	done
	get_deb ca-certificates all &&
	    get_deb "musl-dev:$HOST" "$HOST"
}

# One folder of public headers, and what PCRE2's configure would have made.
unpack_headers() {
	p=build/src/pcre2/src
	cp "$p/pcre2.h.generic" "$p/pcre2.h"
	cp "$p/config.h.generic" "$p/config.h"
	cp "$p/pcre2_chartables.c.dist" "$p/pcre2_chartables.c"
	cp build/src/bearssl/inc/*.h build/src/cjson/cJSON.h \
	    build/src/libyaml/include/yaml.h "$p/pcre2.h" build/inc
}

### Ways to build #############################################################

triplet() {
	case $1 in
	amd64) echo x86_64-linux ;;
	arm64) echo aarch64-linux ;;
	*) die "no recipe for the architecture '$1'" ;;
	esac
}

# flavour NAME: tools and flags of one way to build, in variables:
#   OUT     where its files are
#   BASE    flags for everything, OWN for subagent.c, DEPS for the libraries
flavour() {
	FLAVOUR=$1 OUT=build/$1 CC=gcc AR=ar
	DEPS='-w -DNDEBUG'
	OWN='-Wall -Wextra'
	case $1 in
	release) musl "$HOST" ;;
	arm64 | amd64) musl "$1" ;;
	debug) BASE='-O0 -g' ;;
	cov) BASE='-O0 -g' OWN="$OWN --coverage" ;;
	asan) BASE="-O1 -g $SANITIZE" ;;
	fuzz) CC=clang BASE="-O1 -g -fsanitize=fuzzer-no-link $SANITIZE" ;;
	*) die "no flavour '$1'" ;;
	esac
	BASE="-std=gnu11 $BASE"
	case $1 in
	debug | cov | asan | fuzz)
		OWN="$OWN -DSA_TESTING"
		# BearSSL reads unaligned words on purpose.
		DEPS="$DEPS -fno-sanitize=alignment"
		;;
	esac
	mkdir -p "$OUT/lib"
}

SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer'

# The flags of a static binary on musl.  musl-gcc is not used: its specs turn
# -static-pie into a dynamic program that wants an interpreter.
musl() {
	t=$(triplet "$1")
	if [ "$1" != "$HOST" ]; then
		CC=$t-gnu-gcc AR=$t-gnu-ar
		need "$CC=gcc-$(echo "$t" | tr _ -)-gnu"
	fi
	MUSL=build/root/usr/lib/$t-musl
	[ -d "$MUSL" ] || quiet fetch get_deb "musl-dev:$1" "$1"
	BASE="-nostdinc -isystem build/root/usr/include/$t-musl
	    -isystem $($CC -print-file-name=include)
	    -Os -g0 -fPIE -ffunction-sections -fdata-sections
	    -fstack-protector-strong -fstack-clash-protection
	    -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-ident"
}

# link_musl OUTPUT OBJECT...
link_musl() {
	out=$1
	shift
	$CC -nostdlib -static-pie -s \
	    -Wl,-z,relro,-z,now,-z,noexecstack,-z,separate-code \
	    -Wl,--gc-sections,--build-id=none -o "$out" \
	    "$MUSL/rcrt1.o" "$MUSL/crti.o" \
	    "$($CC -print-file-name=crtbeginS.o)" "$@" "$OUT"/lib/*.a \
	    -L"$MUSL" -Wl,--start-group -lc -lgcc -lgcc_eh -Wl,--end-group \
	    "$($CC -print-file-name=crtendS.o)" "$MUSL/crtn.o"
}

# What link_musl promises; a linker that fell back silently is found here.
check_static() {
	h=$(readelf -hldW "$1")
	case $h in *INTERP*) die "$1 wants an interpreter" ;; esac
	case $h in *'(NEEDED)'*) die "$1 needs a library" ;; esac
	case $h in *'DYN ('*) ;; *) die "$1 is not position-independent" ;; esac
	case $h in *GNU_RELRO*) ;; *) die "$1 has no RELRO" ;; esac
	case $h in *BIND_NOW*) ;; *) die "$1 binds lazily" ;; esac
	printf '%s\n' "$h" | grep -q 'GNU_STACK.* RW ' ||
	    die "$1 has an executable stack"
}

### Libraries #################################################################

# lib NAME FLAGS...: the C files on stdin, compiled into one archive.  The
# sources keep their warnings to themselves.
lib() {
	o=$OUT/obj-$1 a=$OUT/lib/lib$1.a
	shift
	rm -rf "$o" "$a"
	mkdir -p "$o"
	# shellcheck disable=SC2016 # expanded by the inner shell
	O=$o C="$CC $BASE $DEPS $*" xargs -P "$JOBS" -n 8 sh -c '
		for f; do
			b=${f##*/}
			$C -c -o "$O/${b%.c}.o" "$f" || exit 255
		done' sh
	$AR rcsD "$a" "$o"/*.o
	rm -rf "$o"
}

# Entropy comes from getrandom(2) in subagent.c, so BearSSL needs no source.
lib_bearssl() {
	find build/src/bearssl/src -name '*.c' | sort |
	    lib bearssl -Ibuild/src/bearssl/inc -Ibuild/src/bearssl/src \
	    -DBR_USE_URANDOM=0 -DBR_RDRAND=0
}

lib_cjson() { echo build/src/cjson/cJSON.c | lib cjson; }

# The reading half.
lib_yaml() {
	for f in api loader parser reader scanner; do
		echo "build/src/libyaml/src/$f.c"
	done | lib yaml -Ibuild/src/libyaml/include -DYAML_VERSION_MAJOR=0 \
	    -DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=5 \
	    -DYAML_VERSION_STRING='"0.2.5"'
}

lib_pcre2() {
	for f in auto_possess chartables compile config context convert \
	    dfa_match error extuni find_bracket jit_compile maketables match \
	    match_data newline ord2utf pattern_info script_run serialize \
	    string_utils study substitute substring tables ucd valid_utf xclass
	do
		echo "build/src/pcre2/src/pcre2_$f.c"
	done | lib pcre2 -Ibuild/src/pcre2/src -DHAVE_CONFIG_H -DPCRE2_STATIC \
	    -DPCRE2_CODE_UNIT_WIDTH=8 -DSUPPORT_PCRE2_8 -DSUPPORT_UNICODE \
	    -DSUPPORT_JIT
}

libs_inputs() { cat build/MANIFEST; $CC --version; echo "$BASE $DEPS"; }

libs() {
	inputs=$(libs_inputs | sha256sum)
	fresh "$OUT/libs.stamp" "$inputs" && return
	for l in bearssl cjson yaml pcre2; do
		say "compiling $l ($FLAVOUR)"
		"lib_$l"
	done
	done_with "$OUT/libs.stamp" "$inputs"
}

### Generated headers #########################################################

# The bytes on stdin as a C string.  Three octal digits each: nothing that
# follows can be taken for a part of one, and no trigraph can arise.
c_string() { od -An -v -to1 | sed 's/ /\\/g; s/.*/"&"/'; }

gen() {
	mkdir -p build/gen
	gen_file embed.h "$(cksum agents/builtin/*.md 2> /dev/null)"
	gen_file licenses.h "$(cat build/MANIFEST LICENSE)"
	gen_file roots.h "$(roots_inputs)"
}

# gen_file NAME INPUTS: made whole or not at all.
gen_file() {
	fresh "build/gen/$1.stamp" "$2" && return
	say "making $1"
	"gen_${1%.h}" > "build/gen/$1.new"
	mv "build/gen/$1.new" "build/gen/$1"
	done_with "build/gen/$1.stamp" "$2"
}

gen_embed() {
	echo 'static const struct embed embed_agents[] = {'
	for f in agents/builtin/*.md; do
		[ -e "$f" ] || continue
		printf '{ "%s",\n' "${f##*/}"
		c_string < "$f"
		printf ', %s },\n' "$(($(wc -c < "$f")))"
	done
	echo '{ 0, 0, 0 } };'
}

gen_licenses() {
	echo 'static const char embed_licenses[] ='
	licenses | c_string
	echo ';'
}

licenses() {
	d=build/root/usr/share/doc
	set -- subagent LICENSE bearssl build/src/bearssl/LICENSE.txt \
	    cjson build/src/cjson/LICENSE libyaml build/src/libyaml/License \
	    pcre2 build/src/pcre2/LICENCE musl $d/musl-dev/copyright \
	    'Mozilla root certificates' $d/ca-certificates/copyright
	while [ $# -gt 0 ]; do
		printf '===== %s\n\n' "$1"
		cat "$2"
		echo
		shift 2
	done
}

# The roots change with Debian's package, and with the code that prints them.
roots_inputs() {
	grep ca-certificates build/MANIFEST
	awk '/^\/\*=== \[/ { tls = /\[tls\]/ } tls' subagent.c | cksum
}

# subagent.c reads the certificates for itself: compiled without roots, for
# this machine, it prints the table that it is compiled with next.
gen_roots() {
	mkdir -p build/bootstrap
	$CC $BASE $OWN -w -DSA_BOOTSTRAP -I. -isystem build/inc \
	    -c -o build/bootstrap/subagent.o subagent.c
	link_musl build/bootstrap/subagent build/bootstrap/subagent.o
	build/bootstrap/subagent --gen-roots \
	    build/root/usr/share/ca-certificates/mozilla/*.crt
}

### The program ###############################################################

INCLUDES='-I. -Ibuild/gen -isystem build/inc'

# build FLAVOUR: leaves build/FLAVOUR/subagent, and its objects.
build() {
	need_compiler
	exec 9> build/lock
	flock 9
	fetch
	flavour release
	libs
	gen
	flavour "$1"
	libs
	program
	exec 9>&-
}

program_inputs() {
	cat "$OUT/libs.stamp"
	echo "$OWN"
	sha256sum subagent.c subagent.h build/gen/*.h \
	    tests/lint/parse.awk tests/unit/internals.awk
}

program() {
	inputs=$(program_inputs)
	fresh "$OUT/program.stamp" "$inputs" && return
	say "compiling subagent.c ($FLAVOUR)"
	case $FLAVOUR in
	release | arm64 | amd64) program_musl ;;
	*) program_test ;;
	esac
	done_with "$OUT/program.stamp" "$inputs"
}

program_musl() {
	$CC $BASE $OWN $INCLUDES -c -o "$OUT/subagent.o" subagent.c
	link_musl "$OUT/subagent" "$OUT/subagent.o"
	check_static "$OUT/subagent"
}

# A flavour for tests is one object, in which functions are not static and
# main() is weak: unit tests link it, and so does the program.
program_test() {
	internals -v copy=1 > "$OUT/subagent-test.c"
	internals > "$OUT/internals.h"
	$CC $BASE $OWN $INCLUDES -c -o "$OUT/subagent-test.o" \
	    "$OUT/subagent-test.c"
	$CC $BASE $OWN -o "$OUT/subagent" \
	    "$OUT/subagent-test.o" "$OUT"/lib/*.a -lm
}

internals() {
	awk -f tests/lint/parse.awk -f tests/unit/internals.awk "$@" subagent.c
}

# A copy under way would be refused while the old program runs; a new name
# is not.
release() {
	build release
	cmp -s build/release/subagent subagent && return
	cp build/release/subagent build/subagent.new
	mv build/subagent.new subagent
}

### Tests #####################################################################

PASSED=0 FAILED=0 PATTERN=

# count NAME PASSED FAILED
count() {
	PASSED=$((PASSED + $2)) FAILED=$((FAILED + $3))
	say "$1: $2 passed, $3 failed"
}

verdict() {
	echo "$PASSED passed, $FAILED failed"
	[ "$FAILED" = 0 ]
}

# Whether a name has the pattern that was given, if any.
wanted() { case $1 in *"$PATTERN"*) ;; *) return 1 ;; esac; }

# log_of NAME COMMAND...: runs it with its output in build/log/NAME, which is
# shown if it fails.
log_of() {
	log=build/log/$1
	shift
	"$@" > "$log" 2>&1 && return
	status=$?
	tail -n 60 "$log"
	return $status
}

need_tests() {
	need /usr/include/cmocka.h=libcmocka-dev openssl=openssl git=git \
	    /usr/bin/python3=python3 \
	    /usr/lib/python3/dist-packages/pytest=python3-pytest
}

# test_program NAME SOURCE...: links C files of tests/ with the test object.
test_program() {
	t=$1
	shift
	$CC $BASE $OWN -D_GNU_SOURCE -I"$OUT" -Itests/unit $INCLUDES \
	    -o "$OUT/$t" "$@" "$OUT/subagent-test.o" "$OUT"/lib/*.a -lm
}

unit_tests() {
	for f in tests/unit/test_*.c; do
		n=${f##*/} n=${n%.c}
		wanted "$n" || continue
		log_of "$n" unit_test "$n" "$f" || :
		count "$n" $(tap_count "build/log/$n")
	done
}

unit_test() {
	test_program "$1" "$2" -lcmocka &&
	    CMOCKA_MESSAGE_OUTPUT=TAP timeout 300 "$OUT/$1" && echo '# end'
}

# Passed and failed of a TAP log.  Each test counts once, whatever a forked
# copy of the program wrote; a program that broke off has failed once more.
tap_count() {
	awk '/^ok [0-9]/ { good[$2] } /^not ok [0-9]/ { bad[$3] }
	/^# end/ { end = 1 }
	END {
		for (t in bad) { delete good[t]; f++ }
		for (t in good) p++
		print p + 0, f + (!end && !f || !p && !f)
	}' "$1"
}

fuzz_targets() { find tests/fuzz -name 'fuzz_*.c' | sort; }

# The seeds of each fuzz target, as plain tests.
seed_tests() {
	for f in $(fuzz_targets); do
		n=${f##*/} n=${n%.c}
		wanted "$n" || continue
		if log_of "$n" seed_test "$n" "$f"; then
			count "$n" 1 0
		else
			count "$n" 0 1
		fi
	done
}

seed_test() {
	test_program "$1" "$2" tests/fuzz/main.c &&
	    timeout 300 "$OUT/$1" tests/fuzz/seeds/"${1#fuzz_}"/*
}

# pytest NAME FOLDER...: counts from its XML report.
pytest() {
	n=$1
	shift
	rm -f "build/log/$n.xml"
	SUBAGENT_BIN=$PWD/${BIN:-subagent} SUBAGENT_ASAN_BIN=$PWD/build/asan/subagent \
	    log_of "$n" /usr/bin/python3 -m pytest -q -p no:cacheprovider \
	    -rfE --junitxml="build/log/$n.xml" ${PATTERN:+-k "$PATTERN"} "$@" ||
	    :
	count "$n" $(junit_count "build/log/$n.xml")
}

junit_count() {
	[ -f "$1" ] || { echo 0 1; return; }
	/usr/bin/python3 - "$1" <<-'E'
	import sys, xml.etree.ElementTree as tree
	suite = tree.parse(sys.argv[1]).getroot().find("testsuite")
	n = {k: int(suite.get(k, 0)) for k in
	     ("tests", "failures", "errors", "skipped")}
	bad = n["failures"] + n["errors"]
	print(n["tests"] - bad - n["skipped"], bad)
	E
}

run_tests() {
	PATTERN=${1:-}
	need_tests
	need_glibc
	release
	build debug	# where faults are injected
	build asan	# what follows is linked with
	if [ ! "$PATTERN" ]; then
		if log_of layers layers; then count layers 1 0
		else count layers 0 1; fi
	fi
	unit_tests
	seed_tests
	for d in fake e2e conform; do
		pytest "$d" "tests/$d"
	done
	verdict
}

# Programs that nobody here wrote; their versions are pinned by a lock file.
interop() {
	PATTERN=${1:-}
	need_tests
	need node=nodejs npm=npm
	release
	mkdir -p build/interop
	cp tests/interop/package.json tests/interop/package-lock.json \
	    build/interop
	lock=$(cat build/interop/package-lock.json)
	if ! fresh build/interop/stamp "$lock"; then
		say 'installing the packages of tests/interop'
		quiet npm npm --prefix build/interop ci --no-audit --no-fund
		done_with build/interop/stamp "$lock"
	fi
	SUBAGENT_NODE_MODULES=$PWD/build/interop/node_modules
	export SUBAGENT_NODE_MODULES
	pytest interop tests/interop
	verdict
}

# Runs the tests on a program that counts, and prints how many of 100 lines
# with code ran, by section.  What a child that is killed ran does not count.
coverage() {
	PATTERN=${1:-}
	need_tests
	need_glibc
	release
	build cov
	rm -f build/cov/*.gcda
	unit_tests
	BIN=build/cov/subagent pytest cov tests/e2e
	gcov -t -o build/cov subagent-test.o | awk -F: '
	/:Source:/ { ours = $4 == "subagent.c" }
	!ours { next }
	match($0, /\/\*=== \[[a-z]+\]/) {
		section = substr($0, RSTART + 6, RLENGTH - 6)
		order[++n] = section
	}
	$1 ~ /[0-9#=]/ { all[section]++ }
	$1 ~ /[0-9]/ { ran[section]++ }
	END {
		for (i = 1; i <= n; i++)
			printf "%-9s %3d of 100\n", order[i],
			    100 * ran[order[i]] / (all[order[i]] + !all[order[i]])
	}'
}

# Each target for so many seconds, from its seeds; what it finds is left in
# build/fuzz/.
fuzz() {
	need clang=clang
	v=$(clang -dumpversion)
	need "/usr/lib/llvm-${v%%.*}/lib/clang/$v/lib/linux=libclang-rt-${v%%.*}-dev"
	need_glibc
	build fuzz
	for f in $(fuzz_targets); do
		n=${f##*/} n=${n%.c}
		wanted "$n" || continue
		if log_of "$n" fuzz_target "$n" "$f" "$1"; then
			count "$n" 1 0
		else
			count "$n" 0 1
		fi
		grep 'stat::number_of_executed_units' "build/log/$n" || :
	done
	verdict
}

fuzz_target() {
	corpus=build/fuzz/corpus/${1#fuzz_}
	mkdir -p "$corpus"
	test_program "$1" "$2" -fsanitize=fuzzer &&
	    "$OUT/$1" -max_total_time="$3" -print_final_stats=1 -timeout=10 \
	    -artifact_prefix="$OUT/$1-" "$corpus" "tests/fuzz/seeds/${1#fuzz_}"
}

### Lint ######################################################################

layers() {
	awk -f tests/lint/parse.awk -f tests/lint/layers.awk "$@" \
	    subagent.c subagent.c
}

c_files() { find subagent.c subagent.h tests -name '*.[ch]' | sort; }

style() {
	awk -f tests/lint/parse.awk -f tests/lint/style.awk \
	    tests/lint/long-functions $(c_files)
}

# Optimised, since some warnings come from the optimiser alone; against glibc
# with fortified headers, which know which results must not be ignored.
warnings() {
	gcc -std=gnu11 -O2 -D_FORTIFY_SOURCE=2 -Wall -Wextra -Wshadow \
	    -Wpointer-arith -Wcast-qual -Wstrict-prototypes -Wwrite-strings \
	    -Wvla -Werror $INCLUDES -c -o build/lint.o subagent.c
}

check_with_cppcheck() {
	cppcheck --quiet --std=c11 --enable=warning,performance,portability \
	    --library=posix,gnu --max-configs=1 --error-exitcode=1 \
	    --suppressions-list=tests/lint/cppcheck.txt -Ibuild/inc subagent.c
}

check_scripts() { shellcheck -s sh build.sh && shellcheck .ci/run; }

# The name of the folder we are in must be in no file and not in the program.
no_paths() {
	! grep -rnF "$PWD/" --exclude-dir=.git --exclude-dir=build . &&
	    ! grep -cF "$PWD" subagent
}

lint() {
	need cppcheck=cppcheck shellcheck=shellcheck
	need_glibc
	release
	bad=
	for l in layers style warnings check_with_cppcheck check_scripts no_paths
	do
		log_of "lint-$l" "$l" || bad="$bad $l"
	done
	cat build/log/lint-style
	[ ! "$bad" ] || die "lint:$bad"
	echo 'lint: ok'
}

### Showing and measuring #####################################################

bench() {
	need_tests
	need rg=ripgrep
	release
	flavour release
	mkdir -p build/bench
	for p in floor empty spawn; do
		$CC $BASE $OWN -c -o "build/bench/$p.o" "tests/bench/$p.c"
		link_musl "build/bench/$p" "build/bench/$p.o"
	done
	/usr/bin/python3 tests/bench/bench.py "$@"
}

PROMPT='How many sections has subagent.c, and which one is the longest?'

# The main job: with a key a real run, else a recorded model is played back.
demo() {
	release
	set -- -p "$PROMPT" --allowedTools 'Read,Grep,Glob,Bash(grep *)'
	if [ "${ANTHROPIC_API_KEY:-}${ANTHROPIC_AUTH_TOKEN:-}" ]; then
		say 'a key is set: asking the real model'
	else
		say 'no ANTHROPIC_API_KEY: the model is a recording played back;'
		say 'the tools it calls run for real on this repository'
		set -- "$@" --replay tests/demo/demo.jsonl
	fi
	printf '%s' '$ ./subagent'
	printf " '%s'" "$@"
	echo
	./subagent "$@"
}

usage() {
	cat <<-'E'
	usage: ./build.sh [COMMAND]
	  (none)          ./subagent: static, stripped
	  demo            builds, then runs the main job
	  test [PATTERN]  all tests, or those whose name has PATTERN
	  interop [PATTERN]  tests against programs of others; needs Node
	  lint            layers, style, warnings, cppcheck, shellcheck
	  bench           the numbers to hold, side by side
	  fuzz [SECONDS [PATTERN]]  each target for so long (60)
	  toc             sections with their lines and budgets
	  cov [PATTERN]   the tests' coverage, by section
	  debug asan      build/NAME/subagent for looking at, on glibc
	  amd64 arm64     build/NAME/subagent for another machine
	  clean           removes all that was made
	Root installs what is missing; others are told its name.
	E
}

mkdir -p build/log
command=${1:-release}
[ $# = 0 ] || shift
case $command in
release) release ;;
cov) coverage "$@" ;;
debug | asan)
	need_glibc
	build "$command"
	;;
amd64 | arm64) build "$command" ;;
test) run_tests "$@" ;;
interop | lint | bench | demo) "$command" "$@" ;;
fuzz)
	PATTERN=${2:-}
	fuzz "${1:-60}"
	;;
toc) layers -v toc=1 ;;
clean) rm -rf build subagent ;;
help | -h | --help) usage ;;
*)
	usage >&2
	exit 2
	;;
esac
