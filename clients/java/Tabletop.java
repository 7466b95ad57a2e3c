import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;

/**
 * The control API of a running Tabletop: snapshots, clock, faults, requests.
 *
 * <pre>
 * Tabletop control = Tabletop.fromEnvironment();
 * control.snapshot("base"); // once
 * control.restore("base");  // before each test
 * </pre>
 *
 * It needs nothing but Java 17. Answers are JSON texts, for the library that a project has; docs/control.md
 * describes the API.
 */
public final class Tabletop {
	/** What the API answers when it does not do what was asked. */
	public static final class ControlException extends RuntimeException {
		/** The status of the answer, and its JSON, which has the code, the text and the remedy. */
		public final int status;
		public final String answer;

		ControlException(int status, String answer) {
			super(status + " " + answer);
			this.status = status;
			this.answer = answer;
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
		this.url = url.replaceAll("/$", "");
		this.token = token;
	}

	/** The server of TABLETOP_CONSOLE_URL and TABLETOP_CONSOLE_TOKEN. */
	public static Tabletop fromEnvironment() {
		return new Tabletop(System.getenv("TABLETOP_CONSOLE_URL"), System.getenv("TABLETOP_CONSOLE_TOKEN"));
	}

	/** Makes any request of the API; path is what follows /api/v1/, body its JSON, or null. */
	public String call(String method, String path, String body) {
		HttpRequest request = HttpRequest.newBuilder(URI.create(url + "/api/v1/" + path))
			.header("Authorization", "Bearer " + token)
			.method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body))
			.build();
		try {
			HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
			if (answer.statusCode() != 200) {
				throw new ControlException(answer.statusCode(), answer.body());
			}
			return answer.body();
		} catch (IOException e) {
			throw new java.io.UncheckedIOException(e);
		} catch (InterruptedException e) {
			Thread.currentThread().interrupt();
			throw new IllegalStateException("interrupted", e);
		}
	}

	public String info() { return call("GET", "info", null); }

	public String tables() { return call("GET", "tables", null); }

	/** A page of items; cursor is that of the page before, or null. */
	public String items(String table, int limit, String cursor) {
		return call("GET", "items/" + part(table) + "?limit=" + limit + (cursor == null ? "" : "&cursor=" + part(cursor)), null);
	}

	/** The streams of DynamoDB's tables, and the Bigtable tables that have a change stream. */
	public String streams() { return call("GET", "streams", null); }

	/** A page of records of a table's latest stream; cursor is that of the page before, or null. */
	public String records(String table, String cursor) {
		return call("GET", "streams/" + part(table) + "/records" + (cursor == null ? "" : "?cursor=" + part(cursor)), null);
	}

	/** A page of records of the change stream of a Bigtable table; cursor is that of the page before, or null. */
	public String changes(String instance, String table, String cursor) {
		return call("GET", "tables/" + part(instance) + "/" + part(table) + "/changes" + (cursor == null ? "" : "?cursor=" + part(cursor)), null);
	}

	/** Puts items: a JSON array of them, in DynamoDB's JSON. */
	public String putItems(String table, String items) { return call("POST", "items/" + part(table), "{\"items\":" + items + "}"); }

	/** Runs an operation of DynamoDB: its response, and the calls of Bigtable that it became. */
	public String query(String operation, String request) {
		return call("POST", "query", "{\"operation\":" + quoted(operation) + ",\"request\":" + request + "}");
	}

	public void reset() { call("POST", "reset", null); }

	public String snapshot(String name) { return call("POST", "snapshots", "{\"name\":" + quoted(name) + "}"); }

	public String restore(String name) { return call("POST", "snapshots/" + part(name) + "/restore", null); }

	public void forget(String name) { call("DELETE", "snapshots/" + part(name), null); }

	/** Lets time pass, such as "25h", and does what is due meanwhile. */
	public String advance(String duration) { return call("POST", "clock", "{\"advance\":" + quoted(duration) + "}"); }

	public String freeze() { return call("POST", "clock", "{\"freeze\":true}"); }

	public String run() { return call("POST", "clock", "{\"run\":true}"); }

	public String gc() { return call("POST", "gc", null); }

	public String ttl() { return call("POST", "ttl", null); }

	/** Lets something go wrong: JSON with the members that docs/control.md lists. */
	public String fault(String fault) { return call("POST", "faults", fault); }

	public String faults() { return call("GET", "faults", null); }

	public void mend() { call("DELETE", "faults", null); }

	public String dump() { return call("GET", "dump", null); }

	public String requests() { return call("GET", "requests", null); }

	private static String part(String name) { return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20"); }

	/** A text as JSON. */
	private static String quoted(String text) {
		StringBuilder out = new StringBuilder("\"");
		for (char c : text.toCharArray()) {
			if (c == '"' || c == '\\' || c < ' ') {
				out.append(String.format("\\u%04x", (int) c));
			} else {
				out.append(c);
			}
		}
		return out.append('"').toString();
	}
}
