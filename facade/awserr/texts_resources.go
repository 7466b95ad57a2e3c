package awserr

// Error texts for ARNs and for access to their resources.
const (
	MsgARNPrefix     = MsgInvalidParameterPrefix + "ARNs must start with 'arn:': %s"                                                                                            // 217
	MsgARNOfNothing  = MsgInvalidParameterPrefix + "Provided Arn is not a DynamoDB resource arn: %s"                                                                            // 218
	MsgARNOfIndex    = MsgInvalidParameterPrefix + "Invalid resource arn provided, only table or stream is accepted. Provided resource arn: %s"                                 // 219
	MsgNotAuthorized = "User: arn:aws:iam::%s:root is not authorized to perform: dynamodb:%s on resource: %s because no resource-based policy allows the dynamodb:%[2]s action" // 243
	MsgAccessDenied  = "Access is denied"                                                                                                                                       // 372, 403
	MsgOtherAccount  = "This action is only supported by accounts that match the resource owner’s account."                                                                     // 292
)

// Error texts for tags.
const (
	MsgTagsEmpty    = "Atleast one Tag needs to be provided as Input."                       // 160, sic
	MsgTagsARN      = "Invalid TableArn: Invalid ResourceArn provided as input %s"           // 161
	MsgTagsNotFound = "Requested resource not found: ResourcArn: %s not found"               // 242, sic
	MsgTagKeysEmpty = "Atleast one Tag Key needs to be provided as Input."                   // 160, sic
	MsgTagKey       = "The Tag Key provided is invalid, Key: %s"                             // 212
	MsgTagValue     = "The Tag Value provided is invalid, Value: %s"                         // 213
	MsgTagReserved  = "Tag Key cannot be prefixed with aws:, Key: %s"                        // 214
	MsgTagTwice     = "Duplicate Tag Keys provided as input: Duplicate Tag Key found %s"     // 215
	MsgTooManyTags  = "Number of Tags exceed the current limit for the provided ResourceArn" // 216
)

// Error texts for resource policies.
const (
	MsgPolicyARN           = MsgInvalidParameterPrefix + "Invalid resource Arn: %s"                                                                                                                 // 293
	MsgPolicyTooLarge      = MsgInvalidParameterPrefix + "Maximum policy size of 20480 bytes exceeded"                                                                                              // 280
	MsgPolicyDocument      = MsgInvalidParameterPrefix + "Invalid policy document: %s"                                                                                                              // part of 281-287
	MsgPolicyJSON          = "This policy contains invalid Json"                                                                                                                                    // part of 281
	MsgPolicySyntax        = "Syntax error at position (%d,%d)"                                                                                                                                     // part of 282
	MsgPolicyNotOne        = "This text appears not to be a policy"                                                                                                                                 // part of 283
	MsgPolicyMissingField  = "Missing required field %s"                                                                                                                                            // part of 284
	MsgPolicyNoStatement   = "Could not parse the policy: Statement is empty!"                                                                                                                      // part of 285
	MsgPolicySameIDs       = "The Statement Ids in the policy are not unique"                                                                                                                       // part of 286
	MsgPolicyActions       = "The following action names are invalid: %s"                                                                                                                           // part of 287
	MsgPolicyPrincipal     = MsgInvalidParameterPrefix + "Invalid principal in policy document."                                                                                                    // 288
	MsgPolicyUnbounded     = MsgInvalidParameterPrefix + "Resource-based policy grants unbounded access in one or more elements. Please revise the policy to ensure least-privilege form of access" // 289
	MsgPolicyNotFound      = "Resource-based policy not found for the provided ResourceArn: %s"                                                                                                     // 226
	MsgPolicyOtherRevision = "Requested update for policy with revision id %s, but the policy associated to target table %s has revision id %s."                                                    // part of 290
	MsgPolicyNoRevision    = "Requested update for policy with revision id %s, but table %s has no associated policy."                                                                              // ours
	MsgPolicyExists        = "Requested policy update expecting none to be present for table %s, but a policy exists with revision id %s."                                                          // part of 291
	MsgPolicyPending       = "Attempt to change a resource which is still in use: Table is pending previous resource-based policy update: %s"                                                       // 472
	MsgPolicyTooSoon       = "Resource-based policy for %s modified within the previous %d milliseconds. Please try again after %s."                                                                // 473
)

// Error texts for contributor insights.
const (
	MsgInsightsIndexNotFound = "Requested resource not found: Index: %s not found for table: %s"                                                              // 294
	MsgInsightsNotActive     = "Table or Index is not in a valid state to update Key Access Insights: %sStatus must be ACTIVE to enable ContributorInsights." // 295
	MsgInsightsOff           = "contributor insights of table %s, index %q, are off: turn them on by UpdateContributorInsights"                               // ours
)
