package wording

// The texts; the number behind one is its row in facade/testdata/messages.tsv.
const (
	msgValidationErrors        = "%d validation error%s detected: %s"                                          // part of 1, 3, 5-10, 14, 15
	msgMemberClassic           = "Value %s at '%s' failed to satisfy constraint: %s"                           // part of 1, 5-9, 15
	msgMemberCurrent           = "Value at '%s' failed to satisfy constraint: %s"                              // part of 3, 15, 146, 148
	MsgConditionalOperatorEnum = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]" // 241, sic
	msgValueInvalid            = "ExpressionAttributeValues contains invalid value: %s for key %s"             // 102
)
