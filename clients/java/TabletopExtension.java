import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * A server for tests of JUnit 5: one for all tests of a run, without tables and faults before each of them.
 *
 * <pre>
 * &#64;ExtendWith(TabletopExtension.class)
 * class OrdersTest {
 *   &#64;Test void anOrder(Tabletop.Server tabletop) { ... }
 * }
 * </pre>
 *
 * With flags of tabletop serve, it is a static field:
 *
 * <pre>
 * &#64;RegisterExtension static final TabletopExtension TABLETOP = new TabletopExtension("--mapping", "orders.yaml");
 * </pre>
 *
 * <p>The clock keeps its lead: a test that advances it may use a separate server, as may tests that run in
 * parallel: {@link Tabletop#start}. It needs Tabletop.java and junit-jupiter-api.
 */
public final class TabletopExtension implements BeforeEachCallback, AfterEachCallback, ParameterResolver {
	private final List<String> args;

	/** Starts the server without further flags. */
	public TabletopExtension() { this(new String[0]); }

	/** Starts the server with further flags of tabletop serve. Extensions with the same flags share a server. */
	public TabletopExtension(String... args) { this.args = List.of(args); }

	/** Removes all tables and faults. It fails if another test uses the server at the same time. */
	@Override public void beforeEach(ExtensionContext context) {
		Shared shared = shared(context);
		ExtensionContext other = shared.test.compareAndExchange(null, context);
		if (other != null && !other.getUniqueId().equals(context.getUniqueId())) { // a test may have several extensions
			throw new IllegalStateException("the tests " + name(other) + " and " + name(context) + " use one server at the same time: "
				+ "run them one after another with @ResourceLock, or give each a server with Tabletop.start()");
		}
		shared.server.reset();
	}

	/** Lets the next test use the server. */
	@Override public void afterEach(ExtensionContext context) {
		shared(context).test.updateAndGet(test -> test != null && test.getUniqueId().equals(context.getUniqueId()) ? null : test);
	}

	private static String name(ExtensionContext test) { return test.getRequiredTestClass().getSimpleName() + "." + test.getDisplayName(); }

	/** Whether a parameter is a {@link Tabletop.Server} or a {@link Tabletop}. */
	@Override public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
		Class<?> type = parameter.getParameter().getType();
		return type == Tabletop.Server.class || type == Tabletop.class;
	}

	/** The server. */
	@Override public Tabletop.Server resolveParameter(ParameterContext parameter, ExtensionContext context) { return shared(context).server; }

	private Shared shared(ExtensionContext context) {
		return context.getRoot().getStore(ExtensionContext.Namespace.create(TabletopExtension.class))
			.getOrComputeIfAbsent(args, flags -> new Shared(Tabletop.start(args.toArray(String[]::new)), new AtomicReference<>()), Shared.class);
	}

	/** A server that stops at the end of the run. */
	private record Shared(Tabletop.Server server, AtomicReference<ExtensionContext> test) implements ExtensionContext.Store.CloseableResource {
		@Override public void close() { server.close(); }
	}
}
