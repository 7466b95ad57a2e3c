import java.io.IOException;
import java.math.BigDecimal;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The control API of a running Tabletop: snapshots, clock, faults, requests.
 *
 * <pre>
 * Tabletop control = Tabletop.fromPortFile(Path.of("ports.json"));
 * control.snapshot("base"); // once
 * control.restore("base");  // before each test
 * control.advance("25h");
 * control.fault(Map.of("endpoint", "bigtable", "method", "MutateRow", "effect", "fail", "code", "UNAVAILABLE", "times", 2));
 * </pre>
 *
 * It needs only Java 17. Methods accept JSON as a text, or as maps and lists, and return it
 * as {@link Json}, whose text a library can parse too. docs/control.md describes the API.
 */
public final class Tabletop {
	/** The error answer of the API; with the code "unreachable" and the status 0 if it does not answer. */
	public static final class ControlException extends RuntimeException {
		public final int status;
		public final String code;
		public final String text;
		public final String remedy;

		ControlException(int status, String code, String text, String remedy, Throwable cause) {
			super(text + ": " + remedy, cause);
			this.status = status;
			this.code = code;
			this.text = text;
			this.remedy = remedy;
		}
	}

	private final HttpClient http = HttpClient.newHttpClient();
	private final String url;
	private final String token;

	/** The server with that URL and token, as serve prints them. */
	public Tabletop(String url, String token) {
		if (url == null || url.isEmpty() || token == null || token.isEmpty()) {
			throw new IllegalArgumentException("which server? Give url and token, or set TABLETOP_CONSOLE_URL and TABLETOP_CONSOLE_TOKEN");
		}
		if (!url.startsWith("http://") && !url.startsWith("https://")) {
			throw new IllegalArgumentException(url + " is not a URL; expected one such as http://" + url);
		}
		this.url = url.replaceAll("/$", "");
		this.token = token;
	}

	/** The server of TABLETOP_CONSOLE_URL and TABLETOP_CONSOLE_TOKEN. */
	public static Tabletop fromEnvironment() {
		return new Tabletop(System.getenv("TABLETOP_CONSOLE_URL"), System.getenv("TABLETOP_CONSOLE_TOKEN"));
	}

	/** The server that wrote a --port-file. */
	public static Tabletop fromPortFile(Path path) { return fromPortFile(path, null); }

	/** The server that wrote a --port-file, with the token of its --token-file. */
	public static Tabletop fromPortFile(Path path, String token) {
		Json ports;
		try {
			ports = Json.parse(Files.readString(path));
		} catch (NoSuchFileException e) {
			throw new ControlException(0, "unreachable", "no server runs that writes " + path, "start tabletop serve --console --port-file " + path, e);
		} catch (IOException e) {
			throw new java.io.UncheckedIOException(e);
		}
		if (ports.get("console").isNull()) {
			throw new IllegalArgumentException("the server of " + path + " was started without --console");
		}
		return new Tabletop(ports.get("console").text(), token != null ? token : ports.get("token").text());
	}

	/** Makes any request of the API; path is the part after /api/v1/, body is JSON, or null. */
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
			Thread.currentThread().interrupt();
			throw new IllegalStateException("interrupted", e);
		}
		try {
			Json said = Json.parse(answer.body());
			if (answer.statusCode() == 200) {
				return said;
			}
			Json error = said.get("error");
			throw new ControlException(answer.statusCode(), error.get("code").text(), error.get("text").text(), error.get("remedy").text(), null);
		} catch (IllegalArgumentException | IllegalStateException e) { // not JSON, or not the API's
			throw unreachable("something else does, with status " + answer.statusCode(), e);
		}
	}

	private ControlException unreachable(String why, Throwable cause) {
		return new ControlException(0, "unreachable", "no control API answers at " + url + " (" + why + ")",
			"start tabletop serve --console, or read its port file again", cause);
	}

	public Json info() { return call("GET", "info", null); }

	public Json tables() { return call("GET", "tables", null); }

	/** All rows of a Bigtable table, page by page. */
	public Stream<Json> rows(String table) { return rows("tabletop", table, Map.of()); }

	public Stream<Json> rows(String instance, String table, Map<String, ?> query) {
		return pages("rows", "tables/" + part(instance) + "/" + part(table) + "/rows", query);
	}

	/** All items of a DynamoDB table, page by page. */
	public Stream<Json> items(String table) { return items(table, Map.of()); }

	public Stream<Json> items(String table, Map<String, ?> query) { return pages("items", "items/" + part(table), query); }

	/** The streams of DynamoDB's tables, and the Bigtable tables that have a change stream. */
	public Json streams() { return call("GET", "streams", null); }

	/** All records so far of the table's latest stream of DynamoDB Streams, page by page. */
	public Stream<Json> records(String table) { return records(table, Map.of()); }

	public Stream<Json> records(String table, Map<String, ?> query) { return pages("records", "streams/" + part(table) + "/records", query); }

	/** All records so far of the change stream of a Bigtable table, page by page. */
	public Stream<Json> changes(String table) { return changes("tabletop", table, Map.of()); }

	public Stream<Json> changes(String instance, String table, Map<String, ?> query) {
		return pages("changes", "tables/" + part(instance) + "/" + part(table) + "/changes", query);
	}

	/** Puts items, in DynamoDB's JSON: a list of them. */
	public long putItems(String table, Object items) {
		return call("POST", "items/" + part(table), Map.of("items", Json.of(items))).get("items").number();
	}

	/**
	 * Writes rows of a Bigtable table: a list of rows, each with a key and cells, or delete. Keys, qualifiers and values
	 * have the form of {@link #bytes}.
	 */
	public long putRows(String table, Object rows) { return putRows("tabletop", table, rows); }

	public long putRows(String instance, String table, Object rows) {
		return call("POST", "tables/" + part(instance) + "/" + part(table) + "/rows", Map.of("rows", Json.of(rows))).get("rows").number();
	}

	/** The API's bytes of a text. */
	public static Map<String, String> bytes(String text) { return Map.of("text", text); }

	/** The API's form of bytes. */
	public static Map<String, String> bytes(byte[] raw) { return Map.of("base64", Base64.getEncoder().encodeToString(raw)); }

	/** Creates, changes and drops column families: a list such as {@code [{"id":"f","create":{}}]}; returns the table. */
	public Json families(String table, Object modifications) { return families("tabletop", table, modifications); }

	public Json families(String instance, String table, Object modifications) {
		return call("POST", "tables/" + part(instance) + "/" + part(table) + "/families", Map.of("modifications", Json.of(modifications)));
	}

	/** Deletes the rows of a Bigtable table whose key begins with a prefix. */
	public void drop(String table, String prefix) { drop("tabletop", table, prefix.getBytes(StandardCharsets.UTF_8)); }

	public void drop(String instance, String table, byte[] prefix) {
		call("POST", "tables/" + part(instance) + "/" + part(table) + "/drop", Map.of("prefix", bytes(prefix)));
	}

	/** Deletes all rows of a Bigtable table. */
	public void empty(String table) { empty("tabletop", table); }

	public void empty(String instance, String table) { call("POST", "tables/" + part(instance) + "/" + part(table) + "/drop", Map.of("all", true)); }

	/** Deletes a Bigtable table. */
	public void deleteTable(String table) { deleteTable("tabletop", table); }

	public void deleteTable(String instance, String table) { call("DELETE", "tables/" + part(instance) + "/" + part(table), null); }

	/** The Bigtable tables with load counts. */
	public Json heat() { return call("GET", "heat", null); }

	/** The load on the keys of a Bigtable table over time. */
	public Json heat(String table) { return heat("tabletop", table, Map.of()); }

	public Json heat(String instance, String table, Map<String, ?> query) {
		return call("GET", "heat/" + part(instance) + "/" + part(table) + query(query), null);
	}

	/** Runs a DynamoDB operation; returns its response, and its Bigtable calls. */
	public Json query(String operation, Object request) {
		return call("POST", "query", Map.of("operation", operation, "request", Json.of(request)));
	}

	/** The most used keys of a DynamoDB table, while contributor insights are on. */
	public Json insights(String table) { return call("GET", "insights/" + part(table), null); }

	public Json insights(String table, String index) { return call("GET", "insights/" + part(table) + query(Map.of("index", index)), null); }

	public void reset() { call("POST", "reset", null); }

	/** Continues the paused Go test. */
	public void resume() { call("POST", "resume", null); }

	public List<Json> snapshots() { return call("GET", "snapshots", null).get("snapshots").list(); }

	public Json snapshot(String name) { return call("POST", "snapshots", Map.of("name", name)); }

	public Json restore(String name) { return call("POST", "snapshots/" + part(name) + "/restore", null); }

	public void forget(String name) { call("DELETE", "snapshots/" + part(name), null); }

	/** The rows and items that have changed since a snapshot. */
	public Json changesSince(String name) { return call("GET", "snapshots/" + part(name) + "/changes", null); }

	/** The rows and items that differ between two snapshots. */
	public Json changesSince(String name, String to) { return call("GET", "snapshots/" + part(name) + "/changes" + query(Map.of("to", to)), null); }

	public Json clock() { return call("GET", "clock", null); }

	/** Advances the clock, by "25h" for example, and runs the work due on the way. */
	public Json advance(String duration) { return call("POST", "clock", Map.of("advance", duration)); }

	/** Advances the clock to a time, and runs the work due on the way. */
	public Json set(Instant time) { return call("POST", "clock", Map.of("set", time.toString())); }

	public Json freeze() { return call("POST", "clock", Map.of("freeze", true)); }

	public Json run() { return call("POST", "clock", Map.of("run", true)); }

	/** Collects garbage; returns the number of deleted cells. */
	public long gc() { return call("POST", "gc", null).get("cells").number(); }

	/** Deletes expired items; returns their number. */
	public long ttl() { return call("POST", "ttl", null).get("items").number(); }

	/** Arms a fault; docs/control.md lists the members. */
	public Json fault(Object fault) { return call("POST", "faults", fault); }

	public List<Json> faults() { return call("GET", "faults", null).get("faults").list(); }

	/** Removes all faults. */
	public void removeFaults() { call("DELETE", "faults", null); }

	/** Removes a fault, as returned by {@link #fault} or {@link #faults}. */
	public void removeFault(Json fault) { call("DELETE", "faults/" + fault.get("endpoint").text() + "/" + fault.get("id").number(), null); }

	/** All rows as text. */
	public String dump() { return call("GET", "dump", null).get("text").text(); }

	public String dump(String table) { return call("GET", "dump" + query(Map.of("table", table)), null).get("text").text(); }

	/** The last requests of both endpoints, the newest first: 100 of them, or the limit of the query. */
	public List<Json> requests() { return requests(Map.of()); }

	public List<Json> requests(Map<String, ?> query) { return call("GET", "requests" + query(query), null).get("requests").list(); }

	/** One of the requests, with its bodies and its calls. */
	public Json request(long id) { return call("GET", "requests/" + id, null); }

	/** Runs tabletop migrate plan on a folder of --fixtures. */
	public Json plan(String fixture) { return call("POST", "migrate/plan", Map.of("fixture", fixture)); }

	/** The same with another mapping text than the fixture's own. */
	public Json plan(String fixture, String mapping) { return call("POST", "migrate/plan", Map.of("fixture", fixture, "mapping", mapping)); }

	/** Runs tabletop migrate verify. */
	public Json verify(String fixture) { return call("POST", "migrate/verify", Map.of("fixture", fixture)); }

	public Json verify(String fixture, String mapping) { return call("POST", "migrate/verify", Map.of("fixture", fixture, "mapping", mapping)); }

	/** Runs tabletop migrate lint. */
	public Json lint(String fixture) { return call("POST", "migrate/lint", Map.of("fixture", fixture)); }

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
		return query.isEmpty() ? "" : query.entrySet().stream().map(e -> part(e.getKey()) + "=" + part(String.valueOf(e.getValue()))).collect(Collectors.joining("&", "?", ""));
	}

	private static String part(String name) { return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20"); }

	/** A JSON value. Access as another type throws an IllegalStateException; {@link #toString} is its text. */
	public static final class Json implements Iterable<Json> {
		private final Object value; // a Map, a List, a String, a Number, a Boolean or null

		private Json(Object value) { this.value = value instanceof Json is ? is.value : value; }

		/** A text, or maps, lists, strings, numbers and booleans, as JSON. */
		public static Json of(Object json) {
			return json instanceof Json is ? is : json instanceof String text ? parse(text) : new Json(json);
		}

		public static Json parse(String text) { return new Json(new Reader(text).all()); }

		public boolean isNull() { return value == null; }

		/** A member of an object; JSON null if it is missing. */
		public Json get(String member) { return new Json(as(Map.class, "object").get(member)); }

		/** An element of an array. */
		public Json get(int at) { return new Json(as(List.class, "array").get(at)); }

		public List<Json> list() {
			var out = new ArrayList<Json>();
			for (Object each : as(List.class, "array")) {
				out.add(new Json(each));
			}
			return out;
		}

		@Override public Iterator<Json> iterator() { return list().iterator(); }

		public String text() { return as(String.class, "string"); }

		public long number() { return as(Number.class, "number").longValue(); }

		public boolean bool() { return as(Boolean.class, "boolean"); }

		/** Maps, lists, strings, {@link BigDecimal}, booleans and null. */
		public Object value() { return value; }

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
