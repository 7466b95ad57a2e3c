import java.util.List;
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
public final class TabletopExtension implements BeforeEachCallback, ParameterResolver {
	private final List<String> args;

	/** Starts the server without further flags. */
	public TabletopExtension() { this(new String[0]); }

	/** Starts the server with further flags of tabletop serve. Extensions with the same flags share a server. */
	public TabletopExtension(String... args) { this.args = List.of(args); }

	/** Removes all tables and faults. */
	@Override public void beforeEach(ExtensionContext context) { server(context).reset(); }

	/** Whether a parameter is a {@link Tabletop.Server} or a {@link Tabletop}. */
	@Override public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
		Class<?> type = parameter.getParameter().getType();
		return type == Tabletop.Server.class || type == Tabletop.class;
	}

	/** The server. */
	@Override public Tabletop.Server resolveParameter(ParameterContext parameter, ExtensionContext context) { return server(context); }

	private Tabletop.Server server(ExtensionContext context) {
		return context.getRoot().getStore(ExtensionContext.Namespace.create(TabletopExtension.class))
			.getOrComputeIfAbsent(args, flags -> new Shared(Tabletop.start(args.toArray(String[]::new))), Shared.class).server;
	}

	/** A server that stops at the end of the run. */
	private record Shared(Tabletop.Server server) implements ExtensionContext.Store.CloseableResource {
		@Override public void close() { server.close(); }
	}
}
