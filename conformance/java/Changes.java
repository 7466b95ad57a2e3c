// Tests the change-stream reader of the official Java client, unchanged, against a running
// `tabletop serve`:
//
//     java -cp CLASSPATH Changes.java PATH-TO-TABLETOP
//
// (make conformance-java has the class path of pom.xml beside this file)
//
// The server keeps its data in a folder and constantly splits and merges partitions.
// It is restarted, and killed while writers write. The consumer
// follows the partitions by their tokens, as a program in production does. Each record
// must arrive once, those of a row in the order of its writes, and no acknowledged write
// may be missing; a write without an answer may have a record. The
// client checks the form of every message and throws if it is wrong.
// Exits 0 when all that holds.

import com.google.api.gax.rpc.ApiException;
import com.google.api.gax.rpc.ServerStream;
import com.google.api.gax.rpc.UnavailableException;
import com.google.api.gax.rpc.UnknownException;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminClient;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminSettings;
import com.google.cloud.bigtable.admin.v2.models.CreateTableRequest;
import com.google.cloud.bigtable.admin.v2.models.GCRules;
import com.google.cloud.bigtable.admin.v2.models.Type;
import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.AddToCell;
import com.google.cloud.bigtable.data.v2.models.ChangeStreamContinuationToken;
import com.google.cloud.bigtable.data.v2.models.ChangeStreamMutation;
import com.google.cloud.bigtable.data.v2.models.ChangeStreamRecord;
import com.google.cloud.bigtable.data.v2.models.CloseStream;
import com.google.cloud.bigtable.data.v2.models.DeleteFamily;
import com.google.cloud.bigtable.data.v2.models.Heartbeat;
import com.google.cloud.bigtable.data.v2.models.Range.BoundType;
import com.google.cloud.bigtable.data.v2.models.Range.ByteStringRange;
import com.google.cloud.bigtable.data.v2.models.ReadChangeStreamQuery;
import com.google.cloud.bigtable.data.v2.models.RowMutation;
import com.google.cloud.bigtable.data.v2.models.SetCell;
import com.google.cloud.bigtable.data.v2.models.TableId;
import com.google.protobuf.ByteString;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Changes {
  static final String TABLE = "orders";
  static final int WRITERS = 4;
  static final int ROWS = 8; // of each writer
  static final int WRITES = 60; // of each writer in a phase
  static final Duration PATIENCE = Duration.ofSeconds(60);
  static final int LARGE = 4_600_000;

  static String binary;
  static Path dir;
  static int port;
  static Process server;
  static final Set<Thread> consumers = ConcurrentHashMap.newKeySet();
  static volatile boolean ended;
  static volatile Throwable failure;

  public static void main(String[] args) throws Exception {
    java.util.logging.Logger.getLogger("").setLevel(java.util.logging.Level.OFF); // otherwise the clients log failed calls
    binary = args[0];
    dir = Files.createTempDirectory("tabletop-java");
    int code = 1;
    try {
      run();
      code = 0;
    } catch (Throwable t) {
      t.printStackTrace();
    } finally {
      ended = true;
      if (server != null) {
        server.destroyForcibly().waitFor();
      }
      try (var files = Files.walk(dir)) {
        files.sorted(Comparator.reverseOrder()).forEach(f -> f.toFile().delete());
      }
    }
    System.exit(code);
  }

  // serve starts the server, at the same port each time.
  static void serve() throws Exception {
    Path file = dir.resolve("ports.json");
    Files.deleteIfExists(file);
    server = new ProcessBuilder(binary, "serve", "--bigtable", "127.0.0.1:" + port, "--dynamodb", "off", "--data", dir.resolve("data").toString(),
            "--port-file", file.toString(), "--partition-churn", "0.05", "--gc-interval", "1s")
        .redirectOutput(ProcessBuilder.Redirect.DISCARD).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    Instant until = Instant.now().plus(PATIENCE);
    while (!Files.exists(file)) {
      check(server.isAlive() && Instant.now().isBefore(until), "the server is not ready");
      Thread.sleep(10);
    }
    Matcher m = Pattern.compile("\"bigtable\":\"([^\"]*)\"").matcher(Files.readString(file));
    check(m.find(), "no address");
    port = URI.create("tcp://" + m.group(1)).getPort();
  }

  static void stop() throws Exception {
    server.destroy(); // SIGTERM
    check(server.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS) && server.exitValue() == 0, "the server did not stop well: " + server);
  }

  static void check(boolean ok, String what) {
    if (!ok) {
      throw new IllegalStateException(what);
    }
  }

  @SuppressWarnings("deprecation") // the client has no other way to set the retention
  static void run() throws Exception {
    serve();
    try (var admin = BigtableTableAdminClient.create(
        BigtableTableAdminSettings.newBuilderForEmulator("127.0.0.1", port).setProjectId("p").setInstanceId("i").build())) {
      admin.createTable(CreateTableRequest.of(TABLE).addFamily("f").addFamily("g", GCRules.GCRULES.maxVersions(1)).addFamily("s", Type.int64Sum())
          .addSplit(ByteString.copyFromUtf8("w1")).addSplit(ByteString.copyFromUtf8("w3"))
          .addChangeStreamRetention(org.threeten.bp.Duration.ofDays(1)));
      began = Instant.now();
    }
    var settings = BigtableDataSettings.newBuilderForEmulator("127.0.0.1", port).setProjectId("p").setInstanceId("i");
    settings.stubSettings().mutateRowSettings().setRetryableCodes(Set.of()); // so that the outcome of a write is known or unknown
    var client = BigtableDataClient.create(settings.build()); // its close would wait for the endless streams
    begin(client);
    say("writes", work(client, null));
    say("writes, then a stop", work(client, null));
    stop();
    serve();
    for (int i = 0; i < 3; i++) {
      connect(client);
      say("writes, and a kill among them", work(client, Changes::kill));
      serve();
    }
    connect(client);
    forms(client);
    say("writes", work(client, null));
    waitForAll();
    check(splits.get() > 0 && merges.get() > 0, splits + " splits and " + merges + " merges were met");
    System.out.printf("%d records of %d acknowledged writes, each once and in order; %d splits, %d merges, %d of garbage, %d reads begun anew%n",
        records.get(), acknowledged.size(), splits.get(), merges.get(), garbage.get(), anew.get());
  }

  // closed reports whether a call met the end of its connection, which the client does not call UNAVAILABLE if it
  // was about to write to it.
  static boolean closed(ApiException e) {
    return e instanceof UnknownException && e.getMessage().contains("channel closed");
  }

  // connect waits until there is a connection again.
  static void connect(BigtableDataClient client) {
    for (;;) {
      try {
        client.readRow(TABLE, "none");
        return;
      } catch (UnknownException e) {
        if (!closed(e)) {
          throw e;
        }
      }
    }
  }

  static void say(String what, int n) {
    System.out.println(what + ": " + n + " acknowledged");
  }

  static void kill() {
    server.destroyForcibly(); // SIGKILL
    try {
      server.waitFor();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  // ---- writers

  static final Set<String> acknowledged = ConcurrentHashMap.newKeySet(); // row/number
  static final Map<String, AtomicInteger> numbers = new ConcurrentHashMap<>(); // by row: the number of the last write; each is made once

  // work runs all writers. A kill follows after half of the writes.
  static int work(BigtableDataClient client, Runnable kill) throws Exception {
    int before = acknowledged.size();
    var done = new AtomicInteger();
    var threads = new ArrayList<Thread>();
    for (int w = 0; w < WRITERS; w++) {
      int writer = w;
      threads.add(new Thread(() -> {
        for (int i = 0; i < WRITES && !ended; i++) {
          write(client, "w" + writer + "-" + i % ROWS);
          if (done.incrementAndGet() == WRITERS * WRITES / 2 && kill != null) {
            kill.run();
          }
        }
      }));
    }
    threads.forEach(Thread::start);
    for (Thread t : threads) {
      t.join();
    }
    check(acknowledged.size() > before, "no write was acknowledged");
    return acknowledged.size() - before;
  }

  static void write(BigtableDataClient client, String row) {
    int n = numbers.computeIfAbsent(row, r -> new AtomicInteger()).incrementAndGet();
    try {
      client.mutateRow(RowMutation.create(TableId.of(TABLE), row).setCell("f", "n", String.valueOf(n)).deleteCells("f", "old"));
      acknowledged.add(row + "/" + n);
    } catch (RuntimeException e) {
      // It may have a record.
    }
  }

  // forms writes records of all forms that the client knows.
  static void forms(BigtableDataClient client) throws Exception {
    long now = Instant.now().getEpochSecond() * 1_000_000;
    client.mutateRow(RowMutation.create(TableId.of(TABLE), "x-large").setCell("f", "before", "b").setCell("f", "large", "v".repeat(LARGE)).setCell("f", "after", "a"));
    client.mutateRow(RowMutation.create(TableId.of(TABLE), "x-sum").addToCell("s", "n", now, 5).addToCell("s", "n", now, 7));
    client.mutateRow(RowMutation.create(TableId.of(TABLE), "x-gone").deleteRow());
    client.mutateRow(RowMutation.create(TableId.of(TABLE), "x-garbage").setCell("g", "q", now, "new").setCell("g", "q", now - 1000, "old"));
    for (String form : List.of("x-large 3", "x-sum 2", "x-gone 3", "x-garbage 2", "x-garbage gc 1")) {
      await("the record " + form, () -> forms.contains(form));
    }
  }

  interface Condition {
    boolean holds();
  }

  static void await(String what, Condition c) throws Exception {
    for (Instant until = Instant.now().plus(PATIENCE); !c.holds(); Thread.sleep(20)) {
      if (failure != null) {
        throw new IllegalStateException(failure);
      }
      check(Instant.now().isBefore(until), what + " did not come");
    }
    if (failure != null) {
      throw new IllegalStateException(failure);
    }
  }

  static void waitForAll() throws Exception {
    await("all that was acknowledged", () -> seen.containsAll(acknowledged));
    for (String row : numbers.keySet()) {
      check(last.get(row) <= numbers.get(row).get(), "row " + row + " has a record that nobody wrote");
    }
  }

  // ---- readers

  static final Set<String> seen = ConcurrentHashMap.newKeySet(); // row/number
  static final Map<String, Integer> last = new ConcurrentHashMap<>();
  static final Set<String> forms = ConcurrentHashMap.newKeySet();
  static final AtomicInteger records = new AtomicInteger();
  static final AtomicInteger garbage = new AtomicInteger();
  static final AtomicInteger splits = new AtomicInteger();
  static final AtomicInteger merges = new AtomicInteger();
  static final AtomicInteger anew = new AtomicInteger(); // reads after the client had given up

  // record processes a record.
  static void record(ChangeStreamMutation m) {
    String row = m.getRowKey().toStringUtf8();
    boolean gc = m.getType() == ChangeStreamMutation.MutationType.GARBAGE_COLLECTION;
    records.incrementAndGet();
    if (gc) {
      garbage.incrementAndGet();
    }
    if (row.startsWith("x-")) {
      form(row, gc, m);
      return;
    }
    check(m.getEntries().size() == 2 && m.getEntries().get(0) instanceof SetCell, row + " has " + m.getEntries());
    int n = Integer.parseInt(((SetCell) m.getEntries().get(0)).getValue().toStringUtf8());
    check(seen.add(row + "/" + n), row + "/" + n + " came twice");
    Integer before = last.put(row, n);
    check(before == null || before < n, row + "/" + n + " came after " + before);
  }

  static void form(String row, boolean gc, ChangeStreamMutation m) {
    for (var e : m.getEntries()) {
      boolean right = switch (row) {
        case "x-large" -> ((SetCell) e).getValue().size() == (((SetCell) e).getQualifier().toStringUtf8().equals("large") ? LARGE : 1);
        case "x-sum" -> e instanceof AddToCell;
        case "x-gone" -> e instanceof DeleteFamily;
        default -> true;
      };
      check(right, row + " has an entry that was not written");
    }
    check(gc || !m.getSourceClusterId().isEmpty(), row + " has no cluster");
    check(forms.add(row + (gc ? " gc " : " ") + m.getEntries().size()), row + " came twice");
  }

  // Piece is a range of keys without a reader: it waits until its neighbors are
  // closed, and together they become the partition next.
  record Piece(ChangeStreamContinuationToken token, ByteStringRange next, Instant since) {}

  static final List<Piece> pieces = new ArrayList<>();
  static volatile Instant began; // when the table had been created

  static void begin(BigtableDataClient client) {
    for (ByteStringRange p : client.generateInitialChangeStreamPartitions(TABLE)) {
      read(client, p, List.of());
    }
    start(() -> {
      while (!ended) {
        match(client);
        Thread.sleep(5);
      }
    });
  }

  interface Work {
    void run() throws Exception;
  }

  static void start(Work work) {
    Thread t = new Thread(() -> {
      try {
        work.run();
      } catch (Throwable e) {
        if (!ended && failure == null) {
          failure = e;
        }
      } finally {
        consumers.remove(Thread.currentThread());
      }
    });
    t.setDaemon(true);
    consumers.add(t);
    t.start();
  }

  static String from(ByteStringRange r) {
    return r.getStartBound() == BoundType.UNBOUNDED ? "" : r.getStart().toStringUtf8();
  }

  static String to(ByteStringRange r) {
    return r.getEndBound() == BoundType.UNBOUNDED ? "" : r.getEnd().toStringUtf8();
  }

  // match reads the partitions whose pieces are complete. A piece that waits for a
  // long time is read alone: the partitions have changed again, and the answer has the change.
  static void match(BigtableDataClient client) {
    synchronized (pieces) {
      var byNext = new HashMap<String, List<Piece>>();
      for (Piece p : pieces) {
        byNext.computeIfAbsent(from(p.next) + "\0" + to(p.next), k -> new ArrayList<>()).add(p);
      }
      for (List<Piece> group : byNext.values()) {
        group.sort(Comparator.comparing(p -> from(p.token.getPartition())));
        ByteStringRange next = group.get(0).next;
        String at = from(next);
        boolean whole = true;
        for (Piece p : group) {
          whole = whole && from(p.token.getPartition()).equals(at);
          at = to(p.token.getPartition());
        }
        if (whole && at.equals(to(next))) {
          pieces.removeAll(group);
          if (group.size() > 1) {
            merges.incrementAndGet();
          }
          read(client, next, group.stream().map(Piece::token).toList());
          continue;
        }
        for (Piece p : group) {
          if (p.since.isBefore(Instant.now().minusMillis(100))) {
            pieces.remove(p);
            read(client, p.token.getPartition(), List.of(p.token));
          }
        }
      }
    }
  }

  // read reads a partition until it is closed.
  static void read(BigtableDataClient client, ByteStringRange partition, List<ChangeStreamContinuationToken> tokens) {
    start(() -> {
      var at = tokens;
      while (!ended) {
        var query = ReadChangeStreamQuery.create(TABLE).streamPartition(partition).heartbeatDuration(Duration.ofSeconds(1));
        query = at.isEmpty() ? query.startTime(began) : query.continuationTokens(at);
        try {
          ServerStream<ChangeStreamRecord> stream = client.readChangeStream(query);
          for (ChangeStreamRecord r : stream) {
            if (r instanceof ChangeStreamMutation m) {
              record(m);
              at = List.of(ChangeStreamContinuationToken.create(partition, m.getToken()));
            } else if (r instanceof Heartbeat h) {
              at = List.of(h.getChangeStreamContinuationToken());
            } else if (r instanceof CloseStream c) {
              close(c);
              return;
            }
          }
          throw new IllegalStateException("a stream ended without a close");
        } catch (ApiException e) {
          if (!(e instanceof UnavailableException) && !closed(e)) {
            throw e;
          }
          anew.incrementAndGet(); // the server is away for longer than the client retries
          Thread.sleep(100);
        }
      }
    });
  }

  static void close(CloseStream c) {
    var parts = c.getChangeStreamContinuationTokens();
    check(parts.size() == c.getNewPartitions().size() && !parts.isEmpty(), "closed with " + c);
    if (parts.size() > 1) {
      splits.incrementAndGet();
    }
    synchronized (pieces) {
      for (int i = 0; i < parts.size(); i++) {
        pieces.add(new Piece(parts.get(i), c.getNewPartitions().get(i), Instant.now()));
      }
    }
  }
}
