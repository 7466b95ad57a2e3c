# The tasks of developers. `make help` lists them.

GO       ?= go
LINT     := bin/golangci-lint
VULN     := bin/govulncheck
PYTHON   ?= python3

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

PGO ?= cmd/tabletop/serve.pgo

# The profile is not named default.pgo, since go test, go vet and go run would
# use it too, and each would build all dependencies a second time.
# Without symbols, folders of this machine, and golang.org/x/net/trace, which would make the linker
# keep all exported methods. The embedded files are compressed, and functions begin at a multiple of
# 16 bytes instead of 32.
RELEASE := -trimpath -tags=grpcnotrace,packed '-ldflags=-s -w -funcalign=16' -pgo=$(PGO)

# Copies of small functions in larger ones gain nothing in packages that neither requests nor loads spend
# time in.
TABLETOP := github.com/tabletop-emu/tabletop
COLD := github.com/aws/... github.com/goccy/... github.com/alecthomas/... golang.org/x/oauth2/... github.com/cockroachdb/errors/... \
	github.com/cockroachdb/redact/... github.com/gogo/... github.com/getsentry/... github.com/prometheus/... cloud.google.com/... \
	google.golang.org/genproto/... google.golang.org/protobuf/encoding/... google.golang.org/protobuf/reflect/protodesc google.golang.org/protobuf/types/... \
	google.golang.org/grpc/balancer/... google.golang.org/grpc/reflection/... google.golang.org/grpc/internal/resolver/... google.golang.org/grpc/internal/balancer/... \
	google.golang.org/grpc/internal/channelz github.com/googleapis/... go.opentelemetry.io/... golang.org/x/text/... golang.org/x/crypto/... \
	archive/... debug/... log/... net/url net/textproto os/exec vendor/... crypto/... encoding/asn1 encoding/xml go/... html/... mime/... net/http/... text/... \
	$(TABLETOP)/cmd/... $(TABLETOP)/control/... $(TABLETOP)/docs $(TABLETOP)/fixtures $(TABLETOP)/internal/ddbmodel $(TABLETOP)/internal/rest/... \
	$(TABLETOP)/emu/internal/admin $(TABLETOP)/emu/internal/bundle $(TABLETOP)/emu/internal/listfilter $(TABLETOP)/emu/internal/materialized \
	$(TABLETOP)/emu/internal/sql/analysis $(TABLETOP)/emu/internal/sql/plan $(TABLETOP)/emu/internal/sql/syntax \
	$(TABLETOP)/facade/internal/backups $(TABLETOP)/facade/internal/bucketjobs $(TABLETOP)/facade/internal/importfile \
	$(TABLETOP)/facade/internal/insights $(TABLETOP)/facade/internal/jobs $(TABLETOP)/facade/internal/policy $(TABLETOP)/facade/internal/tablespec \
	$(TABLETOP)/migrate/lint $(TABLETOP)/migrate/report $(TABLETOP)/migrate/internal/differential $(TABLETOP)/migrate/internal/endpoints
RELEASE += $(COLD:%=-gcflags=%=-l)
PACK    := run ./internal/packed/pack docs control/console fixtures

PROGRAM ?= bin/tabletop

.PHONY: build
build: ## build bin/tabletop for release: static, with profile-guided optimization (PGO=off for a quicker build)
	GOOS= GOARCH= $(GO) $(PACK)
	CGO_ENABLED=0 $(GO) build $(RELEASE) -o $(PROGRAM) ./cmd/tabletop

PARTS ?= archives,image,compat-image,npm,pypi,maven
OUT   ?= dist

.PHONY: dist
dist: $(if $(findstring maven,$(PARTS)),bin/java-classpath) ## build the files of a release into dist, from the last commit (docs/release.md); PLATFORMS=linux/amd64 and PARTS=archives,image,compat-image,npm,pypi,maven select some
	nice $(GO) -C tools/dist run . -root ../.. -out "$(abspath $(OUT))" -parts "$(PARTS)" -prepare "$(PACK)" $(if $(PLATFORMS),-platforms "$(PLATFORMS)") \
		$(if $(findstring maven,$(PARTS)),-classpath "$$(cat bin/java-classpath)") -- $(RELEASE)

.PHONY: publish
publish: ## publish the files in dist (docs/release.md): IMAGE=REGISTRY/OWNER/tabletop MAVEN_UPLOAD=command; RUN=echo prints the commands
	RUN="$(RUN)" IMAGE="$(IMAGE)" MAVEN_UPLOAD="$(MAVEN_UPLOAD)" STEPS="$(STEPS)" tools/dist/publish.sh "$(OUT)"

.PHONY: install
install: build ## build the program, and copy it to PREFIX/bin, by default below /usr/local
	install -D -m 755 $(PROGRAM) $(or $(PREFIX),/usr/local)/bin/tabletop

.PHONY: pgo
pgo: ## record the profile of both endpoints under load (about three minutes; nothing else should run)
	$(GO) run -C conformance ./benchcompare -reps 2 -parts bigtable,dynamodb -profile ../cmd/tabletop/serve.pgo

.PHONY: report-check
report-check: ## test the HTML report and the console in a real browser (needs Chromium; AXE_CORE=path/to/axe.min.js adds the rules of axe-core)
	REPORT_CHECK=1 $(GO) -C conformance test ./console ./html -count=1

SHOTS ?= $(or $(TMPDIR),/tmp)/tabletop-pictures

.PHONY: pictures
pictures: ## make the pictures of README.md and docs/console.md with the console's tests (needs Chromium)
	mkdir -p $(SHOTS)
	REPORT_CHECK=1 REPORT_SHOTS=$(SHOTS) $(GO) -C conformance test ./console -count=1 -run 'TestPages_Fixtures/s2-video|TestKeys|TestRequests_Live'
	cp $(SHOTS)/s2-video-comment-light.png docs/console-rows.png
	cp $(SHOTS)/keys-hot-dark.png docs/console-keys.png
	cp $(SHOTS)/requests-live-light.png docs/console-requests.png

EDITOR_PACKAGES = npm --prefix tools/editor ci --ignore-scripts --no-audit --no-fund --loglevel=error

.PHONY: editor
editor: ## build the console's bundle of CodeMirror from tools/editor (needs Node.js)
	$(EDITOR_PACKAGES)
	node tools/editor/build.mjs

.PHONY: editor-check
editor-check: ## build the bundle of CodeMirror again, and compare it byte for byte (needs Node.js)
	$(EDITOR_PACKAGES)
	mkdir -p bin
	node tools/editor/build.mjs bin/codemirror.js
	cmp bin/codemirror.js control/console/static/codemirror.js

.PHONY: demo
demo: ## run the shipped fixtures end to end
	$(GO) run ./cmd/tabletop demo

# The long tier: see internal/test/long.
LONG := LONG_TESTS=1

.PHONY: test
test: ## run the quick tier of the tests
	$(GO) test ./...

.PHONY: test-long
test-long: ## run both tiers: memory bounds at full size, all failures, simulations (internal/test/long/tests.tsv)
	$(LONG) $(GO) test -timeout 30m ./...
	$(LONG) $(MAKE) --no-print-directory test-modules

.PHONY: test-memory
test-memory: ## run the tests that count memory, without C, which puts more of it on Go's heap
	CGO_ENABLED=0 $(GO) test -vet=off -run 'Memory|Alloc|Cost|Bomb|SlowReader|TestDay|Isolation' ./emu/... ./engine ./facade/... ./migrate/... ./control ./testkit/... ./internal/heat

.PHONY: costs
costs: ## measure the baselines of allocations and calls again (testdata/costs.tsv); REASON='…' is why some grew
	@test -n "$(REASON)" || { echo "make costs needs REASON='…', the reason of costs that grew"; exit 1; }
	$(GO) test ./facade ./emu -count=1 -run '^(TestRequest_Costs|TestAllocations)$$' -costs '$(REASON)'

RUNS ?= 20

.PHONY: test-stress
test-stress: ## run the quick tier RUNS times beside two busy loops, shuffled, on one core and on two; lists the failures
	$(GO) run ./internal/test/stress -runs $(RUNS)

# The packages with concurrent code.
RACED := ./engine/... ./emu/... ./facade ./facade/internal/store/... ./facade/internal/kinesis/... \
	./facade/internal/throttle ./facade/internal/insights ./control/... ./testkit/... \
	./internal/btclient ./internal/fastserver ./internal/inproc ./internal/heat ./internal/filelock \
	./internal/preflight ./internal/extsort ./internal/pull ./migrate/stream ./migrate/internal/kinesis ./migrate/internal/settled

# Inputs that expand in the server: sequential, and slow with the detector.
RACE_SKIP ?= ^TestBombs_

# A test that hangs ends the run after this time, with a dump of its goroutines.
RACE_TIMEOUT ?= 12m

# Separate modules, which keep their dependencies out of the main one. A test of
# internal/test/lint fails if one is missing here.
MODULES := conformance emu/internal/filter/re2 examples/go tools/dist

# -count=1, since the go command does not notice changes of the program that these tests start.
.PHONY: test-modules
test-modules: ## run the tests of the nested modules
	for m in $(MODULES); do $(GO) -C $$m test -count=1 -timeout 30m ./... || exit 1; done

.PHONY: race
race: ## run the quick tier of concurrent packages under the race detector (needs a C compiler; RACED=./... for all packages)
	CGO_ENABLED=1 $(GO) test -vet=off -race -timeout $(RACE_TIMEOUT) -skip '$(RACE_SKIP)' $(RACED)
	CGO_ENABLED=1 $(GO) test -vet=off -race -timeout $(RACE_TIMEOUT) -run '^TestApply_' ./migrate
	CGO_ENABLED=1 $(GO) -C conformance test -vet=off -race -timeout 20m ./linear ./soak

.PHONY: nightly
nightly: ## run long checks outside .ci/run: race of both tiers of all packages, crashes, stopped endpoints, soak, followed tables, more inputs and loads, all consumers and tools, other Bigtables, the console's bundle (about four hours)
	$(LONG) $(MAKE) race RACED=./... RACE_TIMEOUT=60m RACE_SKIP='^$$'
	$(MAKE) meta crash CRASHES=5 kill-endpoints soak fuzz FUZZTIME=100000x
	$(MAKE) live D=1m
	$(GO) test ./migrate -count=1 -timeout=60m -run '^TestLoad_Sequences$$' -sequences=10000
	$(MAKE) facade-remote conformance-tools conformance-suites conformance-streams conformance-java-streams editor-check

.PHONY: meta
meta: ## run 100,000 random operations on the engine and on its model
	$(GO) test ./emu -run "^TestMetamorphic" -count=1 -timeout=60m -meta.ops=100000

.PHONY: bench-compare
bench-compare: ## measure the targets of docs/performance.md beside peers (about 45 minutes; nothing else should run; needs the load harness, in ../shared/bench or HARNESS=dir)
	$(GO) run -C conformance ./benchcompare $(if $(HARNESS),-harness $(abspath $(HARNESS))) -out ../docs/performance.md

.PHONY: distance
distance: ## measure the DynamoDB endpoint, loads and verifications over links of 1, 5 and 20 ms, into docs/performance.md (about 10 minutes; nothing else should run)
	$(GO) run -C conformance ./benchcompare distance -out ../docs/performance.md

FUZZTIME ?= 30s
FUZZ     ?= .

# Like go test -fuzz, but it counts only the coverage of the project's own code: coverage of
# Pebble, gRPC and the standard library takes longer to look through after each execution
# than most executions take, and changes with the schedule of their goroutines.
.PHONY: fuzz
fuzz: ## run all fuzz targets, each for FUZZTIME (30s, or 100000x for a number of runs); FUZZ=regexp selects
	@targets=$$(grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed -E 's|^(.*)/[^/]+:[0-9]+:func (.*)$$|\1 \2|' | grep -E '$(FUZZ)' | sort); \
	[ -n "$$targets" ] || { echo "no fuzz target matches FUZZ='$(FUZZ)' (in a regexp, make reads \$$\$$ as one dollar)" >&2; exit 1; }; \
	echo "$$targets" | while read -r dir name; do \
		echo "== $$dir $$name"; \
		$(GO) -C "$$dir" test . -gcflags=github.com/tabletop-emu/tabletop/...=-d=libfuzzer -run "^$$name\$$" -v -timeout 0 -args -test.fuzz "^$$name\$$" \
			-test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 20x -test.fuzzcachedir "$$($(GO) env GOCACHE)/fuzz/$$($(GO) -C "$$dir" list .)" </dev/null || exit 1; \
	done

CRASHES ?= 1

.PHONY: crash
crash: ## crash stores at every write, fail disks, kill servers under load, CRASHES times
	$(LONG) $(GO) test ./engine ./emu ./facade ./facade/internal/store ./cmd/tabletop -run 'Crash|Faults|Damage|Close_Log|Kill' -count=$(CRASHES) -timeout=60m
	$(LONG) $(GO) -C conformance test . -run Kill -count=$(CRASHES) -timeout=60m

.PHONY: kill-endpoints
kill-endpoints: ## kill and pause three DynamoDB endpoints over one Bigtable under 150 clients, and check their history, CRASHES times
	$(LONG) $(GO) -C conformance test . -run 'TestKill_Endpoints$$' -count=$(CRASHES) -timeout=60m -v -conformance.step=4000

SOAK ?= -soak.for=30m -soak.clients=500 -soak.rate=200 -soak.rows=20000 -soak.seed=1

.PHONY: soak
soak: ## run 500 clients on both endpoints for 30 minutes, with faults, under the race detector (SOAK= for other flags)
	$(LONG) CGO_ENABLED=1 $(GO) -C conformance test -race ./soak -count=1 -timeout=24h -v $(SOAK)

# D is how long each test writes, and LIVE has other flags: -run=NAME, -live.rate, -live.items, -live.profiles.
D    ?= 3m
LIVE ?=

.PHONY: live
live: ## follow a live table of 100,000 items under 1,000 writes a second while processes are killed, and print figures (D=3m a test, about 10 tests; LIVE='-run TestFollow$$')
	$(GO) -C conformance test ./live -count=1 -timeout=24h -v -live.for=$(D) $(LIVE)

ROUNDS ?= 1000

.PHONY: soak-rounds
soak-rounds: ## create, fill (20 MB) and delete ROUNDS tables: resident memory stays flat
	$(GO) -C conformance test ./soak -run 'TestRounds$$' -count=1 -timeout=60m -v -soak.rounds=$(ROUNDS)

MILLION ?= 1000000

.PHONY: million
million: ## migrate a million synthetic items (MILLION=n, at least 20000) in bounded memory, killed and resumed
	$(LONG) $(GO) test ./cmd/tabletop -run 'TestMillion$$' -count=1 -timeout=120m -v -million.items=$(MILLION)

.PHONY: conformance
conformance: build ## test the official Python clients against a running server
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check -r conformance/python/requirements.txt
	.venv/bin/python conformance/python/run.py bin/tabletop
	TABLETOP_BINARY=bin/tabletop PYTHONPATH=clients/python .venv/bin/python -B -W ignore -m pytest -q -p no:cacheprovider -p tabletop conformance/python/test_fixtures.py
	TABLETOP_BINARY=bin/tabletop PYTHONPATH=clients/python .venv/bin/python -B -W ignore -m pytest -q -p no:cacheprovider -p tabletop examples/python

.PHONY: conformance-client
conformance-client: build ## run the official Go client's own integration tests
	$(GO) run -C conformance ./bigtable-client ../bin/tabletop

# Projects find the types of our client with either module resolution.
TSC := conformance/js/node_modules/.bin/tsc --noEmit --strict --target es2022
.PHONY: conformance-js
conformance-js: build ## test the official JavaScript clients against a running server
	npm --prefix conformance/js ci --ignore-scripts --no-audit --no-fund --loglevel=error
	$(TSC) --module nodenext conformance/js/types.ts
	$(TSC) --module esnext --moduleResolution bundler conformance/js/types.ts
	node conformance/js/run.mjs bin/tabletop
	node conformance/js/control.mjs bin/tabletop
	node conformance/js/setup/run.mjs bin/tabletop
	node conformance/js/example.mjs bin/tabletop

bin/java-classpath: conformance/java/pom.xml
	mvn -q -B -f conformance/java/pom.xml dependency:build-classpath -Dmdep.outputFile=$(CURDIR)/bin/java-classpath

# CHANGES is the number of changes that the consumers of a stream read.
CHANGES ?= 100000
.PHONY: conformance-streams
conformance-streams: ## test stream consumers with the SDKs of Go, Python and JavaScript while the server is killed (CHANGES=n)
	test -x .venv/bin/python || python3 -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check -r conformance/python/requirements.txt
	npm --prefix conformance/js ci --ignore-scripts --no-audit --no-fund --loglevel=error
	$(LONG) $(GO) -C conformance test . -count=1 -run 'TestKill_Streams|TestExamples' -v -timeout=60m -conformance.changes=$(CHANGES) \
		-conformance.python=$(CURDIR)/.venv/bin/python -conformance.node=node

.PHONY: conformance-java
conformance-java: build bin/java-classpath ## test the official Java clients, and a reader of change streams, against a running server (needs a JDK, 17 or later, and Maven)
	javac -cp "$$(cat bin/java-classpath)" -d bin/java-classes clients/java/Tabletop.java clients/java/TabletopExtension.java conformance/java/Control.java conformance/java/OrdersTest.java
	java -Dslf4j.internal.verbosity=ERROR -cp "bin/java-classes:$$(cat bin/java-classpath)" Control bin/tabletop
	TABLETOP_BINARY=bin/tabletop java -Dslf4j.internal.verbosity=ERROR -cp "bin/java-classes:$$(cat bin/java-classpath)" org.junit.platform.console.ConsoleLauncher execute --select-class OrdersTest --select-class OrdersWithFlagsTest --select-class ParallelTest --fail-if-no-tests --details summary --disable-banner --disable-ansi-colors
	mkdir -p bin/java-orders/src
	for f in Tabletop TabletopExtension; do { echo 'package io.github.tabletopemu;'; cat clients/java/$$f.java; } >bin/java-orders/src/$$f.java; done
	javac -cp "$$(cat bin/java-classpath)" -d bin/java-orders bin/java-orders/src/*.java examples/java/src/*/java/orders/*.java
	cd examples/java && TABLETOP_BINARY=$(CURDIR)/bin/tabletop java -Dslf4j.internal.verbosity=ERROR -cp "$(CURDIR)/bin/java-orders:$$(cat $(CURDIR)/bin/java-classpath)" org.junit.platform.console.ConsoleLauncher execute --select-class orders.OrdersTest --fail-if-no-tests --details summary --disable-banner --disable-ansi-colors
	$(GO) -C conformance test . -count=1 -run TestExamples/Java -conformance.java="$(CURDIR)/bin/java-classes:$$(cat bin/java-classpath)"
	java -Dslf4j.internal.verbosity=ERROR -cp "$$(cat bin/java-classpath)" conformance/java/Changes.java bin/tabletop

.PHONY: conformance-tools
conformance-tools: build ## test a library (guregu/dynamo), dynamodump and three tools for DynamoDB Local against a running server
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --disable-pip-version-check -r conformance/tools/requirements.txt
	npm --prefix conformance/tools ci --ignore-scripts --no-audit --no-fund --loglevel=error
	node conformance/tools/run.mjs bin/tabletop $(CURDIR)/.venv/bin/python

# KCL_CHANGES is the number of changes that the Kinesis Client Library reads.
KCL_CHANGES ?= 6400
.PHONY: conformance-java-streams
conformance-java-streams: build ## test the Kinesis Client Library with the adapter for DynamoDB Streams while the server is killed (KCL_CHANGES=n; needs a JDK, 17 or later, and Maven)
	mvn -q -B -f conformance/java/streams/pom.xml dependency:build-classpath -Dmdep.outputFile=$(CURDIR)/bin/java-streams-classpath
	java -Dorg.apache.commons.logging.Log=org.apache.commons.logging.impl.NoOpLog -Dslf4j.internal.verbosity=ERROR \
		-cp "$$(cat bin/java-streams-classpath)" conformance/java/streams/Follow.java bin/tabletop $(KCL_CHANGES)

.PHONY: conformance-suites
conformance-suites: build ## run public DynamoDB suites, fetched or from a checkout: NUBO=dir ONETABLE=dir
	node conformance/dynamodb-suites/run.mjs bin/tabletop $(if $(NUBO),--nubo $(NUBO)) $(if $(ONETABLE),--onetable $(ONETABLE))

.PHONY: facade-remote
facade-remote: ## test the facade over gRPC, on a tabletop and on Google's test server
	$(GO) -C conformance test . -count=1 -run TestFacade_Remote -conformance.facade

$(LINT): tools/go.mod
	$(GO) -C tools build -o ../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: lint
lint: $(LINT) ## run vet and golangci-lint
	$(GO) vet ./...
	$(LINT) run ./...
	for m in $(MODULES); do (cd $$m && $(GO) vet ./... && $(CURDIR)/$(LINT) run ./...) || exit 1; done

$(VULN): tools/go.mod
	$(GO) -C tools build -o ../$(VULN) golang.org/x/vuln/cmd/govulncheck

.PHONY: vulncheck
vulncheck: $(VULN) ## check linked code for known vulnerabilities (needs the online database)
	$(VULN) ./...

.PHONY: fmt
fmt: $(LINT) ## format as the linter expects
	$(LINT) fmt ./...

.PHONY: tidy
tidy: ## fail if go.mod or go.sum are not tidy
	for m in . $(MODULES); do $(GO) -C $$m mod tidy -diff || exit 1; done

.PHONY: generate
generate: ## rewrite generated files: docs/support.md, docs/mapping.md, docs/lint.md
	$(GO) generate ./...

.PHONY: check
check: test demo race lint tidy conformance conformance-client ## run most of the above; .ci/run does more
