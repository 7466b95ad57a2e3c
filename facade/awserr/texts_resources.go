package awserr

// Error texts for ARNs, and for denied access to the resources that they name.
const (
	MsgARNPrefix     = MsgInvalidParameterPrefix + "ARNs must start with 'arn:': %s"                                                                                            // row 217
	MsgARNOfNothing  = MsgInvalidParameterPrefix + "Provided Arn is not a DynamoDB resource arn: %s"                                                                            // row 218
	MsgARNOfIndex    = MsgInvalidParameterPrefix + "Invalid resource arn provided, only table or stream is accepted. Provided resource arn: %s"                                 // row 219
	MsgNotAuthorized = "User: arn:aws:iam::%s:root is not authorized to perform: dynamodb:%s on resource: %s because no resource-based policy allows the dynamodb:%[2]s action" // row 243
	MsgAccessDenied  = "Access is denied"                                                                                                                                       // rows 372, 403
	MsgOtherAccount  = "This action is only supported by accounts that match the resource owner’s account."                                                                     // row 292
)

// Error texts for tags.
const (
	MsgTagsEmpty    = "Atleast one Tag needs to be provided as Input."                       // row 160, sic
	MsgTagsARN      = "Invalid TableArn: Invalid ResourceArn provided as input %s"           // row 161
	MsgTagsNotFound = "Requested resource not found: ResourcArn: %s not found"               // row 242, sic
	MsgTagKeysEmpty = "Atleast one Tag Key needs to be provided as Input."                   // row 160, sic
	MsgTagKey       = "The Tag Key provided is invalid, Key: %s"                             // row 212
	MsgTagValue     = "The Tag Value provided is invalid, Value: %s"                         // row 213
	MsgTagReserved  = "Tag Key cannot be prefixed with aws:, Key: %s"                        // row 214
	MsgTagTwice     = "Duplicate Tag Keys provided as input: Duplicate Tag Key found %s"     // row 215
	MsgTooManyTags  = "Number of Tags exceed the current limit for the provided ResourceArn" // row 216
)

// Error texts for resource policies.
const (
	MsgPolicyARN           = MsgInvalidParameterPrefix + "Invalid resource Arn: %s"                                                                                                                 // row 293
	MsgPolicyTooLarge      = MsgInvalidParameterPrefix + "Maximum policy size of 20480 bytes exceeded"                                                                                              // row 280
	MsgPolicyDocument      = MsgInvalidParameterPrefix + "Invalid policy document: %s"                                                                                                              // part of rows 281-287
	MsgPolicyJSON          = "This policy contains invalid Json"                                                                                                                                    // part of row 281
	MsgPolicySyntax        = "Syntax error at position (%d,%d)"                                                                                                                                     // part of row 282
	MsgPolicyNotOne        = "This text appears not to be a policy"                                                                                                                                 // part of row 283
	MsgPolicyMissingField  = "Missing required field %s"                                                                                                                                            // part of row 284
	MsgPolicyNoStatement   = "Could not parse the policy: Statement is empty!"                                                                                                                      // part of row 285
	MsgPolicySameIDs       = "The Statement Ids in the policy are not unique"                                                                                                                       // part of row 286
	MsgPolicyActions       = "The following action names are invalid: %s"                                                                                                                           // part of row 287
	MsgPolicyPrincipal     = MsgInvalidParameterPrefix + "Invalid principal in policy document."                                                                                                    // row 288
	MsgPolicyUnbounded     = MsgInvalidParameterPrefix + "Resource-based policy grants unbounded access in one or more elements. Please revise the policy to ensure least-privilege form of access" // row 289
	MsgPolicyNotFound      = "Resource-based policy not found for the provided ResourceArn: %s"                                                                                                     // row 226
	MsgPolicyOtherRevision = "Requested update for policy with revision id %s, but the policy associated to target table %s has revision id %s."                                                    // part of row 290
	MsgPolicyNoRevision    = "Requested update for policy with revision id %s, but table %s has no associated policy."                                                                              // our own text
	MsgPolicyExists        = "Requested policy update expecting none to be present for table %s, but a policy exists with revision id %s."                                                          // part of row 291
	MsgPolicyPending       = "Attempt to change a resource which is still in use: Table is pending previous resource-based policy update: %s"                                                       // row 472
	MsgPolicyTooSoon       = "Resource-based policy for %s modified within the previous %d milliseconds. Please try again after %s."                                                                // row 473
)

// Error texts for contributor insights.
const (
	MsgInsightsIndexNotFound = "Requested resource not found: Index: %s not found for table: %s"                                                              // row 294
	MsgInsightsNotActive     = "Table or Index is not in a valid state to update Key Access Insights: %sStatus must be ACTIVE to enable ContributorInsights." // row 295
	MsgInsightsOff           = "contributor insights of table %s, index %q, are off: turn them on by UpdateContributorInsights"                               // our own text
)
