import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

/**
 * Runs against the servers of TABLETOP_CONSOLE_URL and, with its token, TABLETOP_SECOND_URL, and then {@link StartTest}:
 * java -cp classes TabletopTest
 */
public final class TabletopTest {
	private static final String TABLE = """
		{"TableName":"orders_java","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],
		"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}],
		"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}}""";
	private static final Tabletop control = Tabletop.fromEnvironment();
	private static final HttpClient http = HttpClient.newHttpClient();

	public static void main(String[] args) throws Exception {
		json();
		acceptance();
		allOfCtl();
		rows();
		parallelWorkers();
		unreachable();
		StartTest.main(args);
	}

	private static void acceptance() throws Exception {
		control.reset();
		control.query("CreateTable", TABLE);
		control.query("UpdateTimeToLive", """
			{"TableName":"orders_java","TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}""");
		long due = control.now().getEpochSecond() + 24 * 3600;
		var items = IntStream.range(0, 300).mapToObj(i -> Map.of("k", Map.of("S", "k" + i), "ttl", Map.of("N", String.valueOf(due)))).toList();
		equal("items that were put", 300L, control.putItems("orders_java", items));
		equal("items", 300L, count());
		String cursor = control.call("GET", "items/orders_java", null).get("cursor").text();
		equal("items behind the first", 200L, control.items("orders_java", Map.of("cursor", cursor, "limit", 70)).count());
		equal("the table of the stream", "orders_java", control.streams().get("dynamodb").get(0).get("table").text());
		equal("records", 300L, control.records("orders_java", Map.of("limit", 70)).map(r -> r.get("dynamodb").get("Keys").toString()).distinct().count());
		String rows = over();
		fails("changes of a table without a stream", "no_stream", () -> control.changes(rows));
		control.snapshot("all");
		for (int i = 0; i < 300; i += 2) {
			control.query("DeleteItem", "{\"TableName\":\"orders_java\",\"Key\":{\"k\":{\"S\":\"k" + i + "\"}}}");
		}
		equal("items left", 150L, count());
		control.restore("all");
		equal("items back", 300L, count());

		control.fault(Map.of("endpoint", "dynamodb", "method", "GetItem", "effect", "fail", "code", "InternalServerError", "times", 2));
		equal("statuses", List.of(500, 500, 200), List.of(getItem(), getItem(), getItem()));
		equal("hits", 2L, control.faults().get(0).get("hits").number());
		control.removeFaults();
		control.fault(Map.of("endpoint", "dynamodb", "method", "*", "effect", "fail", "code", "TransactionCanceledException", "reasons", List.of("ConditionalCheckFailed")));
		fails("canceled", "TransactionCanceledException", () -> control.query("TransactWriteItems", """
			{"TransactItems":[{"Delete":{"TableName":"orders_java","Key":{"k":{"S":"k0"}}}}]}"""));
		control.removeFaults();

		equal("dump has items", true, control.dump().contains("k0"));
		control.advance("25h");
		control.ttl();
		equal("items that did not expire", 0L, count());
		equal("dump has items", false, control.dump().contains("k0"));
		fails("a snapshot that nobody took", "not_found", () -> control.restore("none"));
		control.forget("all");
	}

	/** The features of tabletop ctl that acceptance does not use. */
	private static void allOfCtl() {
		control.reset();
		equal("frozen", true, control.freeze().get("frozen").bool());
		Instant before = control.now();
		equal("an hour later", before.plusSeconds(3600), Instant.parse(control.set(before.plusSeconds(3600)).get("now").text()));
		fails("the time before", "bad_request", () -> control.set(before));
		equal("frozen", false, control.run().get("frozen").bool());

		control.query("CreateTable", TABLE);
		control.query("UpdateContributorInsights", Map.of("TableName", "orders_java", "ContributorInsightsAction", "ENABLE"));
		control.snapshot("first");
		control.putItems("orders_java", "[{\"k\":{\"S\":\"a\"}}]");
		control.snapshot("second/of two");
		equal("snapshots", List.of("first", "second/of two"), control.snapshots().stream().map(s -> s.get("name").text()).filter(List.of("first", "second/of two")::contains).toList());
		for (var changes : List.of(control.changesSince("first"), control.changesSince("first", "second/of two"))) {
			var items = new ArrayList<String>();
			for (var table : changes.get("tables")) {
				for (var row : table.get("shown")) {
					for (var item : row.get("items")) {
						items.add(item.get("change").text() + " " + item.get("after"));
					}
				}
			}
			equal("changes", List.of("added {\"k\":{\"S\":\"a\"}}"), items);
		}
		control.forget("first");
		control.forget("second/of two");

		equal("rows", List.of("a"), control.rows("tabletop", over(), Map.of("prefix", "a")).map(r -> r.get("key").get("text").text()).toList());
		equal("all rows", 1L, control.rows(over()).count());
		equal("the dump of a table has its row", true, control.dump(over()).contains("a"));
		control.query("GetItem", Map.of("TableName", "orders_java", "Key", Map.of("k", Map.of("S", "a"))));
		equal("the key that is used most", "{\"k\":{\"S\":\"a\"}}", control.insights("orders_java").get("PKC").get(0).get("key").toString());
		fails("insights of no index", "ValidationException", () -> control.insights("orders_java", "none"));
		var last = control.requests(Map.of("operation", "GetItem", "table", "orders_java", "limit", 1));
		equal("requests", 1, last.size());
		equal("the call of one", "ReadRows", control.request(last.get(0).get("id").number()).get("calls").get(0).get("operation").text());
		equal("all requests have it", true, control.requests().size() > 1);

		var ended = control.fault(Map.of("endpoint", "bigtable", "method", "ReadRows", "effect", "fail", "code", "UNAVAILABLE"));
		var left = control.fault("{\"endpoint\":\"dynamodb\",\"method\":\"GetItem\",\"effect\":\"fail\",\"code\":\"Throttling\"}");
		control.removeFault(ended);
		equal("faults", List.of(left.toString()), control.faults().stream().map(Object::toString).toList());
		control.removeFaults();
		equal("faults", 0, control.faults().size());
		equal("cells", 0L, control.gc());
		equal("views", 0, control.views().size());
		control.refreshViews();
		fails("a test that is not paused", "not_paused", control::resume);

		String own = control.call("GET", "migrate/s7-blob", null).get("mapping").text();
		for (var plan : List.of(control.plan("s7-blob"), control.plan("s7-blob", own))) {
			equal("items of the plan", 3L, plan.get("tables").get(0).get("items").number());
		}
		for (var report : List.of(control.verify("s7-blob"), control.verify("s7-blob", own))) {
			equal("differences", 0L, report.get("differences").number());
		}
		for (var report : List.of(control.lint("s7-blob"), control.lint("s7-blob", own))) {
			equal("there are findings", false, report.get("lint").isNull());
		}
		fails("no mapping", "bad_request", () -> control.verify("s7-blob", "no mapping"));
	}

	/** Rows, families and tables of Bigtable, and its heat. */
	private static void rows() {
		control.reset();
		control.query("CreateTable", TABLE);
		String table = over();
		var families = control.families(table, "[{\"id\":\"cf\",\"create\":{\"gcRule\":{\"maxNumVersions\":1}}}]").get("families");
		equal("the new family", true, families.list().stream().anyMatch(f -> f.get("name").text().equals("cf") && f.get("gc").text().equals("maxversions=1")));
		var cell = Map.of("family", "cf", "qualifier", Tabletop.bytes(new byte[] {-1}), "value", Tabletop.bytes("v"), "timestamp", 1000);
		var keys = List.of(Tabletop.bytes("a1"), Tabletop.bytes(new byte[] {'a', -2}), Tabletop.bytes("b"), Tabletop.bytes("c"));
		equal("rows that were written", 4L, control.putRows(table, keys.stream().map(key -> Map.of("key", key, "cells", List.of(cell))).toList()));
		control.putRows(table, List.of(Map.of("key", Tabletop.bytes("b"), "delete", true)));
		equal("rows", List.of("YTE=", "Yf4=", "Yw=="), keys(table));
		var got = control.rows(table).findFirst().orElseThrow().get("cells").get(0);
		equal("a cell", "cf /w== v 1000", got.get("family").text() + " " + got.get("qualifier").get("base64").text() + " " + got.get("value").get("text").text() + " " + got.get("timestamp").number());
		var e = fails("a family that is not there", "NotFound", () -> control.putRows(table,
			"[{\"key\":{\"text\":\"a\"},\"cells\":[{\"family\":\"none\",\"qualifier\":{\"text\":\"q\"},\"value\":{\"text\":\"v\"}}]}]"));
		equal("it speaks of gRPC", false, e.text.contains("rpc error"));

		control.query("GetItem", Map.of("TableName", "orders_java", "Key", Map.of("k", Map.of("S", "a1"))));
		equal("it is counted", true, control.heat().toString().contains(table));
		equal("reads", 1L, control.heat("tabletop", table, Map.of("last", "1h", "step", "1m")).get("keys").list().stream().mapToLong(k -> k.get("reads").number()).sum());
		equal("clusters", 1, control.heat(table).get("clusters").list().size());

		control.drop("tabletop", table, new byte[] {'a', -2});
		equal("rows left", List.of("YTE=", "Yw=="), keys(table));
		control.drop(table, "c");
		equal("rows left", List.of("YTE="), keys(table));
		control.empty(table);
		equal("rows left", List.of(), keys(table));
		control.deleteTable(table);
		equal("the table", false, control.tables().get("bigtable").toString().contains("\"" + table + "\""));
		control.reset();
	}

	private static List<String> keys(String table) { return control.rows(table).map(r -> r.get("key").get("base64").text()).toList(); }

	/** Two concurrent workers with a server each: items, snapshots, clock and faults are separate. */
	private static void parallelWorkers() throws Exception {
		var servers = List.of(control, new Tabletop(System.getenv("TABLETOP_SECOND_URL"), System.getenv("TABLETOP_SECOND_TOKEN")));
		var together = new CyclicBarrier(servers.size());
		var pool = Executors.newFixedThreadPool(servers.size());
		try {
			var results = new ArrayList<Future<Long>>();
			for (int worker = 0; worker < servers.size(); worker++) {
				int number = worker;
				results.add(pool.submit(() -> work(servers.get(number), number, together)));
			}
			for (int worker = 0; worker < servers.size(); worker++) {
				equal("hours of worker " + worker, 5L * (1 + worker), results.get(worker).get(600, TimeUnit.SECONDS));
			}
		} finally {
			pool.shutdownNow();
		}
	}

	/** Runs five tests, and returns the number of hours that passed. */
	private static long work(Tabletop server, int worker, CyclicBarrier together) throws Exception {
		server.reset();
		server.query("CreateTable", TABLE);
		server.snapshot("base");
		Instant before = server.now();
		for (int test = 0; test < 5; test++) {
			String key = "worker" + worker + "/" + test;
			together.await(600, TimeUnit.SECONDS);
			server.restore("base");
			server.putItems("orders_java", List.of(Map.of("k", Map.of("S", key))));
			server.advance(1 + worker + "h");
			server.fault(Map.of("endpoint", "dynamodb", "method", "GetItem", "effect", "fail", "code", "Throttling", "times", 1 + worker));
			together.await(600, TimeUnit.SECONDS);
			equal("items of worker " + worker, List.of(key), server.items("orders_java").map(i -> i.get("k").get("S").text()).toList());
			equal("faults of worker " + worker, List.of(1L + worker), server.faults().stream().map(f -> f.get("times").number()).toList());
			server.removeFaults();
		}
		server.forget("base");
		return Duration.between(before, server.now()).toHours();
	}

	private static void unreachable() throws Exception {
		for (String url : List.of("http://127.0.0.1:65535", System.getenv("AWS_ENDPOINT_URL_DYNAMODB"), "http://" + System.getenv("BIGTABLE_EMULATOR_HOST"))) {
			var e = fails(url, "unreachable", () -> new Tabletop(url, "token").info());
			equal("it names the URL", true, e.getMessage().startsWith("no control API responds at " + url));
			equal("it says what to do", true, e.remedy.contains("serve --console"));
			equal("status", 0, e.status);
		}
		var e = fails("a port file that is gone", "unreachable", () -> Tabletop.fromPortFile(Path.of("/none/ports.json"), null, Duration.ZERO));
		equal("it names the file", true, e.getMessage().contains("/none/ports.json"));
		Path ports = Files.createTempFile("ports", ".json");
		try {
			Files.writeString(ports, Tabletop.Json.of(Map.of("console", System.getenv("TABLETOP_CONSOLE_URL"), "token", System.getenv("TABLETOP_CONSOLE_TOKEN"))).toString());
			equal("the server of a port file", control.info().get("dynamodb").text(), Tabletop.fromPortFile(ports).info().get("dynamodb").text());
			Files.writeString(ports, "{\"bigtable\":\"127.0.0.1:1\",\"dynamodb\":null}");
			refused("without --console", () -> Tabletop.fromPortFile(ports));
		} finally {
			Files.delete(ports);
		}
		refused("TABLETOP_CONSOLE_URL", () -> new Tabletop(null, null));
		refused("http://localhost:8088", () -> new Tabletop("localhost:8088", "token"));
	}

	private static void json() {
		for (String text : List.of("{}", "[]", "null", "true", "-1.5", "[1,{\"a\":[false,null,\"\u00e9\\u0022\"]},[]]", "\"\\u000a\\u005c\"")) {
			equal("JSON", text, Tabletop.Json.parse(text).toString());
		}
		equal("escapes and spaces", "[\"\\u000a/\u00e9\",12345678901234567890123456789012345678]",
			Tabletop.Json.parse(" [ \"\\n\\/\\u00e9\" ,\n12345678901234567890123456789012345678 ] ").toString());
		for (String text : List.of("", "{", "[1,", "[1 2]", "{\"a\"}", "{a:1}", "\"a", "nul", "1 2", "\"\\u00zz\"")) {
			refused("", () -> Tabletop.Json.parse(text));
		}
	}

	private static long count() { return control.items("orders_java", Map.of("limit", 70)).count(); }

	/** The Bigtable table with the items. */
	private static String over() { return control.bigtableTable("orders_java"); }

	private static Tabletop.ControlException fails(String what, String code, Runnable call) {
		try {
			call.run();
		} catch (Tabletop.ControlException e) {
			equal(what, code, e.code);
			return e;
		}
		throw new AssertionError(what + ": it did not fail");
	}

	private static void refused(String says, Runnable call) {
		try {
			call.run();
		} catch (IllegalArgumentException e) {
			equal("it says " + says, true, e.getMessage().contains(says));
			return;
		}
		throw new AssertionError(says + ": it was not refused");
	}

	private static int getItem() throws Exception {
		HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("AWS_ENDPOINT_URL_DYNAMODB")))
			.header("X-Amz-Target", "DynamoDB_20120810.GetItem").header("Content-Type", "application/x-amz-json-1.0").header("X-Amz-Date", "20261120T000000Z")
			.header("Authorization", "AWS4-HMAC-SHA256 Credential=tabletop/20261120/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
			.POST(HttpRequest.BodyPublishers.ofString("{\"TableName\":\"orders_java\",\"Key\":{\"k\":{\"S\":\"k1\"}}}")).build();
		return http.send(request, HttpResponse.BodyHandlers.ofString()).statusCode();
	}

	private static void equal(String what, Object want, Object got) {
		if (!want.equals(got)) {
			throw new AssertionError(what + ": got " + got + ", want " + want);
		}
	}
}
