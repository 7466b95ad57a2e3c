package orders;

import java.util.List;

/** The orders of a shop. Customers must not contain '#'. */
public interface Orders {
	/** An order of a customer; its status is open or paid. */
	record Order(String customer, String id, String status, long total) {}

	/** An order that exists was placed, or one that is not open was paid. */
	class RefusedException extends RuntimeException {
		RefusedException(String why) { super(why); }
	}

	/** Adds an open order. */
	void place(String customer, String id, long total);

	/** Changes an open order to paid. */
	void pay(String customer, String id);

	/** Returns the orders of a customer by id. */
	List<Order> of(String customer);
}
