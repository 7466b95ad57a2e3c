package throttle

// The texts of refusals. Sources: developer guide, "Error messages and codes",
// recordings of the service.
const (
	msgTable = "The level of configured provisioned throughput for the table was exceeded. " +
		"Consider increasing your provisioning level with the UpdateTable API." // 350
	msgIndex = "The level of configured provisioned throughput for one or more global secondary indexes of the table was exceeded. " +
		"Consider increasing your provisioning level for the under-provisioned global secondary indexes with the UpdateTable API" // 351
	msgOnDemand = "Throughput exceeds the current capacity of your table or index. " +
		"DynamoDB is automatically scaling your table or index so please try again shortly. " +
		"If exceptions persist, check if you have a hot key: " +
		"https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html" // 352
	msgMaximum = "Throughput exceeds the maximum OnDemandThroughput configured on table or index" // 353
	msgAccount = "Throughput exceeds the current throughput limit for your account. " +
		"Please contact AWS Support at https://aws.amazon.com/support request a limit increase" // 354
	msgRate = "Rate exceeded" // 355
)
