// Tests the control API by its client, and the official clients of both endpoints, unchanged, against a running
// `tabletop serve`: a snapshot, time to live, and a fault that a client survives.
//
//     java -cp CLASSPATH Control PATH-TO-TABLETOP
//
// Exits 0 when all that holds.

import com.google.cloud.bigtable.admin.v2.BigtableTableAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminSettings;
import com.google.cloud.bigtable.admin.v2.models.CreateTableRequest;
import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.Query;
import com.google.cloud.bigtable.data.v2.models.RowMutation;
import com.google.cloud.bigtable.data.v2.models.TableId;
import java.io.BufferedReader;
import java.net.URI;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BillingMode;
import software.amazon.awssdk.services.dynamodb.model.KeyType;
import software.amazon.awssdk.services.dynamodb.model.ScalarAttributeType;
import software.amazon.awssdk.services.dynamodb.model.WriteRequest;

public class Control {
  static final String TABLE = "java-control";

  public static void main(String[] args) throws Exception {
    java.util.logging.Logger.getLogger("").setLevel(java.util.logging.Level.OFF); // otherwise the clients log failed calls
    Process server = new ProcessBuilder(args[0], "serve", "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0")
        .redirectError(ProcessBuilder.Redirect.INHERIT).start();
    int code = 1;
    try {
      run(exports(server.inputReader()));
      code = 0;
      System.out.println("ok    control");
    } catch (Throwable t) {
      t.printStackTrace();
    } finally {
      server.destroy(); // SIGTERM
      if (!server.waitFor(60, TimeUnit.SECONDS) || server.exitValue() != 0) {
        System.err.println("the server did not stop well: " + server);
        server.destroyForcibly();
        code = 1;
      }
    }
    System.exit(code);
  }

  // exports returns the lines for export that a server prints until it is ready.
  static Map<String, String> exports(BufferedReader lines) throws Exception {
    var found = new HashMap<String, String>();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      Matcher m = Pattern.compile("export (\\w+)=(\\S+)").matcher(line);
      if (m.matches()) {
        found.put(m.group(1), m.group(2));
      }
      if (line.startsWith("# ready")) {
        return found;
      }
    }
    throw new IllegalStateException("the server ended before it was ready");
  }

  static void run(Map<String, String> at) throws Exception {
    var control = new Tabletop(at.get("TABLETOP_CONSOLE_URL"), at.get("TABLETOP_CONSOLE_TOKEN"));
    int port = URI.create("tcp://" + at.get("BIGTABLE_EMULATOR_HOST")).getPort();
    try (var dynamodb = DynamoDbClient.builder().httpClientBuilder(UrlConnectionHttpClient.builder()).endpointOverride(URI.create(at.get("AWS_ENDPOINT_URL_DYNAMODB"))).region(Region.US_EAST_1)
            .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("tabletop", "tabletop"))).build();
        var data = BigtableDataClient.create(BigtableDataSettings.newBuilderForEmulator(port).setProjectId("tabletop").setInstanceId("tabletop").build());
        var admin = BigtableTableAdminClient.create(BigtableTableAdminSettings.newBuilderForEmulator(port).setProjectId("tabletop").setInstanceId("tabletop").build())) {
      snapshots(control, dynamodb, data);
      faults(control, admin, data);
    }
  }

  @SuppressWarnings("unchecked") // the SDK's own array of consumers
  static void snapshots(Tabletop control, DynamoDbClient dynamodb, BigtableDataClient data) {
    dynamodb.createTable(t -> t.tableName(TABLE).billingMode(BillingMode.PAY_PER_REQUEST)
        .keySchema(k -> k.attributeName("pk").keyType(KeyType.HASH))
        .attributeDefinitions(a -> a.attributeName("pk").attributeType(ScalarAttributeType.S)));
    dynamodb.updateTimeToLive(t -> t.tableName(TABLE).timeToLiveSpecification(s -> s.attributeName("ttl").enabled(true)));
    String due = String.valueOf(Instant.parse(control.clock().get("now").text()).getEpochSecond() + 24 * 3600);
    var items = new ArrayList<Map<String, ?>>(List.of(Map.of("pk", Map.of("S", "kept"))));
    for (int i = 1; i < 1000; i++) {
      items.add(Map.of("pk", Map.of("S", key(i)), "ttl", Map.of("N", due)));
    }
    control.putItems(TABLE, items);
    String under = control.bigtableTable(TABLE);

    both("items", 1000, dynamodb, data, under);
    control.snapshot("all");
    for (int i = 0; i < 1000; i += 50) {
      var gone = new ArrayList<WriteRequest>();
      for (int n = 0; n < 25; n++) {
        var pk = Map.of("pk", AttributeValue.fromS(key(i + 2 * n)));
        gone.add(WriteRequest.builder().deleteRequest(d -> d.key(pk)).build());
      }
      dynamodb.batchWriteItem(b -> b.requestItems(Map.of(TABLE, gone)));
    }
    both("items left", 500, dynamodb, data, under);
    control.restore("all");
    both("items that are back", 1000, dynamodb, data, under);

    control.advance("25h");
    control.ttl();
    both("items that do not expire", 1, dynamodb, data, under);
    String dump = control.dump(under);
    equal("the dump has the one that is kept", true, dump.contains("kept"));
    equal("the dump has one that expired", false, dump.contains("k001"));
  }

  // faults: the official client retries.
  static void faults(Tabletop control, BigtableTableAdminClient admin, BigtableDataClient data) {
    admin.createTable(CreateTableRequest.of("java-faults").addFamily("f"));
    control.fault(Map.of("endpoint", "bigtable", "method", "MutateRow", "effect", "fail", "code", "UNAVAILABLE", "times", 2));
    data.mutateRow(RowMutation.create(TableId.of("java-faults"), "r").setCell("f", "q", 1_000_000, "v"));
    equal("what was written", "v", data.readRow(TableId.of("java-faults"), "r").getCells("f", "q").get(0).getValue().toStringUtf8());
    equal("hits", 2L, control.faults().get(0).get("hits").number());
    var statuses = control.requests(Map.of("operation", "MutateRow", "internal", false, "table", "java-faults")).stream().map(r -> r.get("status").text()).toList();
    equal("attempts, the last first", List.of("OK", "Unavailable", "Unavailable"), statuses);
    control.removeFaults();
  }

  static String key(int i) {
    return i == 0 ? "kept" : String.format("k%03d", i);
  }

  // both compares the data of the endpoints.
  static void both(String what, int want, DynamoDbClient dynamodb, BigtableDataClient data, String under) {
    equal(what + " by DynamoDB", want, (int) dynamodb.scanPaginator(s -> s.tableName(TABLE)).items().stream().count());
    int rows = 0;
    for (var row : data.readRows(Query.create(TableId.of(under)))) {
      rows++;
    }
    equal(what + " by Bigtable", want, rows);
  }

  static void equal(String what, Object want, Object got) {
    if (!want.equals(got)) {
      throw new AssertionError(what + ": got " + got + ", want " + want);
    }
  }
}
