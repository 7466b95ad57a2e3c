import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.Socket;
import java.net.SocketException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;

/** Starts servers from TABLETOP_BINARY: java -cp classes StartTest */
public final class StartTest {
	private static final String TABLE = """
		{"TableName":"%s","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
		"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"NEW_IMAGE"}}""";
	private static final String[] WHERE = {"Tabletop.launcher().binary(path)", "TABLETOP_BINARY", "tabletop on PATH", "go build -o bin/tabletop ./cmd/tabletop"};

	public static void main(String[] args) throws Exception {
		if (args.length > 0) { // a process of its own
			child(args[0]);
			return;
		}
		handle();
		seed();
		inherited();
		proxy();
		killed();
		program();
		earlyEnd();
		killedParent();
		durations();
		items();
		tables();
		portFile();
		System.out.println("ok");
	}

	private static void child(String what) throws IOException {
		try {
			var server = Tabletop.start();
			if (what.equals("settings")) {
				System.out.println(server.instance() + " " + server.env().get("NO_PROXY") + " " + server.env().get("no_proxy"));
				return;
			}
			System.out.println(what.equals("url") ? server.info().get("dynamodb").text().equals(server.dynamodb().toString()) ? server.env().get("TABLETOP_CONSOLE_URL") : "" : "started");
			System.in.read();
			server.stop();
		} catch (Tabletop.ControlException e) {
			System.out.println(e.getMessage());
		}
	}

	/** Two servers at once, each with its own addresses. */
	private static void handle() throws Exception {
		Tabletop.Server ended;
		try (var first = Tabletop.start(); var second = Tabletop.start("--project", "p", "--instance", "i", "--bigtable", "off")) {
			ended = first;
			equal("places", List.of("tabletop", "tabletop", "p", "i"), List.of(first.project(), first.instance(), second.project(), second.instance()));
			equal("addresses", List.of(first.bigtable(), first.dynamodb().toString()), List.of(first.info().get("bigtable").text(), first.info().get("dynamodb").text()));
			equal("the port", first.bigtable(), "127.0.0.1:" + first.bigtablePort());
			var env = first.env();
			equal("BIGTABLE_EMULATOR_HOST", first.bigtable(), env.get("BIGTABLE_EMULATOR_HOST"));
			equal("AWS_ENDPOINT_URL_DYNAMODB", first.dynamodb().toString(), env.get("AWS_ENDPOINT_URL_DYNAMODB"));
			equal("variables", 11, env.size());
			equal("without Bigtable", false, second.env().containsKey("BIGTABLE_EMULATOR_HOST"));
			equal("a client by the variables", first.info().get("dynamodb").text(),
				new Tabletop(env.get("TABLETOP_CONSOLE_URL"), env.get("TABLETOP_CONSOLE_TOKEN")).info().get("dynamodb").text());
		}
		ended.stop(); // again
		fails("unreachable", () -> ended.info(), "was stopped", ended.env().get("TABLETOP_CONSOLE_URL"));
	}

	/** The tables of files exist at the start, and after a reset. */
	private static void seed() throws Exception {
		Path file = Files.createTempFile("start-test-", ".json");
		try {
			Files.writeString(file, "{\"tables\":[" + TABLE.formatted("orders") + "],\"items\":{\"orders\":[{\"PutRequest\":{\"Item\":{\"id\":{\"S\":\"a\"}}}}]}}");
			try (var server = Tabletop.launcher().seed(file).start()) {
				server.putItems("orders", List.of(Map.of("id", Map.of("S", "b"))));
				server.reset();
				List<String> ids = new java.util.ArrayList<>();
				server.items("orders").forEach(item -> ids.add(item.get("id").get("S").text()));
				equal("items", List.of("a"), ids);
			}
		} finally {
			Files.delete(file);
		}
	}

	/** A server opens no folder of data that the environment names: a reset would delete the data. */
	private static void inherited() throws Exception {
		Path folder = Files.createTempDirectory("start-test-");
		Path data = folder.resolve("data");
		Path config = folder.resolve("tabletop.yaml");
		try {
			Files.writeString(config, "data: " + data + "\n");
			for (var settings : List.of(Map.of("TABLETOP_DATA", data.toString()), Map.of("TABLETOP_CONFIG", config.toString()), Map.of("TABLETOP_INSTANCE", "other"))) {
				equal("instance", "tabletop", said(settings, "settings").split(" ")[0]);
				equal("data", false, Files.exists(data));
			}
			try (var server = Tabletop.start("--config", config.toString())) {
				equal("data", true, Files.exists(data));
			}
		} finally {
			delete(folder);
		}
	}

	/** Calls use no proxy, and env() keeps official clients from one. */
	private static void proxy() throws Exception {
		var before = ProxySelector.getDefault();
		try (var server = Tabletop.start()) {
			ProxySelector.setDefault(ProxySelector.of(new InetSocketAddress("127.0.0.1", 1)));
			equal("the server", server.dynamodb().toString(), new Tabletop(server.env().get("TABLETOP_CONSOLE_URL"), server.env().get("TABLETOP_CONSOLE_TOKEN")).info().get("dynamodb").text());
		} finally {
			ProxySelector.setDefault(before);
		}
		for (var given : Map.of(Map.of("NO_PROXY", "", "no_proxy", ""), "127.0.0.1,localhost 127.0.0.1,localhost",
				Map.of("NO_PROXY", "a.test, localhost", "no_proxy", ""), "a.test,localhost,127.0.0.1 a.test,localhost,127.0.0.1",
				Map.of("NO_PROXY", "a.test", "no_proxy", "b.test"), "a.test,127.0.0.1,localhost b.test,127.0.0.1,localhost",
				Map.of("NO_PROXY", "", "no_proxy", "*"), "* *").entrySet()) {
			equal("NO_PROXY", "tabletop " + given.getValue(), said(given.getKey(), "settings").strip());
		}
	}

	/** The error has the end of the server and its last words. */
	private static void killed() throws Exception {
		Path file = Files.createTempFile("start-test-", ".sh");
		try {
			equal("executable", true, file.toFile().setExecutable(true));
			Files.writeString(file, "#!/bin/sh\necho a last word >&2\nTABLETOP_NONE=1 exec \"$TABLETOP_BINARY\" \"$@\"");
			try (var server = Tabletop.launcher().binary(file).start()) {
				ProcessHandle.current().children().forEach(ProcessHandle::destroyForcibly);
				for (boolean ended = false; !ended;) { // each call waits a moment for the end
					try {
						server.info();
					} catch (Tabletop.ControlException e) {
						ended = e.text.contains("ended");
					}
				}
				server.stop(); // waits for the end of its log
				has(server.log(), "TABLETOP_NONE in the environment does not set a flag");
				fails("unreachable", () -> server.info(), "the server at " + server.env().get("TABLETOP_CONSOLE_URL") + " ended with signal 9, and printed: a last word", "Tabletop.start()");
			}
			Files.writeString(file, "#!/bin/sh\nkill -9 $$");
			fails("not_started", () -> Tabletop.launcher().binary(file).start(), "ended with signal 9 before it was ready");
		} finally {
			Files.delete(file);
		}
	}

	private static void program() throws Exception {
		fails("not_started", () -> Tabletop.launcher().binary(Path.of("/none/tabletop")).start(), concat("/none/tabletop", WHERE));
		Path folder = Files.createTempDirectory("start-test-");
		Path link = folder.resolve("tabletop");
		try {
			has(said(Map.of("TABLETOP_BINARY", "/none/other"), "start"), concat("the program /none/other of TABLETOP_BINARY", WHERE));
			Map<String, String> path = Map.of("TABLETOP_BINARY", "", "PATH", folder.toString());
			has(said(path, "start"), concat("the program tabletop ", WHERE));
			Files.createSymbolicLink(link, Path.of(System.getenv("TABLETOP_BINARY")).toAbsolutePath());
			equal("tabletop on PATH", "started", said(path, "start").strip());
			// A clone with copies of the classes, in which no program is built yet.
			Path clone = folder.resolve("clone");
			Files.createDirectories(clone.resolve("clients/java"));
			Files.createFile(clone.resolve("clients/java/Tabletop.java"));
			Path classes = Files.createDirectories(clone.resolve("target/classes"));
			Path compiled = Path.of(StartTest.class.getProtectionDomain().getCodeSource().getLocation().toURI());
			try (var files = Files.newDirectoryStream(compiled, "{Tabletop,StartTest}*.class")) {
				for (Path file : files) {
					Files.copy(file, classes.resolve(file.getFileName()));
				}
			}
			equal("tabletop on PATH before that of a clone", "started", said(classes.toString(), path, "start").strip());
			Files.delete(link);
			has(said(classes.toString(), path, "start"), concat("the program tabletop ", WHERE));
			Path built = Files.createDirectories(clone.resolve("bin")).resolve("tabletop");
			Files.createSymbolicLink(built, Path.of(System.getenv("TABLETOP_BINARY")).toAbsolutePath());
			equal("tabletop of the clone", "started", said(classes.toString(), path, "start").strip());
			jar(folder, classes);
		} finally {
			delete(folder);
		}
	}

	/** A copy of the program in the jar ends with its process, or with the next one if that was killed. */
	private static void jar(Path folder, Path classes) throws Exception {
		String system = System.getProperty("os.name").startsWith("Mac") ? "darwin" : "linux";
		Path program = classes.resolve("tabletop-emu/" + system + "-" + (System.getProperty("os.arch").equals("aarch64") ? "arm64" : "amd64") + "/tabletop");
		Files.createDirectories(program.getParent());
		Files.createSymbolicLink(program, Path.of(System.getenv("TABLETOP_BINARY")).toAbsolutePath());
		Path copies = Files.createDirectory(folder.resolve("copies"));
		var env = Map.of("TABLETOP_BINARY", "", "TMPDIR", copies.toString());
		Process parent = process(classes.toString(), env, "url");
		try (var lines = parent.inputReader()) {
			equal("started", true, lines.readLine().startsWith("http"));
			parent.destroyForcibly().waitFor();
		}
		equal("copies after a kill", 1, copies.toFile().list().length);
		equal("the program of the jar", "started", said(classes.toString(), env, "start").strip());
		equal("copies after an end", 0, copies.toFile().list().length);
	}

	private static void delete(Path folder) throws IOException {
		try (var files = Files.walk(folder)) {
			for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
				Files.delete(file);
			}
		}
	}

	/** The error has the server's own words. */
	private static void earlyEnd() throws Exception {
		fails("not_started", () -> Tabletop.start("--gc", "never"), "--gc never", "ended with code 2", "\"never\" must be background");
		Path file = Files.createTempFile("start-test-", ".sh");
		try {
			Files.writeString(file, "#!/bin/sh\nexec cat >/dev/null"); // never ready
			equal("executable", true, file.toFile().setExecutable(true));
			fails("not_started", () -> Tabletop.launcher().binary(file).timeout(Duration.ZERO).start(), file.toString(), "was not ready within 0s, and printed: nothing: pass a longer timeout");
			fails("not_started", () -> Tabletop.start("--token-file", file.toString()), "--token-file");
		} finally {
			Files.delete(file);
		}
	}

	/** The server ends with a process that is killed. */
	private static void killedParent() throws Exception {
		Process parent = process(Map.of(), "url");
		try (var lines = parent.inputReader()) {
			URI at = URI.create(lines.readLine());
			try (var connection = new Socket(at.getHost(), at.getPort())) {
				parent.destroyForcibly().waitFor();
				equal("a byte of the server", -1, connection.getInputStream().read());
			} catch (SocketException reset) {
				// it ended too
			}
		}
	}

	private static void durations() throws Exception {
		try (var server = Tabletop.start()) {
			server.freeze();
			server.set(Instant.parse("2030-01-01T00:00:00Z"));
			equal("later", "2030-01-02T01:00:00.0015Z", server.advance(Duration.ofHours(25).plusNanos(1_500_000)).get("now").text());
			equal("later", "2030-01-03T01:00:00.0015Z", server.advance("1d").get("now").text());
			for (Object delay : List.of(Duration.ofMillis(200), "200ms")) {
				equal("delay", "200ms", server.fault(Map.of("endpoint", "bigtable", "method", "ReadRows", "effect", "delay", "delay", delay)).get("delay").text());
			}
			server.query("CreateTable", TABLE.formatted("orders"));
			server.heat("tabletop", server.bigtableTable("orders"), Map.of("last", Duration.ofHours(1), "step", "1m"));
			fails("bad_request", () -> server.advance(Duration.ofMillis(-1500)), "\"-1.5s\"", "time moves only forward");
			fails("bad_request", () -> server.advance("soon"), "\"soon\"");
		}
	}

	private static void items() throws Exception {
		try (var server = Tabletop.start()) {
			server.query("CreateTable", TABLE.formatted("orders"));
			var item = Map.of("id", Map.of("S", "a"), "b", Map.of("B", new byte[] {-1}), "bs", Map.of("BS", List.of(new byte[] {0}, new byte[] {-1})));
			equal("items", 1L, server.putItems("orders", List.of(item)));
			Tabletop.Json got = server.items("orders").toList().get(0);
			equal("B", -1, (int) got.get("b").get("B").bytes()[0]);
			equal("BS", Base64.getEncoder().encodeToString(new byte[] {-1}), got.get("bs").get("BS").get(1).text());
			equal("the image", got.toString(), server.records("orders").toList().get(0).get("dynamodb").get("NewImage").toString());
			fails("bad_request", () -> server.putItems("orders", List.of(item, Map.of("id", "a"))), "item 1 is {\"id\":\"a\"}", "{\"id\":{\"S\":\"a\"}}");
			var fault = Map.of("endpoint", "dynamodb", "method", "PutItem", "effect", "fail", "code", "Throttling", "table", "orders", "item", Map.of("id", "a"));
			fails("bad_request", () -> server.fault(fault), "item is {\"id\":\"a\"}", "{\"id\":{\"S\":\"a\"}}");
		}
	}

	private static void tables() throws Exception {
		try (var server = Tabletop.start("--instance", "i")) {
			for (String name : List.of("orders", "customers")) {
				server.query("CreateTable", TABLE.formatted(name));
			}
			server.putItems("orders", "[{\"id\":{\"S\":\"a\"}}]");
			equal("rows", List.of("a"), server.rows(server.bigtableTable("orders")).map(row -> row.get("key").get("text").text()).toList());
			equal("another table", false, server.bigtableTable("customers").equals(server.bigtableTable("orders")));
			fails("not_found", () -> server.bigtableTable("order"), "\"order\"", "nearest name is \"orders\"; tables() lists the tables");
			fails("NotFound", () -> server.dump("order"), "dump of order", "nearest name is \"orders\"");
			fails("not_found", () -> server.bigtableTable(""), "no DynamoDB table \"\"");
			fails("ResourceNotFoundException", () -> server.items("order"), "\"order\"", "nearest name is \"orders\"");
			fails("ResourceNotFoundException", () -> server.putItems("order", "[{\"id\":{\"S\":\"a\"}}]"), "\"order\"", "nearest name is \"orders\"");
		}
	}

	/** A client waits for the port file of a server that is still starting. */
	private static void portFile() throws Exception {
		Path folder = Files.createTempDirectory("start-test-");
		Path file = folder.resolve("ports.json");
		Path written = folder.resolve("new.json");
		try (var server = Tabletop.start()) {
			fails("unreachable", () -> Tabletop.fromPortFile(file, null, Duration.ZERO), file.toString(), "within 0s");
			var asked = CompletableFuture.supplyAsync(() -> Tabletop.fromPortFile(file, null, Duration.ofMinutes(10)));
			Files.writeString(written, Tabletop.Json.of(Map.of("console", server.env().get("TABLETOP_CONSOLE_URL"), "token", server.env().get("TABLETOP_CONSOLE_TOKEN"))).toString());
			Files.move(written, file);
			equal("the server", server.dynamodb().toString(), asked.get().info().get("dynamodb").text());
		} finally {
			Files.deleteIfExists(written);
			Files.deleteIfExists(file);
			Files.delete(folder);
		}
	}

	/** Runs this class in a process of its own. */
	private static Process process(Map<String, String> env, String what) throws IOException { return process(System.getProperty("java.class.path"), env, what); }

	private static Process process(String classes, Map<String, String> env, String what) throws IOException {
		var java = new ProcessBuilder(ProcessHandle.current().info().command().orElseThrow(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
			"-Djava.io.tmpdir=" + env.getOrDefault("TMPDIR", System.getProperty("java.io.tmpdir")), "-cp", classes, "StartTest", what).redirectError(ProcessBuilder.Redirect.INHERIT);
		java.environment().putAll(env);
		return java.start();
	}

	/** Starts a server in a process of its own, and returns its output. */
	private static String said(Map<String, String> env, String what) throws Exception { return said(System.getProperty("java.class.path"), env, what); }

	private static String said(String classes, Map<String, String> env, String what) throws Exception {
		Process process = process(classes, env, what);
		process.getOutputStream().close();
		String said = new String(process.getInputStream().readAllBytes());
		equal("exit code", 0, process.waitFor());
		return said;
	}

	private static String[] concat(String first, String... rest) {
		var out = new String[rest.length + 1];
		out[0] = first;
		System.arraycopy(rest, 0, out, 1, rest.length);
		return out;
	}

	private static void fails(String code, Callable<?> call, String... parts) throws Exception {
		try {
			call.call();
		} catch (Tabletop.ControlException e) {
			equal("code of " + e.getMessage(), code, e.code);
			has(e.getMessage(), parts);
			return;
		}
		throw new AssertionError(code + ": it did not fail");
	}

	private static void has(String text, String... parts) {
		for (String part : parts) {
			if (!text.contains(part)) {
				throw new AssertionError(text + "\ndoes not have " + part);
			}
		}
	}

	private static void equal(String what, Object want, Object got) {
		if (!want.equals(got)) {
			throw new AssertionError(what + ": got " + got + ", want " + want);
		}
	}
}
