// Tests the control API by its client, and the official clients of both endpoints, unchanged, against a running
// `tabletop serve`: a snapshot, time to live, a fault that a client survives, and SQL.
//
//     java -cp CLASSPATH Control PATH-TO-TABLETOP
//
// Exits 0 when all that holds.

import com.google.cloud.Date;
import com.google.cloud.bigtable.admin.v2.BigtableInstanceAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableInstanceAdminSettings;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminSettings;
import com.google.cloud.bigtable.admin.v2.models.CreateLogicalViewRequest;
import com.google.cloud.bigtable.admin.v2.models.CreateMaterializedViewRequest;
import com.google.cloud.bigtable.admin.v2.models.CreateTableRequest;
import com.google.cloud.bigtable.admin.v2.models.UpdateMaterializedViewRequest;
import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.MaterializedViewId;
import com.google.cloud.bigtable.data.v2.models.Query;
import com.google.cloud.bigtable.data.v2.models.RowMutation;
import com.google.cloud.bigtable.data.v2.models.TableId;
import com.google.cloud.bigtable.data.v2.models.sql.SqlType;
import com.google.protobuf.ByteString;
import java.io.BufferedReader;
import java.net.URI;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
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
      admin.createTable(CreateTableRequest.of("java-sql").addFamily("f"));
      sql(data, port);
      admin.createTable(CreateTableRequest.of("java-view").addFamily("f"));
      view(data, admin, port);
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

  // sql: parameters and results of each type, errors, and a logical view.
  static void sql(BigtableDataClient data, int port) throws Exception {
    for (int n = 0; n < 3; n++) {
      String key = List.of("a#1", "a#2", "b#1").get(n);
      var number = ByteString.copyFrom(ByteBuffer.allocate(8).putLong(n).flip());
      data.mutateRow(RowMutation.create(TableId.of("java-sql"), key).setCell("f", bytes("n"), 1_000_000, number).setCell("f", bytes("q"), 2_000_000, bytes(key + "!")));
    }
    var bytesArray = SqlType.arrayOf(SqlType.bytes());
    var types = new HashMap<String, SqlType<?>>(Map.of("b", SqlType.bytes(), "s", SqlType.string(), "i", SqlType.int64(), "f", SqlType.float64(), "g", SqlType.float32(),
        "x", SqlType.bool(), "t", SqlType.timestamp(), "d", SqlType.date(), "ab", bytesArray, "none", SqlType.string()));
    var noon = Instant.parse("2024-02-29T12:00:00.000001Z");
    var day = Date.fromYearMonthDay(2024, 2, 29);
    var array = new ArrayList<ByteString>(List.of(bytes("a#2"), bytes("b#1")));
    array.add(null);
    var statement = data.prepareStatement("SELECT @b AS b, @s AS s, @i AS i, @f AS f, @g AS g, @x AS x, @t AS t, @d AS d, @ab AS ab, @none AS none", types);
    try (var row = data.executeQuery(statement.bind().setBytesParam("b", ByteString.copyFrom(new byte[] {-1, 0})).setStringParam("s", "é").setLongParam("i", Long.MIN_VALUE).setDoubleParam("f", 0.5)
        .setFloatParam("g", 0.25f).setBooleanParam("x", true).setTimestampParam("t", noon).setDateParam("d", day).setListParam("ab", array, bytesArray).setStringParam("none", null).build())) {
      equal("a row", true, row.next());
      equal("BYTES", ByteString.copyFrom(new byte[] {-1, 0}), row.getBytes("b"));
      equal("STRING", "é", row.getString("s"));
      equal("INT64", Long.MIN_VALUE, row.getLong("i"));
      equal("FLOAT64", 0.5, row.getDouble("f"));
      equal("FLOAT32", 0.25f, row.getFloat("g"));
      equal("BOOL", true, row.getBoolean("x"));
      equal("TIMESTAMP", noon, row.getTimestamp("t"));
      equal("DATE", day, row.getDate("d"));
      equal("ARRAY", array, row.getList("ab", bytesArray));
      equal("NULL", true, row.isNull("none"));
      equal("another row", false, row.next());
    }

    statement = data.prepareStatement("SELECT _key, f, TO_INT64(f['n']) AS n, STRUCT(f['q'] AS q, [1, NULL] AS a) AS s, f['none'] AS none FROM `java-sql` WHERE _key IN UNNEST(@ab) ORDER BY _key",
        Map.of("ab", bytesArray));
    try (var row = data.executeQuery(statement.bind().setListParam("ab", array, bytesArray).build())) {
      equal("a row of the table", true, row.next());
      equal("_key", bytes("a#2"), row.getBytes("_key"));
      equal("a map", bytes("a#2!"), row.getMap("f", SqlType.mapOf(SqlType.bytes(), SqlType.bytes())).get(bytes("q")));
      equal("a number", 1L, row.getLong("n"));
      equal("a field", bytes("a#2!"), row.getStruct("s").getBytes("q"));
      equal("an array", Arrays.asList(1L, null), row.getStruct("s").getList("a", SqlType.arrayOf(SqlType.int64())));
      equal("a missing column", true, row.isNull("none"));
      equal("the second row", true, row.next());
      equal("a third row", false, row.next());
    }
    statement = data.prepareStatement("SELECT f FROM `java-sql`(with_history => TRUE) LIMIT 1", Map.of());
    try (var row = data.executeQuery(statement.bind().build())) {
      equal("a row with history", true, row.next());
      equal("a version", Instant.ofEpochSecond(2), row.getMap("f", SqlType.historicalMap()).get(bytes("q")).get(0).getTimestamp("timestamp"));
    }
    refused("Unrecognized name: nothing", () -> data.prepareStatement("SELECT nothing FROM `java-sql`", Map.of()));
    refused("division by zero", () -> count(data, "SELECT DIV(1, TO_INT64(f['n'])) AS x FROM `java-sql`"));

    try (var instances = BigtableInstanceAdminClient.create(BigtableInstanceAdminSettings.newBuilderForEmulator(port).setProjectId("tabletop").build())) {
      instances.createLogicalView(CreateLogicalViewRequest.of("tabletop", "java-users").setQuery("SELECT SPLIT(_key, '#')[0] AS user, COUNT(*) AS n FROM `java-sql` GROUP BY user"));
      equal("rows of a view", 2, count(data, "SELECT user, n FROM `java-users` ORDER BY user"));
      instances.deleteLogicalView("tabletop", "java-users");
    }
    refused("Table not found: java-users", () -> count(data, "SELECT * FROM `java-users`"));
  }

  // view: a materialized view is created, listed, protected and deleted; reads by key and by SQL follow its table.
  static void view(BigtableDataClient data, BigtableTableAdminClient admin, int port) throws Exception {
    var query = "SELECT f['city'] AS city, _key AS k FROM `java-view` ORDER BY city, k";
    var view = MaterializedViewId.of("java-cities");
    city(data, "a#1", "Rome");
    city(data, "a#2", "Oslo");
    try (var instances = BigtableInstanceAdminClient.create(BigtableInstanceAdminSettings.newBuilderForEmulator(port).setProjectId("tabletop").build())) {
      var created = instances.createMaterializedView(CreateMaterializedViewRequest.of("tabletop", "java-cities").setQuery(query).setDeletionProtection(true));
      equal("the created view", "java-cities " + query + " true", created.getId() + " " + created.getQuery() + " " + created.isDeletionProtected());
      equal("the view", created, instances.getMaterializedView("tabletop", "java-cities"));
      equal("the views", List.of(created), instances.listMaterializedViews("tabletop"));
      equal("keys", List.of("Oslo\0\1a#2", "Rome\0\1a#1"), keys(data, view));
      city(data, "a#1", "Bern");
      equal("keys after a write", List.of("Bern\0\1a#1", "Oslo\0\1a#2"), keys(data, view));
      equal("a cell", "a#2", data.readRow(view, "Oslo\0\1a#2").getCells("default", "k").get(0).getValue().toStringUtf8());
      equal("the end of the samples", ByteString.EMPTY, data.sampleRowKeys(view).get(data.sampleRowKeys(view).size() - 1).getKey());
      equal("rows by SQL", 1, count(data, "SELECT k FROM `java-cities` WHERE city = 'Bern'"));
      refused("FAILED_PRECONDITION", () -> admin.deleteTable("java-view"));
      refused("FAILED_PRECONDITION", () -> instances.deleteMaterializedView("tabletop", "java-cities"));
      equal("protection", false, instances.updateMaterializedView(UpdateMaterializedViewRequest.of(created).setDeletionProtection(false)).isDeletionProtected());
      instances.deleteMaterializedView("tabletop", "java-cities");
      refused("NOT_FOUND", () -> instances.getMaterializedView("tabletop", "java-cities"));
    }
    admin.deleteTable("java-view");
  }

  static void city(BigtableDataClient data, String key, String city) {
    data.mutateRow(RowMutation.create(TableId.of("java-view"), key).setCell("f", "city", 1_000_000, city));
  }

  static List<String> keys(BigtableDataClient data, MaterializedViewId view) {
    var keys = new ArrayList<String>();
    for (var row : data.readRows(Query.create(view))) {
      keys.add(row.getKey().toStringUtf8());
    }
    return keys;
  }

  static ByteString bytes(String text) {
    return ByteString.copyFromUtf8(text);
  }

  static int count(BigtableDataClient data, String query) {
    int rows = 0;
    try (var row = data.executeQuery(data.prepareStatement(query, Map.of()).bind().build())) {
      while (row.next()) {
        rows++;
      }
    }
    return rows;
  }

  static void refused(String text, Runnable call) {
    try {
      call.run();
    } catch (RuntimeException e) {
      equal("the error " + e, true, e.toString().contains(text));
      return;
    }
    throw new AssertionError("there was no error " + text);
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
