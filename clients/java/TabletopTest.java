import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Runs against the server of TABLETOP_CONSOLE_URL: java -cp classes TabletopTest */
public final class TabletopTest {
	private static final Tabletop control = Tabletop.fromEnvironment();
	private static final HttpClient http = HttpClient.newHttpClient();

	public static void main(String[] args) throws Exception {
		control.reset();
		control.query("CreateTable", """
			{"TableName":"orders_java","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"k","KeyType":"HASH"}],
			"AttributeDefinitions":[{"AttributeName":"k","AttributeType":"S"}],
			"StreamSpecification":{"StreamEnabled":true,"StreamViewType":"KEYS_ONLY"}}""");
		control.query("UpdateTimeToLive", """
			{"TableName":"orders_java","TimeToLiveSpecification":{"AttributeName":"ttl","Enabled":true}}""");
		long due = java.time.OffsetDateTime.parse(found("\"now\":\"([^\"]+)\"", control.info())).toEpochSecond() + 24 * 3600;
		StringBuilder items = new StringBuilder("[");
		for (int i = 0; i < 1000; i++) {
			items.append(i == 0 ? "" : ",").append("{\"k\":{\"S\":\"k" + i + "\"},\"ttl\":{\"N\":\"" + due + "\"}}");
		}
		control.putItems("orders_java", items + "]");
		equal("items", 1000, count());
		equal("the table of the stream", "orders_java", found("\"dynamodb\":\\[\\{\"table\":\"([^\"]+)\"", control.streams()));
		equal("records", 1000, records());
		try {
			control.changes("tabletop", "none", null);
			throw new AssertionError("changes of no table were read");
		} catch (Tabletop.ControlException e) {
			equal("status", 404, e.status);
		}
		control.snapshot("all");
		for (int i = 0; i < 1000; i += 2) {
			control.query("DeleteItem", "{\"TableName\":\"orders_java\",\"Key\":{\"k\":{\"S\":\"k" + i + "\"}}}");
		}
		equal("items left", 500, count());
		control.restore("all");
		equal("items back", 1000, count());

		control.fault("{\"door\":\"dynamodb\",\"method\":\"GetItem\",\"effect\":\"fail\",\"code\":\"InternalServerError\",\"times\":2}");
		equal("statuses", List.of(500, 500, 200), List.of(getItem(), getItem(), getItem()));
		equal("hits", "2", found("\"hits\":(\\d+)", control.faults()));
		control.mend();

		equal("dump has items", true, control.dump().contains("k0"));
		control.advance("25h");
		control.ttl();
		equal("items that did not expire", 0, count());
		equal("dump has items", false, control.dump().contains("k0"));
		try {
			control.restore("none");
			throw new AssertionError("a snapshot that nobody took was restored");
		} catch (Tabletop.ControlException e) {
			equal("status", 404, e.status);
		}
		control.forget("all");
		try {
			new Tabletop(null, null);
			throw new AssertionError("a client of no server was made");
		} catch (IllegalArgumentException e) {
			equal("it says what to set", true, e.getMessage().contains("TABLETOP_CONSOLE_URL"));
		}
		System.out.println("ok");
	}

	private static int count() { return count(cursor -> control.items("orders_java", 500, cursor)); }

	private static int records() { return count(cursor -> control.records("orders_java", cursor)); }

	private static int count(java.util.function.UnaryOperator<String> pages) {
		int n = 0;
		for (String cursor = null; ; ) {
			String page = pages.apply(cursor);
			Matcher keys = Pattern.compile("\"k\":\\{").matcher(page);
			while (keys.find()) {
				n++;
			}
			cursor = found("\"cursor\":\"([^\"]+)\"", page);
			if (cursor == null) {
				return n;
			}
		}
	}

	private static String found(String pattern, String text) {
		Matcher m = Pattern.compile(pattern).matcher(text);
		return m.find() ? m.group(1) : null;
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
