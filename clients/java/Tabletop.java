import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigDecimal;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemNotFoundException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Starts and stops Tabletop in tests, and calls its control API: snapshots, clock, faults, requests.
 *
 * <pre>
 * try (Tabletop.Server tabletop = Tabletop.start()) { // on free ports, until the end of the block
 *   DynamoDbClientBuilder builder = DynamoDbClient.builder().endpointOverride(tabletop.dynamodb());
 *   tabletop.snapshot("base"); // once
 *   tabletop.restore("base");  // before each test
 *   tabletop.advance(Duration.ofHours(25));
 *   tabletop.fault(Map.of("endpoint", "bigtable", "method", "MutateRow", "effect", "fail", "code", "UNAVAILABLE", "times", 2));
 * }
 * </pre>
 *
 * A server that is already running has the same methods: {@code Tabletop.fromPortFile(Path.of("ports.json"))}.
 * TabletopExtension.java is an extension of JUnit 5.
 *
 * <p>It needs only Java 17. Methods accept JSON as a text, or as maps and lists, in which a {@link Duration}, an
 * {@link Instant} and a {@code byte[]} have the API's forms. They return {@link Json}, whose text a library can
 * parse too. docs/control.md describes the API.
 */
public class Tabletop {
	/**
	 * An error response of the API. The status is 0 if no API responds, with the code "unreachable", and if a server does
	 * not start, with the code "not_started".
	 */
	public static final class ControlException extends RuntimeException {
		/** The HTTP status, or 0. */
		public final int status;
		/** The kind of the error, for programs: docs/control.md lists them. */
		public final String code;
		/** The fault. */
		public final String text;
		/** The remedy. */
		public final String remedy;

		ControlException(int status, String code, String text, String remedy, Throwable cause) {
			super(text + ": " + remedy, cause);
			this.status = status;
			this.code = code;
			this.text = text;
			this.remedy = remedy;
		}
	}

	private final HttpClient http;
	private final String url;
	private final String token;
	private String place = "tabletop"; // the instance of Bigtable tables, unless a method is given another

	/** The server with that URL and token, as serve prints them. */
	public Tabletop(String url, String token) {
		if (url == null || url.isEmpty() || token == null || token.isEmpty()) {
			throw new IllegalArgumentException("no server is given: in JUnit use a parameter of the type Tabletop.Server; else pass url and token, or set TABLETOP_CONSOLE_URL and TABLETOP_CONSOLE_TOKEN");
		}
		if (!url.startsWith("http://") && !url.startsWith("https://")) {
			throw new IllegalArgumentException(url + " is not a URL; expected one such as http://" + url);
		}
		this.url = url.replaceAll("/$", "");
		this.token = token;
		var client = HttpClient.newBuilder();
		String host = URI.create(url).getHost();
		if (host != null && host.matches("localhost|127(\\.\\d+){3}|\\[::1\\]")) {
			client.proxy(HttpClient.Builder.NO_PROXY); // it does not reach this machine
		}
		http = client.build();
	}

	/** Returns the server that TABLETOP_CONSOLE_URL and TABLETOP_CONSOLE_TOKEN name. */
	public static Tabletop fromEnvironment() {
		return new Tabletop(System.getenv("TABLETOP_CONSOLE_URL"), System.getenv("TABLETOP_CONSOLE_TOKEN"));
	}

	/** Returns the server that wrote a --port-file. If the file is missing, waits up to ten seconds for it. */
	public static Tabletop fromPortFile(Path path) { return fromPortFile(path, null, Duration.ofSeconds(10)); }

	/** Returns the server that wrote a --port-file. token is that of its --token-file, or null. If the file is missing, waits for it. */
	public static Tabletop fromPortFile(Path path, String token, Duration wait) {
		long until = System.nanoTime() + wait.toNanos();
		Json ports = portFile(path, missing -> {
			if (System.nanoTime() - until >= 0) {
				throw new ControlException(0, "unreachable", path + " did not appear within " + Json.text(wait) + ", so the server that writes it is not running",
					"start tabletop serve --console --port-file " + path, missing);
			}
			pause();
		});
		if (ports.get("console").isNull()) {
			throw new IllegalArgumentException("the server that wrote " + path + " was started without --console");
		}
		return new Tabletop(ports.get("console").text(), token != null ? token : ports.get("token").text());
	}

	/** Makes any request to the API. path is the part after /api/v1/, and body is JSON or null. */
	public Json call(String method, String path, Object body) {
		HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/api/v1/" + path))
			.header("Authorization", "Bearer " + token)
			.method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(Json.of(body).toString()))
			.build();
		HttpResponse<String> answer;
		try {
			answer = http.send(request, HttpResponse.BodyHandlers.ofString());
		} catch (IOException e) {
			throw unreachable(e.getMessage() != null ? e.getMessage() : e.getClass().getSimpleName(), e);
		} catch (InterruptedException e) {
			throw interrupted(e);
		}
		try {
			Json said = Json.parse(answer.body());
			if (answer.statusCode() == 200) {
				return said;
			}
			Json error = said.get("error");
			throw new ControlException(answer.statusCode(), error.get("code").text(), error.get("text").text(), error.get("remedy").text().replaceAll("GET /api/v1/(\\w+)(?= )", "$1()"), null);
		} catch (IllegalArgumentException | IllegalStateException e) { // not JSON, or not the API's
			throw unreachable("something else does, with status " + answer.statusCode(), e);
		}
	}

	ControlException unreachable(String why, Throwable cause) {
		return new ControlException(0, "unreachable", "no control API responds at " + url + " (" + why + ")",
			"start tabletop serve --console, or read its port file again", cause);
	}

	/** Returns the content of a port file, which is written atomically. While it is missing, calls {@code wait}. */
	private static Json portFile(Path path, Consumer<IOException> wait) {
		while (true) {
			try {
				return Json.parse(Files.readString(path));
			} catch (NoSuchFileException e) {
				wait.accept(e);
			} catch (IOException e) {
				throw new java.io.UncheckedIOException(e);
			}
		}
	}

	private static void pause() {
		try {
			Thread.sleep(PAUSE_MILLIS);
		} catch (InterruptedException e) {
			throw interrupted(e);
		}
	}

	private static IllegalStateException interrupted(InterruptedException e) {
		Thread.currentThread().interrupt();
		return new IllegalStateException("interrupted", e);
	}

	/** Milliseconds between two checks for a port file. */
	private static final int PAUSE_MILLIS = 20;

	/** Returns information about the server and its endpoints. */
	public Json info() { return call("GET", "info", null); }

	/** Returns the tables of both endpoints: Bigtable tables with their families, and DynamoDB tables by name. */
	public Json tables() { return call("GET", "tables", null); }

	/** Returns the id of the Bigtable table that holds the items of a DynamoDB table. Pass it to {@link #rows} or to a Bigtable client. */
	public String bigtableTable(String table) {
		for (Json found : call("GET", "tables" + query(Map.of("dynamodb", table)), null).get("bigtable")) {
			return found.get("table").text();
		}
		throw new ControlException(409, "not_found", "the server does not know where the items of the DynamoDB table \"" + table + "\" are", "start it with the --mapping of the table", null);
	}

	/** Returns all rows of a Bigtable table, reading page by page. */
	public Stream<Json> rows(String table) { return rows(place, table, Map.of()); }

	/** The same in another instance, with parameters such as {@code prefix}. */
	public Stream<Json> rows(String instance, String table, Map<String, ?> query) {
		return pages("rows", "tables/" + part(instance) + "/" + part(table) + "/rows", query);
	}

	/** Returns all items of a DynamoDB table in DynamoDB JSON, reading page by page: {@code items("orders").toList()} has all of them. {@link Json#bytes} reads a value of type B. */
	public Stream<Json> items(String table) { return items(table, Map.of()); }

	/** The same with parameters such as {@code index} and {@code limit}. */
	public Stream<Json> items(String table, Map<String, ?> query) { return pages("items", "items/" + part(table), query); }

	/** Returns the streams of DynamoDB tables, and the Bigtable tables that have a change stream. */
	public Json streams() { return call("GET", "streams", null); }

	/** Returns all records so far of the table's latest DynamoDB stream, reading page by page. */
	public Stream<Json> records(String table) { return records(table, Map.of()); }

	/** The same with parameters such as {@code arn}, {@code from} and {@code limit}. */
	public Stream<Json> records(String table, Map<String, ?> query) { return pages("records", "streams/" + part(table) + "/records", query); }

	/** Returns all records so far of the change stream of a Bigtable table, reading page by page. */
	public Stream<Json> changes(String table) { return changes(place, table, Map.of()); }

	/** The same in another instance, with parameters such as {@code from} and {@code limit}. */
	public Stream<Json> changes(String instance, String table, Map<String, ?> query) {
		return pages("changes", "tables/" + part(instance) + "/" + part(table) + "/changes", query);
	}

	/** Puts a list of items in DynamoDB JSON, where a value of type B is a {@code byte[]} or base64, and returns their number. */
	public long putItems(String table, Object items) {
		return call("POST", "items/" + part(table), Map.of("items", Json.of(items))).get("items").number();
	}

	/**
	 * Writes a list of rows to a Bigtable table. Each row has a key and cells, or delete. Keys, qualifiers and values
	 * have the form of {@link #bytes}. Returns the number of rows.
	 */
	public long putRows(String table, Object rows) { return putRows(place, table, rows); }

	/** The same in another instance. */
	public long putRows(String instance, String table, Object rows) {
		return call("POST", "tables/" + part(instance) + "/" + part(table) + "/rows", Map.of("rows", Json.of(rows))).get("rows").number();
	}

	/** The API's bytes of a text. */
	public static Map<String, String> bytes(String text) { return Map.of("text", text); }

	/** The API's form of bytes. */
	public static Map<String, String> bytes(byte[] raw) { return Map.of("base64", Base64.getEncoder().encodeToString(raw)); }

	/** Creates, changes and drops column families: a list such as {@code [{"id":"f","create":{}}]}; returns the table. */
	public Json families(String table, Object modifications) { return families(place, table, modifications); }

	/** The same in another instance. */
	public Json families(String instance, String table, Object modifications) {
		return call("POST", "tables/" + part(instance) + "/" + part(table) + "/families", Map.of("modifications", Json.of(modifications)));
	}

	/** Deletes the rows of a Bigtable table whose key begins with a prefix. */
	public void drop(String table, String prefix) { drop(place, table, prefix.getBytes(StandardCharsets.UTF_8)); }

	/** The same in another instance, by bytes. */
	public void drop(String instance, String table, byte[] prefix) {
		call("POST", "tables/" + part(instance) + "/" + part(table) + "/drop", Map.of("prefix", bytes(prefix)));
	}

	/** Deletes all rows of a Bigtable table. */
	public void empty(String table) { empty(place, table); }

	/** The same in another instance. */
	public void empty(String instance, String table) { call("POST", "tables/" + part(instance) + "/" + part(table) + "/drop", Map.of("all", true)); }

	/** Deletes a Bigtable table. */
	public void deleteTable(String table) { deleteTable(place, table); }

	/** The same in another instance. */
	public void deleteTable(String instance, String table) { call("DELETE", "tables/" + part(instance) + "/" + part(table), null); }

	/** Returns the Bigtable tables with load counts. */
	public Json heat() { return call("GET", "heat", null); }

	/** Returns the load on the keys of a Bigtable table over time. */
	public Json heat(String table) { return heat(place, table, Map.of()); }

	/** The same in another instance, with parameters such as {@code last} and {@code step}, each a {@link Duration} or a text. */
	public Json heat(String instance, String table, Map<String, ?> query) {
		return call("GET", "heat/" + part(instance) + "/" + part(table) + query(query), null);
	}

	/** Runs a DynamoDB operation; returns its response, and its Bigtable calls. */
	public Json query(String operation, Object request) {
		return call("POST", "query", Map.of("operation", operation, "request", Json.of(request)));
	}

	/** Returns the most used keys of a DynamoDB table, while contributor insights are on. */
	public Json insights(String table) { return call("GET", "insights/" + part(table), null); }

	/** The same of an index. */
	public Json insights(String table, String index) { return call("GET", "insights/" + part(table) + query(Map.of("index", index)), null); }

	/** Removes all tables and faults. The clock and the snapshots stay. */
	public void reset() { call("POST", "reset", null); }

	/** Continues the paused Go test. */
	public void resume() { call("POST", "resume", null); }

	/** Returns the snapshots, sorted by time. */
	public List<Json> snapshots() { return call("GET", "snapshots", null).get("snapshots").list(); }

	/** Takes a snapshot of the tables of both endpoints. It replaces a snapshot with the same name. */
	public Json snapshot(String name) { return call("POST", "snapshots", Map.of("name", name)); }

	/** Restores the tables of a snapshot. The clock and the faults stay. */
	public Json restore(String name) { return call("POST", "snapshots/" + part(name) + "/restore", null); }

	/** Deletes a snapshot. */
	public void forget(String name) { call("DELETE", "snapshots/" + part(name), null); }

	/** Returns the rows and items that have changed since a snapshot. */
	public Json changesSince(String name) { return call("GET", "snapshots/" + part(name) + "/changes", null); }

	/** Returns the rows and items that differ between two snapshots. */
	public Json changesSince(String name, String to) { return call("GET", "snapshots/" + part(name) + "/changes" + query(Map.of("to", to)), null); }

	/** Returns the server's time, and whether its clock is stopped. */
	public Json clock() { return call("GET", "clock", null); }

	/** Returns the server's time, from which a time to live is computed. */
	public Instant now() { return Instant.parse(clock().get("now").text()); }

	/** Advances the clock, and runs the work that becomes due. */
	public Json advance(Duration duration) { return advance(Json.text(duration)); }

	/** Advances the clock, by "25h" for example, and runs the work that becomes due. */
	public Json advance(String duration) { return call("POST", "clock", Map.of("advance", duration)); }

	/** Advances the clock to a time, and runs the work that becomes due. */
	public Json set(Instant time) { return call("POST", "clock", Map.of("set", time.toString())); }

	/** Stops the clock. */
	public Json freeze() { return call("POST", "clock", Map.of("freeze", true)); }

	/** Starts the clock again. */
	public Json run() { return call("POST", "clock", Map.of("run", true)); }

	/** Collects garbage; returns the number of deleted cells. */
	public long gc() { return call("POST", "gc", null).get("cells").number(); }

	/** Deletes expired items; returns their number. */
	public long ttl() { return call("POST", "ttl", null).get("items").number(); }

	/** Returns the logical and materialized views with their state. */
	public List<Json> views() { return call("GET", "views", null).get("views").list(); }

	/** Makes the materialized views reflect all changes, with serve --view-lag. */
	public void refreshViews() { call("POST", "views/refresh", null); }

	/** Injects a fault. docs/control.md lists the members. The delay is a {@link Duration} or a text, the item a key in DynamoDB's JSON. */
	public Json fault(Object fault) { return call("POST", "faults", fault); }

	/** Returns the injected faults, with the number of hits of each. */
	public List<Json> faults() { return call("GET", "faults", null).get("faults").list(); }

	/** Removes all faults. */
	public void removeFaults() { call("DELETE", "faults", null); }

	/** Removes a fault that {@link #fault} or {@link #faults} returned. */
	public void removeFault(Json fault) { call("DELETE", "faults/" + fault.get("endpoint").text() + "/" + fault.get("id").number(), null); }

	/** Returns all rows as text. */
	public String dump() { return call("GET", "dump", null).get("text").text(); }

	/** Returns the rows of one table as text. */
	public String dump(String table) { return call("GET", "dump" + query(Map.of("table", table)), null).get("text").text(); }

	/** Returns the last requests of both endpoints, newest first: 100 of them, or the limit of the query. */
	public List<Json> requests() { return requests(Map.of()); }

	/** The same with parameters such as {@code operation}, {@code table} and {@code failed}. */
	public List<Json> requests(Map<String, ?> query) { return call("GET", "requests" + query(query), null).get("requests").list(); }

	/** Returns one request with its bodies and its Bigtable calls. */
	public Json request(long id) { return call("GET", "requests/" + id, null); }

	/** Runs tabletop migrate plan on a folder of --fixtures. */
	public Json plan(String fixture) { return call("POST", "migrate/plan", Map.of("fixture", fixture)); }

	/** The same with the text of a mapping file that replaces the one of the fixture. */
	public Json plan(String fixture, String mapping) { return call("POST", "migrate/plan", Map.of("fixture", fixture, "mapping", mapping)); }

	/** Runs tabletop migrate verify. */
	public Json verify(String fixture) { return call("POST", "migrate/verify", Map.of("fixture", fixture)); }

	/** The same with the text of a mapping file that replaces the one of the fixture. */
	public Json verify(String fixture, String mapping) { return call("POST", "migrate/verify", Map.of("fixture", fixture, "mapping", mapping)); }

	/** Runs tabletop migrate lint. */
	public Json lint(String fixture) { return call("POST", "migrate/lint", Map.of("fixture", fixture)); }

	/** The same with the text of a mapping file that replaces the one of the fixture. */
	public Json lint(String fixture, String mapping) { return call("POST", "migrate/lint", Map.of("fixture", fixture, "mapping", mapping)); }

	private Stream<Json> pages(String member, String path, Map<String, ?> query) {
		return Stream.iterate(call("GET", path + query(query), null), page -> page != null, page -> {
			if (page.get("cursor").isNull()) {
				return null;
			}
			var next = new LinkedHashMap<String, Object>(query);
			next.put("cursor", page.get("cursor").text());
			return call("GET", path + query(next), null);
		}).flatMap(page -> page.get(member).list().stream());
	}

	private static String query(Map<String, ?> query) {
		return query.isEmpty() ? "" : query.entrySet().stream().map(e -> part(e.getKey()) + "=" + part(e.getValue() instanceof Duration duration ? Json.text(duration) : String.valueOf(e.getValue()))).collect(Collectors.joining("&", "?", ""));
	}

	private static String part(String name) { return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20"); }

	/** Starts tabletop serve on free ports of 127.0.0.1, with further flags, and waits until it is ready. */
	public static Server start(String... args) { return launcher().args(args).start(); }

	/** The options of {@link #start}. */
	public static Launcher launcher() { return new Launcher(); }

	/** The options of {@link Tabletop#start}. */
	public static final class Launcher {
		private static final String WHERE = (!Tabletop.class.getPackageName().equals("io.github.tabletopemu") ? "" // else the classes are of the artifact
			: "add the dependency io.github.tabletop-emu:tabletop with the classifier " + platform() + ", ") + "give Tabletop.launcher().binary(path) its path, set TABLETOP_BINARY, or put tabletop on PATH; go build -o bin/tabletop ./cmd/tabletop, in a clone of the project, makes it";
		private static final String COPY = "tabletop-program-"; // the id of a process follows
		private static Path installed;
		private String binary;
		private List<String> args = List.of();
		private List<String> seeds = List.of();
		private Duration timeout = Duration.ofSeconds(60);

		private Launcher() {}

		private static String program() throws IOException {
			String named = System.getenv("TABLETOP_BINARY");
			if (named != null && !named.isEmpty()) {
				return named;
			}
			Path found = installed();
			if (found == null) {
				found = built();
			}
			return found == null ? "tabletop" : found.toString();
		}

		private static String file() { return System.getProperty("os.name").toLowerCase(Locale.ROOT).startsWith("windows") ? "tabletop.exe" : "tabletop"; }

		/** Returns the program that make build wrote into the clone that contains the classes of this file, or null if PATH has one, or without it. */
		private static Path built() throws IOException {
			for (String folder : Objects.requireNonNullElse(System.getenv("PATH"), "").split(File.pathSeparator)) {
				if (!folder.isEmpty() && new File(folder, file()).exists()) {
					return null;
				}
			}
			try {
				var source = Tabletop.class.getProtectionDomain().getCodeSource();
				Path classes = source == null ? null : Path.of(source.getLocation().toURI()).toAbsolutePath();
				for (Path clone = classes; clone != null; clone = clone.getParent()) {
					if (Files.exists(clone.resolve("clients/java/Tabletop.java"))) {
						Path program = clone.resolve("bin").resolve(file());
						return Files.exists(program) ? program : null;
					}
				}
			} catch (URISyntaxException | IllegalArgumentException | FileSystemNotFoundException e) {
				return null; // the classes are in no folder
			}
			return null;
		}

		/** Returns this platform, as in the names of jars. */
		private static String platform() {
			String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
			String system = os.startsWith("windows") ? "windows" : os.startsWith("mac") ? "darwin" : "linux";
			return system + "-" + (System.getProperty("os.arch").equals("aarch64") ? "arm64" : "amd64");
		}

		/** Returns a copy of the program in the jar of this platform, or null without that jar. It lasts as long as this process. */
		private static synchronized Path installed() throws IOException {
			try (InputStream in = Tabletop.class.getResourceAsStream("/tabletop-emu/" + platform() + "/" + file())) {
				if (in != null && installed == null) {
					removeCopies();
					Path folder = Files.createTempDirectory(COPY + ProcessHandle.current().pid() + "-");
					folder.toFile().deleteOnExit(); // after the file in it
					Path copy = folder.resolve(file());
					copy.toFile().deleteOnExit();
					Files.copy(in, copy);
					copy.toFile().setExecutable(true);
					installed = copy;
				}
			}
			return installed;
		}

		/** Removes the copies of processes that were killed. */
		private static void removeCopies() throws IOException {
			try (var copies = Files.newDirectoryStream(Path.of(System.getProperty("java.io.tmpdir")), COPY + "*")) {
				for (Path folder : copies) {
					try {
						if (ProcessHandle.of(Long.parseLong(folder.getFileName().toString().split("-")[2])).isEmpty()) {
							Files.deleteIfExists(folder.resolve(file()));
							Files.deleteIfExists(folder);
						}
					} catch (IOException | RuntimeException e) {
						continue; // of another user, or not a copy
					}
				}
			}
		}

		/** The program; by default that of TABLETOP_BINARY, of the jar of this platform, on PATH, or bin/tabletop of the clone with these classes. */
		public Launcher binary(Path program) {
			binary = program.toString();
			return this;
		}

		/** Further flags of tabletop serve. */
		public Launcher args(String... flags) {
			args = List.of(flags);
			return this;
		}

		/** The files or folders of the tables that exist at the start and after {@link Tabletop#reset}. */
		public Launcher seed(Path... paths) {
			seeds = Stream.of(paths).map(path -> "--seed=" + path).toList();
			return this;
		}

		/** The time within which the server must be ready; by default a minute. */
		public Launcher timeout(Duration time) {
			timeout = time;
			return this;
		}

		/**
		 * Starts the server, and waits until it is ready. Neither the environment of this process nor any client is
		 * changed: see {@link Server#env}, {@link Server#dynamodb} and {@link Server#bigtablePort}.
		 *
		 * <p>The server does not inherit TABLETOP_* variables: one such as TABLETOP_DATA would open a folder with data,
		 * which {@link Tabletop#reset} deletes.
		 */
		public Server start() {
			try {
				if (binary == null) {
					binary = program();
				}
				Path folder = Files.createTempDirectory("tabletop-");
				Path file = folder.resolve("ports.json");
				try {
					return start(file);
				} finally {
					Files.deleteIfExists(file);
					Files.delete(folder);
				}
			} catch (IOException e) {
				throw new java.io.UncheckedIOException(e);
			}
		}

		private Server start(Path file) {
			var command = new ArrayList<>(List.of(binary, "serve", "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0"));
			command.addAll(seeds);
			command.addAll(args);
			command.addAll(List.of("--port-file", file.toString(), "--until-stdin-closes"));
			Running running;
			try {
				var process = new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD);
				process.environment().keySet().removeIf(name -> name.startsWith("TABLETOP_") && !name.equals("TABLETOP_BINARY"));
				running = new Running(process.start());
			} catch (IOException e) {
				throw new ControlException(0, "not_started", "the program " + binary + (binary.equals(System.getenv("TABLETOP_BINARY")) ? " of TABLETOP_BINARY" : "") + " cannot be run (" + e.getMessage() + ")", WHERE, e);
			}
			try {
				long until = System.nanoTime() + timeout.toNanos();
				Json ports = portFile(file, missing -> {
					String why = "";
					if (running.ended(PAUSE_MILLIS)) {
						why = "ended with " + running.end() + " before it was ready";
					} else if (System.nanoTime() - until >= 0) {
						why = "was not ready within " + Json.text(timeout);
					}
					if (!why.isEmpty()) {
						running.stop(); // then its log is complete
						throw new ControlException(0, "not_started", String.join(" ", command) + " " + why + ", and printed: " + (running.log().isEmpty() ? "nothing" : running.log()),
							why.startsWith("ended") ? "correct the args" : "pass a longer timeout, since the machine may be slow", null);
					}
				});
				if (ports.get("token").isNull()) {
					throw new ControlException(0, "not_started", "Tabletop.start does not take --token-file",
						"start the server without it, or use Tabletop.fromPortFile(path, token, wait)", null);
				}
				return new Server(running, ports);
			} catch (RuntimeException | Error e) {
				running.stop();
				throw e;
			}
		}
	}

	/** A server process, whose standard error is read in a thread. */
	private static final class Running {
		final Process process;
		private boolean stopped; // it ran until stop
		private final StringBuffer log = new StringBuffer();
		private final Thread reader = new Thread(this::read, "tabletop-log");

		Running(Process process) {
			this.process = process;
			reader.setDaemon(true);
			reader.start();
		}

		private void read() {
			try (var pipe = process.errorReader(StandardCharsets.UTF_8)) {
				var piece = new char[8192];
				for (int n = pipe.read(piece); n >= 0; n = pipe.read(piece)) {
					log.append(piece, 0, n);
					log.delete(0, Math.max(0, log.length() - (1 << 16)));
				}
			} catch (IOException e) {
				log.append(e);
			}
		}

		String log() { return log.toString().strip(); }

		/** Waits up to some milliseconds, and reports whether the process has ended. */
		boolean ended(long millis) {
			try {
				if (!process.waitFor(millis, TimeUnit.MILLISECONDS)) {
					return false;
				}
				reader.join(1000); // else its last words may be missing
				return true;
			} catch (InterruptedException e) {
				throw interrupted(e);
			}
		}

		/** The code or signal with which the process ended. */
		String end() {
			int code = process.exitValue();
			return code > 128 && process.supportsNormalTermination() ? "signal " + (code - 128) : "code " + code;
		}

		void stop() {
			stopped |= process.isAlive();
			if (process.supportsNormalTermination()) {
				process.toHandle().destroy(); // Process.destroy would also close the pipe of its log
			} else { // Windows, where it would kill the process
				closeInput();
			}
			try {
				if (!process.waitFor(60, TimeUnit.SECONDS)) {
					process.destroyForcibly();
				}
				reader.join();
			} catch (InterruptedException e) {
				process.destroyForcibly();
				throw interrupted(e);
			}
		}

		/** Closes the pipe that the server reads, which stops it. */
		private void closeInput() {
			try {
				process.getOutputStream().close();
			} catch (IOException e) {
				process.destroyForcibly();
			}
		}
	}

	/**
	 * A server that a program starts and stops, with the methods of its control API. It stops by {@link #close}, and
	 * when this process ends, even by kill -9: the server reads a pipe from this process, and stops when it closes.
	 */
	public static final class Server extends Tabletop implements AutoCloseable {
		private final Running running;
		private final Json ports;
		private final String project;

		private Server(Running running, Json ports) {
			super(ports.get("console").text(), ports.get("token").text());
			this.running = running;
			this.ports = ports;
			Json info = info();
			project = info.get("project").text();
			((Tabletop) this).place = info.get("instance").text();
		}

		@Override ControlException unreachable(String why, Throwable cause) {
			if (!running.ended(1000)) { // a process that closed its connections may need a moment
				return super.unreachable(why, cause);
			}
			String end = running.stopped ? " was stopped" : " ended with " + running.end() + ", and printed: " + (log().isEmpty() ? "nothing" : log());
			return new ControlException(0, "unreachable", "the server at " + ports.get("console").text() + end, "start another with Tabletop.start()", null);
		}

		/** Stops the server as SIGTERM does, and waits until it has ended. Further calls have no effect. */
		public void stop() { running.stop(); }

		/** The same as {@link #stop}. */
		@Override public void close() { stop(); }

		/** HOST:PORT of the Bigtable endpoint; throws with {@code --bigtable off}. */
		public String bigtable() { return ports.get("bigtable").text(); }

		/** The port of the Bigtable endpoint on this machine, for {@code BigtableDataSettings.newBuilderForEmulator}. */
		public int bigtablePort() { return URI.create("tcp://" + bigtable()).getPort(); }

		/** The URL of the DynamoDB endpoint, for {@code endpointOverride}; throws with {@code --dynamodb off}. */
		public URI dynamodb() { return URI.create(ports.get("dynamodb").text()); }

		/** A region for clients of DynamoDB. */
		public String region() { return "us-east-1"; }

		/** The id of an access key for clients of DynamoDB. */
		public String accessKeyId() { return "tabletop"; }

		/** Its secret. */
		public String secretAccessKey() { return "tabletop"; }

		/** The project of the DynamoDB tables. */
		public String project() { return project; }

		/** The instance of the DynamoDB tables, and of Bigtable tables, unless a method gets another one. */
		public String instance() { return ((Tabletop) this).place; }

		/** Returns the last 64 KiB that the server printed on standard error. */
		public String log() { return running.log(); }

		/**
		 * Returns the environment variables with which official clients, ctl and {@link Tabletop#fromEnvironment} find the
		 * server. NO_PROXY is that of this process, with the addresses of this machine.
		 */
		public Map<String, String> env() {
			var out = new LinkedHashMap<String, String>();
			out.put("TABLETOP_CONSOLE_URL", ports.get("console").text());
			out.put("TABLETOP_CONSOLE_TOKEN", ports.get("token").text());
			out.put("NO_PROXY", noProxy("NO_PROXY", "no_proxy")); // clients read one or the other
			out.put("no_proxy", noProxy("no_proxy", "NO_PROXY"));
			if (!ports.get("bigtable").isNull()) {
				out.put("BIGTABLE_EMULATOR_HOST", bigtable());
			}
			if (!ports.get("dynamodb").isNull()) {
				out.put("AWS_ENDPOINT_URL_DYNAMODB", dynamodb().toString());
				out.put("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", dynamodb().toString());
				out.put("AWS_REGION", region());
				out.put("AWS_DEFAULT_REGION", region());
				out.put("AWS_ACCESS_KEY_ID", accessKeyId());
				out.put("AWS_SECRET_ACCESS_KEY", secretAccessKey());
			}
			return out;
		}

		private static String noProxy(String name, String other) {
			String given = Objects.requireNonNullElse(System.getenv(name), "");
			if (given.isEmpty()) {
				given = Objects.requireNonNullElse(System.getenv(other), "");
			}
			Stream<String> here = given.strip().equals("*") ? Stream.of() : Stream.of("127.0.0.1", "localhost");
			return Stream.concat(Stream.of(given.split(",")).map(String::strip).filter(host -> !host.isEmpty()), here).distinct().collect(Collectors.joining(","));
		}
	}

	/** A JSON value. Access as another type throws an IllegalStateException; {@link #toString} is its text. */
	public static final class Json implements Iterable<Json> {
		private final Object value; // a Map, a List, a String, a Number, a Boolean or null

		private Json(Object value) { this.value = value instanceof Json is ? is.value : value; }

		/** A text, or maps, lists, strings, numbers and booleans, as JSON. */
		public static Json of(Object json) {
			return json instanceof Json is ? is : json instanceof String text ? parse(text) : new Json(json);
		}

		/** The value of a JSON text; throws an IllegalArgumentException for any other. */
		public static Json parse(String text) { return new Json(new Reader(text).all()); }

		/** Whether the value is JSON null. */
		public boolean isNull() { return value == null; }

		/** A member of an object; JSON null if it is missing. */
		public Json get(String member) { return new Json(as(Map.class, "object").get(member)); }

		/** An element of an array. */
		public Json get(int at) { return new Json(as(List.class, "array").get(at)); }

		/** The elements of an array. */
		public List<Json> list() {
			var out = new ArrayList<Json>();
			for (Object each : as(List.class, "array")) {
				out.add(new Json(each));
			}
			return out;
		}

		@Override public Iterator<Json> iterator() { return list().iterator(); }

		/** The value of a string. */
		public String text() { return as(String.class, "string"); }

		/** The bytes of a string with base64, such as a value of the type B of DynamoDB. */
		public byte[] bytes() { return Base64.getDecoder().decode(text()); }

		/** The value of a number, without its fraction. */
		public long number() { return as(Number.class, "number").longValue(); }

		/** The value of a boolean. */
		public boolean bool() { return as(Boolean.class, "boolean"); }

		/** Maps, lists, strings, {@link BigDecimal}, booleans and null. */
		public Object value() { return value; }

		private static String text(Duration duration) {
			return BigDecimal.valueOf(duration.getSeconds()).add(BigDecimal.valueOf(duration.getNano(), 9)).stripTrailingZeros().toPlainString() + "s";
		}

		private <T> T as(Class<T> type, String name) {
			if (!type.isInstance(value)) {
				throw new IllegalStateException("want a JSON " + name + ", not " + this);
			}
			return type.cast(value);
		}

		@Override public String toString() {
			var out = new StringBuilder();
			write(out, value);
			return out.toString();
		}

		private static void write(StringBuilder out, Object value) {
			if (value instanceof Json json) {
				write(out, json.value);
			} else if (value instanceof Map<?, ?> map) {
				String between = "{";
				for (var e : map.entrySet()) {
					quote(out.append(between), String.valueOf(e.getKey()));
					write(out.append(':'), e.getValue());
					between = ",";
				}
				out.append(map.isEmpty() ? "{}" : "}");
			} else if (value instanceof Iterable<?> list) {
				String between = "";
				out.append('[');
				for (Object each : list) {
					write(out.append(between), each);
					between = ",";
				}
				out.append(']');
			} else if (value == null || value instanceof Number || value instanceof Boolean) {
				out.append(value);
			} else if (value instanceof byte[] raw) {
				quote(out, Base64.getEncoder().encodeToString(raw));
			} else if (value instanceof Duration duration) {
				quote(out, text(duration));
			} else {
				quote(out, value.toString());
			}
		}

		private static void quote(StringBuilder out, String text) {
			out.append('"');
			for (char c : text.toCharArray()) {
				if (c == '"' || c == '\\' || c < ' ') {
					out.append(String.format("\\u%04x", (int) c));
				} else {
					out.append(c);
				}
			}
			out.append('"');
		}
	}

	/** Parses a JSON text. */
	private static final class Reader {
		private final String text;
		private int at;

		Reader(String text) { this.text = text; }

		Object all() {
			Object value = value();
			if (next() != 0) {
				throw bad();
			}
			return value;
		}

		private Object value() {
			switch (next()) {
				case '{':
					var map = new LinkedHashMap<String, Object>();
					at++;
					if (!took('}')) {
						do {
							if (next() != '"') {
								throw bad();
							}
							String name = string();
							want(':');
							map.put(name, value());
						} while (took(','));
						want('}');
					}
					return map;
				case '[':
					var list = new ArrayList<Object>();
					at++;
					if (!took(']')) {
						do {
							list.add(value());
						} while (took(','));
						want(']');
					}
					return list;
				case '"':
					return string();
				default:
					int from = at;
					while (at < text.length() && ",]} \t\r\n".indexOf(text.charAt(at)) < 0) {
						at++;
					}
					String word = text.substring(from, at);
					return switch (word) {
						case "null" -> null;
						case "true" -> true;
						case "false" -> false;
						default -> {
							try {
								yield new BigDecimal(word);
							} catch (NumberFormatException e) {
								at = from;
								throw bad();
							}
						}
					};
			}
		}

		private String string() {
			var out = new StringBuilder();
			for (at++; at < text.length(); at++) {
				char c = text.charAt(at);
				if (c == '"') {
					at++;
					return out.toString();
				}
				if (c == '\\' && ++at < text.length()) {
					c = text.charAt(at);
					int plain = "bfnrt".indexOf(c);
					if (plain >= 0) {
						c = "\b\f\n\r\t".charAt(plain);
					} else if (c == 'u' && at + 4 < text.length()) {
						c = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16);
						at += 4;
					}
				}
				out.append(c);
			}
			throw bad();
		}

		/** The next character that is not a space, or 0 at the end. */
		private char next() {
			while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
				at++;
			}
			return at < text.length() ? text.charAt(at) : 0;
		}

		private boolean took(char c) {
			if (next() != c) {
				return false;
			}
			at++;
			return true;
		}

		private void want(char c) {
			if (!took(c)) {
				throw bad();
			}
		}

		private IllegalArgumentException bad() { return new IllegalArgumentException("this is no JSON at character " + at + ": " + text); }
	}
}
