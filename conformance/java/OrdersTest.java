import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.Query;
import com.google.cloud.bigtable.data.v2.models.TableId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BillingMode;
import software.amazon.awssdk.services.dynamodb.model.KeyType;
import software.amazon.awssdk.services.dynamodb.model.ScalarAttributeType;

/** Tests in the style of users of clients/java/TabletopExtension.java, with the official clients; JUnit runs them from TABLETOP_BINARY. */
@ExtendWith(TabletopExtension.class)
class OrdersTest {
  static Tabletop.Server first;
  static DynamoDbClient dynamodb;

  @BeforeAll
  static void client(Tabletop.Server tabletop) {
    first = tabletop;
    var credentials = StaticCredentialsProvider.create(AwsBasicCredentials.create(tabletop.accessKeyId(), tabletop.secretAccessKey()));
    dynamodb = DynamoDbClient.builder().httpClientBuilder(UrlConnectionHttpClient.builder()).endpointOverride(tabletop.dynamodb())
        .region(Region.of(tabletop.region())).credentialsProvider(credentials).build();
  }

  @AfterAll
  static void close() {
    dynamodb.close();
  }

  @BeforeEach
  @SuppressWarnings("unchecked") // the SDK's own array of consumers
  void table() { // the extension has removed that of the test before
    dynamodb.createTable(t -> t.tableName("orders").billingMode(BillingMode.PAY_PER_REQUEST)
        .keySchema(k -> k.attributeName("id").keyType(KeyType.HASH))
        .attributeDefinitions(a -> a.attributeName("id").attributeType(ScalarAttributeType.S)));
  }

  @RepeatedTest(2)
  void eachBeginsWithoutItemsAndFaults(Tabletop.Server tabletop) {
    assertSame(first, tabletop);
    assertEquals(List.of(), tabletop.items("orders").toList());
    assertEquals(List.of(), tabletop.faults());
    tabletop.putItems("orders", List.of(Map.of("id", Map.of("S", "a"), "raw", Map.of("B", new byte[] {-1}))));
    var got = dynamodb.getItem(g -> g.tableName("orders").key(Map.of("id", AttributeValue.fromS("a")))).item();
    assertEquals(Map.of("id", AttributeValue.fromS("a"), "raw", AttributeValue.fromB(SdkBytes.fromByteArray(new byte[] {-1}))), got);
    tabletop.fault(Map.of("endpoint", "bigtable", "method", "MutateRow", "effect", "fail", "code", "UNAVAILABLE"));
  }

  @Test
  void rows(Tabletop.Server tabletop) throws Exception {
    dynamodb.putItem(p -> p.tableName("orders").item(Map.of("id", AttributeValue.fromS("a"))));
    var settings = BigtableDataSettings.newBuilderForEmulator(tabletop.bigtablePort()).setProjectId(tabletop.project()).setInstanceId(tabletop.instance()).build();
    try (var data = BigtableDataClient.create(settings)) {
      var keys = new ArrayList<String>();
      data.readRows(Query.create(TableId.of(tabletop.bigtableTable("orders")))).forEach(row -> keys.add(row.getKey().toStringUtf8()));
      assertEquals(List.of("a"), keys);
    }
  }
}

/** The server of an extension with flags. */
class OrdersWithFlagsTest {
  @RegisterExtension
  static final TabletopExtension EXTENSION = new TabletopExtension("--instance", "orders");

  @Test
  void anotherServer(Tabletop control, Tabletop.Server tabletop) {
    assertSame(tabletop, control);
    assertNotSame(OrdersTest.first, tabletop);
    assertEquals("orders", tabletop.instance());
  }
}

/** Two tests that JUnit runs at the same time: the reset of one would remove the tables of the other. */
class ParallelTest {
  static final CountDownLatch over = new CountDownLatch(1);
  static final AtomicInteger inside = new AtomicInteger();

  @ExtendWith(TabletopExtension.class)
  static class AtOnce {
    @Test void a() throws Exception { meet(); }

    @Test void b() throws Exception { meet(); }

    private static void meet() throws Exception {
      if (inside.incrementAndGet() == 2) {
        over.countDown();
      }
      over.await();
    }
  }

  @Test
  void theSecondFails() {
    var request = LauncherDiscoveryRequestBuilder.request().selectors(DiscoverySelectors.selectClass(AtOnce.class))
        .configurationParameter("junit.jupiter.execution.parallel.enabled", "true")
        .configurationParameter("junit.jupiter.execution.parallel.mode.default", "concurrent")
        .configurationParameter("junit.jupiter.execution.parallel.config.strategy", "fixed")
        .configurationParameter("junit.jupiter.execution.parallel.config.fixed.parallelism", "2").build();
    var summary = new SummaryGeneratingListener();
    LauncherFactory.create().execute(request, summary, new TestExecutionListener() {
      @Override public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        if (test.isTest()) {
          over.countDown();
        }
      }
    });
    var failures = summary.getSummary().getFailures();
    assertEquals(1, failures.size());
    var text = failures.get(0).getException().getMessage();
    assertEquals(true, text.contains("AtOnce.a()") && text.contains("AtOnce.b()") && text.contains("use one server at the same time"), text);
  }
}
