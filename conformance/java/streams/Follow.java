// Tests the Kinesis Client Library with the adapter for DynamoDB Streams, unchanged, against a
// running `tabletop serve`, which also holds its leases:
//
//     java -cp CLASSPATH Follow.java PATH-TO-TABLETOP [CHANGES]
//
// (make conformance-java-streams has the class path of pom.xml beside this file)
//
// CHANGES is the minimal number of written changes; 6,400 by default.
//
// The server keeps its data in a folder; its shards rotate and split. Writers write while
// a worker follows the stream. Halfway the worker is shut down, the server is killed and
// restarted, and another worker continues from the checkpoints of the first. Each change
// must arrive once, those of an item in the order of its writes.
// Exits 0 when that holds.

import com.amazonaws.services.dynamodbv2.streamsadapter.AmazonDynamoDBStreamsAdapterClient;
import com.amazonaws.services.dynamodbv2.streamsadapter.StreamsSchedulerFactory;
import com.amazonaws.services.dynamodbv2.streamsadapter.model.DynamoDBStreamsProcessRecordsInput;
import com.amazonaws.services.dynamodbv2.streamsadapter.polling.DynamoDBStreamsPollingConfig;
import com.amazonaws.services.dynamodbv2.streamsadapter.processor.DynamoDBStreamsShardRecordProcessor;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.cloudwatch.CloudWatchAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbAsyncClient;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeDefinition;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.BillingMode;
import software.amazon.awssdk.services.dynamodb.model.KeySchemaElement;
import software.amazon.awssdk.services.dynamodb.model.KeyType;
import software.amazon.awssdk.services.dynamodb.model.PutItemRequest;
import software.amazon.awssdk.services.dynamodb.model.ScalarAttributeType;
import software.amazon.awssdk.services.dynamodb.model.StreamViewType;
import software.amazon.awssdk.services.dynamodb.streams.DynamoDbStreamsClient;
import software.amazon.kinesis.common.ConfigsBuilder;
import software.amazon.kinesis.common.InitialPositionInStream;
import software.amazon.kinesis.common.InitialPositionInStreamExtended;
import software.amazon.kinesis.coordinator.Scheduler;
import software.amazon.kinesis.exceptions.InvalidStateException;
import software.amazon.kinesis.exceptions.ShutdownException;
import software.amazon.kinesis.lifecycle.events.InitializationInput;
import software.amazon.kinesis.lifecycle.events.LeaseLostInput;
import software.amazon.kinesis.lifecycle.events.ShardEndedInput;
import software.amazon.kinesis.lifecycle.events.ShutdownRequestedInput;
import software.amazon.kinesis.metrics.NullMetricsFactory;
import software.amazon.kinesis.processor.RecordProcessorCheckpointer;
import software.amazon.kinesis.retrieval.polling.PollingConfig;

public class Follow {
  static final Duration PATIENCE = Duration.ofMinutes(5);
  static final int WRITERS = 4;
  static final int ITEMS = 8; // of a writer
  static int writes = 100; // of an item, in each half

  static final StaticCredentialsProvider KEY = StaticCredentialsProvider.create(AwsBasicCredentials.create("key", "secret"));
  static String binary;
  static Path dir;
  static int port;
  static Process server;

  static final Map<String, Integer> seen = new ConcurrentHashMap<>(); // the last change of an item
  static final AtomicInteger changes = new AtomicInteger();
  static final Set<String> shards = ConcurrentHashMap.newKeySet();
  static final AtomicReference<String> wrong = new AtomicReference<>();

  public static void main(String[] args) throws Exception {
    binary = args[0];
    if (args.length > 1) {
      int each = 2 * WRITERS * ITEMS; // changes by one more write of each item
      writes = (Integer.parseInt(args[1]) + each - 1) / each;
    }
    dir = Files.createTempDirectory("tabletop-follow");
    try {
      run();
    } catch (Throwable e) {
      e.printStackTrace();
      System.exit(1);
    } finally {
      if (server != null) {
        server.destroyForcibly().waitFor();
      }
      try (var all = Files.walk(dir)) {
        for (Path p : all.sorted(Comparator.reverseOrder()).toList()) {
          Files.delete(p);
        }
      }
    }
    System.exit(0); // the clients keep threads
  }

  static void serve() throws Exception {
    Path file = dir.resolve("port");
    Files.deleteIfExists(file);
    server = new ProcessBuilder(binary, "serve", "--bigtable", "off", "--dynamodb", "127.0.0.1:" + port, "--data", dir.resolve("data").toString(),
            "--port-file", file.toString(), "--stream-shards", "1,2,4", "--stream-shard-rotation", "20s")
        .redirectOutput(ProcessBuilder.Redirect.DISCARD).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    Instant until = Instant.now().plus(PATIENCE);
    while (!Files.exists(file)) {
      check(server.isAlive() && Instant.now().isBefore(until), "the server is not ready");
      Thread.sleep(10);
    }
    Matcher m = Pattern.compile("\"dynamodb\":\"(?:http://)?([^\"/]*)").matcher(Files.readString(file));
    check(m.find(), "no address in " + Files.readString(file));
    port = URI.create("tcp://" + m.group(1)).getPort();
  }

  static void check(boolean ok, String what) {
    if (!ok) {
      throw new IllegalStateException(what);
    }
  }

  static URI endpoint() {
    return URI.create("http://127.0.0.1:" + port);
  }

  static void run() throws Exception {
    serve();
    DynamoDbClient client = DynamoDbClient.builder().endpointOverride(endpoint()).region(Region.US_EAST_1).credentialsProvider(KEY).build();
    String stream = client.createTable(t -> t.tableName("followed").billingMode(BillingMode.PAY_PER_REQUEST)
            .attributeDefinitions(AttributeDefinition.builder().attributeName("id").attributeType(ScalarAttributeType.S).build())
            .keySchema(KeySchemaElement.builder().attributeName("id").keyType(KeyType.HASH).build())
            .streamSpecification(s -> s.streamEnabled(true).streamViewType(StreamViewType.NEW_IMAGE)))
        .tableDescription().latestStreamArn();

    Instant began = Instant.now();
    for (int half = 1; half <= 2; half++) {
      Scheduler worker = worker(stream, "worker-" + half);
      Thread running = new Thread(worker);
      running.start();
      write(client, (half - 1) * writes);
      await(half * writes);
      check(worker.startGracefulShutdown().get(PATIENCE.toSeconds(), TimeUnit.SECONDS), "the worker did not end well");
      running.join(PATIENCE.toMillis());
      if (half == 1) {
        server.destroyForcibly().waitFor();
        serve();
      }
    }
    check(wrong.get() == null, wrong.get());
    check(changes.get() == 2 * WRITERS * ITEMS * writes, changes.get() + " changes came");
    check(shards.size() > 4, "only the shards " + shards);
    System.out.printf("%d changes of %d shards, each once, in %d s%n", changes.get(), shards.size(), Duration.between(began, Instant.now()).toSeconds());
  }

  static void write(DynamoDbClient client, int from) throws Exception {
    List<Thread> writers = new ArrayList<>();
    for (int w = 0; w < WRITERS; w++) {
      int writer = w;
      writers.add(new Thread(() -> {
        for (int n = from + 1; n <= from + writes; n++) {
          for (int i = 0; i < ITEMS; i++) {
            client.putItem(put("item-" + writer + "-" + i, n));
          }
        }
      }));
    }
    writers.forEach(Thread::start);
    for (Thread t : writers) {
      t.join();
    }
  }

  static PutItemRequest put(String id, int n) {
    return PutItemRequest.builder().tableName("followed")
        .item(Map.of("id", AttributeValue.fromS(id), "n", AttributeValue.fromN("" + n))).build();
  }

  /** Waits until the last change of each item was seen, while changes arrive. */
  static void await(int last) throws Exception {
    Instant until = Instant.now().plus(PATIENCE);
    int came = changes.get();
    while (seen.size() < WRITERS * ITEMS || seen.values().stream().anyMatch(n -> n < last)) {
      check(wrong.get() == null, wrong.get());
      if (changes.get() > came) {
        came = changes.get();
        until = Instant.now().plus(PATIENCE);
      }
      check(Instant.now().isBefore(until), "this is all that came: " + new TreeMap<>(seen));
      Thread.sleep(50);
    }
  }

  static Scheduler worker(String stream, String name) {
    var leases = DynamoDbAsyncClient.builder().endpointOverride(endpoint()).region(Region.US_EAST_1).credentialsProvider(KEY).build();
    var streams = new AmazonDynamoDBStreamsAdapterClient(
        DynamoDbStreamsClient.builder().endpointOverride(endpoint()).region(Region.US_EAST_1).credentialsProvider(KEY).build(), Region.US_EAST_1);
    var metrics = CloudWatchAsyncClient.builder().endpointOverride(endpoint()).region(Region.US_EAST_1).credentialsProvider(KEY).build(); // not used
    var tracker = StreamsSchedulerFactory.createSingleStreamTracker(stream, InitialPositionInStreamExtended.newInitialPosition(InitialPositionInStream.TRIM_HORIZON));
    var configs = new ConfigsBuilder(tracker, "follow", streams, leases, metrics, name, Processor::new);
    PollingConfig polling = new DynamoDBStreamsPollingConfig(streams).idleTimeBetweenReadsInMillis(200);
    return StreamsSchedulerFactory.createScheduler(configs.checkpointConfig(),
        configs.coordinatorConfig().parentShardPollIntervalMillis(500).shardConsumerDispatchPollIntervalMillis(200),
        configs.leaseManagementConfig().shardSyncIntervalMillis(1000).leasesRecoveryAuditorExecutionFrequencyMillis(2000).failoverTimeMillis(2000),
        configs.lifecycleConfig(), configs.metricsConfig().metricsFactory(new NullMetricsFactory()), configs.processorConfig(),
        configs.retrievalConfig().retrievalSpecificConfig(polling), streams);
  }

  static class Processor implements DynamoDBStreamsShardRecordProcessor {
    @Override
    public void initialize(InitializationInput in) {
      shards.add(in.shardId());
    }

    @Override
    public void processRecords(DynamoDBStreamsProcessRecordsInput in) {
      for (var r : in.records()) {
        var image = r.getRecord().dynamodb().newImage();
        String id = image.get("id").s();
        int n = Integer.parseInt(image.get("n").n());
        Integer before = seen.put(id, n);
        changes.incrementAndGet();
        if (n != (before == null ? 0 : before) + 1) {
          wrong.compareAndSet(null, id + ": " + n + " follows " + before);
        }
      }
      if (!in.records().isEmpty()) {
        checkpoint(in.checkpointer());
      }
    }

    @Override
    public void leaseLost(LeaseLostInput in) {}

    @Override
    public void shardEnded(ShardEndedInput in) {
      checkpoint(in.checkpointer());
    }

    @Override
    public void shutdownRequested(ShutdownRequestedInput in) {
      checkpoint(in.checkpointer());
    }

    static void checkpoint(RecordProcessorCheckpointer to) {
      try {
        to.checkpoint();
      } catch (InvalidStateException | ShutdownException e) {
        wrong.compareAndSet(null, "a checkpoint: " + e);
      }
    }
  }
}
